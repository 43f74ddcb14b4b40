//! What rows of sqlite_schema must be beside each other: each object has a name of its own,
//! and each tree belongs to one object. A file may say otherwise, and who wrote to one of two
//! that share a tree, or dropped it, would change the other.

use std::sync::Arc;

use fulgurite_store::{KeyKind, Tree, TreeId};
use rustc_hash::FxHashSet;

use super::shared::SharedMap;
use super::{Schema, SchemaRow};
use crate::error::{Error, Result, code};

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    /// Names in lower case that objects have.
    all_names: SharedMap<Arc<str>, ()>,
    /// Numbers of trees that they have.
    all_roots: SharedMap<i64, ()>,
    /// Names in lower case that several objects have.
    names: FxHashSet<Arc<str>>,
    /// Numbers of trees that several objects have.
    roots: FxHashSet<i64>,
    /// How many rows may have foreign keys.
    referring: usize,
    /// Some rows belong to what is not there.
    pub(super) are_odd: bool,
    /// Trees that have names, and belong to no object.
    named: Arc<[TreeId]>,
}

impl Claims {
    /// Of no rows yet.
    pub(super) fn of(named: &Arc<[TreeId]>) -> Self {
        Self {
            named: Arc::clone(named),
            ..Self::default()
        }
    }

    /// Adds what a row claims.
    pub(super) fn add(&mut self, row: &SchemaRow) {
        if row.has_tree() || row.is("view") {
            let name: Arc<str> = row.name.to_ascii_lowercase().into();
            if self.all_names.insert(Arc::clone(&name), ()).is_some() {
                self.names.insert(name);
            }
        }
        self.referring += usize::from(row.has_references());
        for root in row.roots() {
            if self.all_roots.insert(root, ()).is_some() {
                self.roots.insert(root);
            }
        }
    }

    /// Takes back what a row claims, where no other row claims the same.
    pub(super) fn remove(&mut self, row: &SchemaRow) {
        debug_assert!(self.are_plain());
        if row.has_tree() || row.is("view") {
            let name = row.name.to_ascii_lowercase();
            self.all_names.remove(name.as_str());
        }
        self.referring -= usize::from(row.has_references());
        for root in row.roots() {
            self.all_roots.remove(&root);
        }
    }

    /// Whether rows may have foreign keys.
    pub(super) fn refer(&self) -> bool {
        self.referring > 0
    }

    /// No row contradicts another one.
    pub(super) fn are_plain(&self) -> bool {
        self.names.is_empty() && self.roots.is_empty() && !self.are_odd
    }

    pub(super) fn named(&self) -> &Arc<[TreeId]> {
        &self.named
    }
}

/// The error of an object whose row cannot be used.
pub fn malformed(name: &str, why: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("malformed database schema ({name}) - {why}")).with_hint(
        "its row of sqlite_schema is damaged: DROP removes it, and what else is in the database \
         can be read",
    )
}

/// What a text that is stored fails with is damage, but for what the connection lacks.
pub(super) fn of_text(name: &str, error: Error) -> Error {
    match error.extended_code() {
        code::ERROR => malformed(name, error.message()),
        _ => error,
    }
}

/// Fails where the text of an object is one of another.
pub(super) fn check_text(row: &SchemaRow, name: &str, table: &str) -> Result<()> {
    if !row.name.eq_ignore_ascii_case(name) {
        return Err(malformed(&row.name, format!("its text is that of {name}")));
    }
    match row.table.eq_ignore_ascii_case(table) {
        true => Ok(()),
        false => Err(malformed(&row.name, format!("its text is one for {table}"))),
    }
}

impl SchemaRow {
    /// Whether it is that of this table or index, or goes with the table.
    pub fn goes_with(&self, kind: &str, name: &str) -> bool {
        let is = |kind: &str| self.kind.eq_ignore_ascii_case(kind);
        let is_part = kind == "table" && (is("index") || is("trigger")) && self.database.is_none();
        is(kind) && self.name.eq_ignore_ascii_case(name)
            || is_part && self.table.eq_ignore_ascii_case(name)
    }
}

impl Schema {
    /// Fails where another object has the name of this one.
    pub(super) fn check_name(&self, row: &SchemaRow) -> Result<()> {
        let is_shared = self
            .claims
            .names
            .contains(row.name.to_ascii_lowercase().as_str());
        match is_shared {
            true => Err(malformed(&row.name, "another object has this name, too")),
            false => Ok(()),
        }
    }

    /// Fails where the text of an object is one of another, or its name is.
    pub(super) fn check_text(&self, row: &SchemaRow, name: &str, table: &str) -> Result<()> {
        self.check_name(row)?;
        check_text(row, name, table)
    }

    /// The tree of a row.
    pub(super) fn tree_of(&self, row: &SchemaRow, kind: KeyKind) -> Result<Tree> {
        let bad = |what: &str| malformed(&row.name, format!("tree {}, its own, {what}", row.root));
        let id = u32::try_from(row.root).map_err(|_| bad("is not there"))?;
        let tree = self.store.tree(TreeId(id));
        let tree = tree.map_err(|_| bad("is not there"))?;
        if tree.kind() != kind {
            return Err(bad("is of another kind"));
        }
        let is_taken = self.claims.roots.contains(&row.root);
        if is_taken || self.claims.named.contains(&tree.id()) || tree == self.builtin.tree {
            return Err(bad("belongs to something else, too"));
        }
        Ok(tree)
    }

    /// Of a table or index whose rows cannot be used, the trees that go with it: those that
    /// nothing else has.
    pub fn trees_of_malformed(&self, kind: &str, name: &str) -> Vec<Tree> {
        let mut trees = Vec::new();
        for row in self.rows().filter(|row| row.goes_with(kind, name)) {
            let kind = match row.kind.eq_ignore_ascii_case("table") {
                true => KeyKind::Int,
                false => KeyKind::Bytes,
            };
            trees.extend(self.tree_of(row, kind));
            let key = row.key_row();
            trees.extend(key.and_then(|key| self.tree_of(&key, KeyKind::Bytes).ok()));
        }
        trees
    }

    /// The name of a table or index as its row has it, whether or not it can be used; of an
    /// index that no constraint makes.
    pub fn stored_name(&self, kind: &str, name: &str) -> Option<&str> {
        let is_it = |row: &&Arc<SchemaRow>| {
            let is_own = kind == "table" || row.sql.is_some();
            row.kind.eq_ignore_ascii_case(kind) && row.name.eq_ignore_ascii_case(name) && is_own
        };
        self.rows().find(is_it).map(|row| row.name.as_str())
    }

    /// What is wrong with rows that no table's check looks at.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for row in self.rows() {
            let is = |kind: &str| row.kind.eq_ignore_ascii_case(kind);
            let table = row.table.to_ascii_lowercase();
            let has_table = self.tables.contains_key(table.as_str());
            let found = match () {
                () if is("table") => Ok(()),
                () if is("view") => self.view(&row.name).map(|_| ()),
                () if is("index") && has_table => Ok(()),
                () if is("trigger") => self.check_trigger(row, has_table),
                () if is("index") => Err(malformed(&row.name, "its table is not there")),
                () => Err(malformed(&row.name, format!("of no kind: {:?}", row.kind))),
            };
            findings.extend(found.err().map(|error| error.to_string()));
        }
        findings
    }

    fn check_trigger(&self, row: &SchemaRow, has_table: bool) -> Result<()> {
        let is_there = has_table
            || self
                .views
                .contains_key(row.table.to_ascii_lowercase().as_str());
        match &row.database {
            None if !is_there => Err(malformed(&row.name, "its table is not there")),
            database => self
                .triggers_of(&row.table, database.as_deref())
                .map(|_| ()),
        }
    }
}
