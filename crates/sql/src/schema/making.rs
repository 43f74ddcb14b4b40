//! How a schema is made: of all rows of sqlite_schema, or of another schema and the rows in
//! which they differ.
//!
//! What was parsed stays parsed where no row changed that it was made from, which is what
//! lets a change of the schema cost what it changes. A table is made from its own row, those
//! of its indexes, and that of sqlite_sequence; a view and a trigger from one row each. A
//! schema in which rows contradict each other ([`Claims`]) is made from all rows always, and
//! so is one that would be: there an object depends on rows that have nothing to do with it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fulgurite_store::{Store, Tree, TreeId};
use rustc_hash::FxHashMap;

use super::claims::Claims;
use super::shared::{Placed, Rows, SharedMap};
use super::trigger::TriggerEntry;
use super::{SEQUENCE, Schema, SchemaRow, TableEntry, ViewEntry, schema_table};

/// Rows of sqlite_schema that differ, by their rowids: what they are now, or None.
pub type RowChanges = BTreeMap<i64, Option<Arc<SchemaRow>>>;

/// A table whose rows change.
#[derive(Default)]
struct Draft {
    table: Option<Placed>,
    indexes: Vec<Placed>,
}

impl SchemaRow {
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
    }

    /// Whether it names a tree.
    pub(super) fn has_tree(&self) -> bool {
        self.is("table") || self.is("index")
    }

    /// The trees that it names.
    pub(super) fn roots(&self) -> impl Iterator<Item = i64> {
        let own = self.has_tree().then_some(self.root);
        own.into_iter().chain(self.key.map(|key| key.root))
    }

    /// Whether its text may have a foreign key.
    pub(crate) fn has_references(&self) -> bool {
        let sql = self.sql.as_deref().unwrap_or_default();
        sql.to_ascii_lowercase().contains("references")
    }
}

/// A name as it is looked for.
fn key_of(name: &str) -> Arc<str> {
    name.to_ascii_lowercase().into()
}

impl Schema {
    /// The schema that `rows`, by their rowids, describe. `named`: the trees that have names,
    /// and belong to none of what they describe.
    pub fn new(
        store: Store,
        schema_tree: Tree,
        version: u64,
        is_temp: bool,
        rows: impl IntoIterator<Item = (i64, SchemaRow)>,
        named: &Arc<[TreeId]>,
    ) -> Schema {
        let mut schema = Schema {
            version,
            store,
            is_temp,
            builtin: Arc::new(schema_table(schema_tree, is_temp)),
            tables: SharedMap::default(),
            indexes: SharedMap::default(),
            views: SharedMap::default(),
            triggers: SharedMap::default(),
            order: OnceLock::new(),
            rows: Rows::default(),
            claims: Claims::of(named),
            references: OnceLock::new(),
        };
        let mut tables: FxHashMap<Arc<str>, Draft> = FxHashMap::default();
        let mut later = Vec::new();
        for (rowid, row) in rows {
            let placed = Placed {
                rowid,
                row: Arc::new(row),
            };
            let row = &placed.row;
            schema.rows.put(placed.clone());
            schema.claims.add(row);
            if row.is("table") {
                let key = row.key_row().map(Arc::new);
                later.extend(key.map(|row| Placed { rowid, row }));
                let name = key_of(&row.name);
                tables.entry(name).or_default().table = Some(placed);
            } else if row.is("view") {
                let name = key_of(&row.name);
                schema.views.insert(name, ViewEntry::new(placed.row));
            } else if row.is("trigger") {
                schema.add_trigger(placed);
            } else if row.is("index") {
                later.push(placed);
            }
        }
        for placed in later {
            let key = key_of(&placed.row.table);
            let name = key_of(&placed.row.name);
            let taken = schema.indexes.insert(name, Arc::clone(&key));
            schema.claims.are_odd |= taken.is_some();
            match tables.get_mut(&key) {
                Some(draft) => draft.indexes.push(placed),
                None => schema.claims.are_odd = true,
            }
        }
        for (name, draft) in tables {
            if let Draft {
                table: Some(table),
                indexes,
            } = draft
            {
                schema.tables.insert(name, TableEntry::new(table, indexes));
            }
        }
        schema
    }

    /// The same rows as a commit made them, of another version.
    #[must_use]
    pub fn with_version(&self, version: u64) -> Schema {
        let references = OnceLock::new();
        if let Some(known) = self.references.get() {
            let _ = references.set(known.clone());
        }
        Schema {
            version,
            store: self.store.clone(),
            is_temp: self.is_temp,
            builtin: Arc::clone(&self.builtin),
            tables: self.tables.clone(),
            indexes: self.indexes.clone(),
            views: self.views.clone(),
            triggers: self.triggers.clone(),
            order: OnceLock::new(),
            rows: self.rows.clone(),
            claims: self.claims.clone(),
            references,
        }
    }

    /// The schema in which these rows differ, and nothing else.
    #[must_use]
    pub fn changed(&self, version: u64, changes: &RowChanges) -> Schema {
        self.try_changed(version, changes).unwrap_or_else(|| {
            let mut rows = self.rows.clone();
            for (rowid, row) in changes {
                match row {
                    Some(row) => rows.put(Placed {
                        rowid: *rowid,
                        row: Arc::clone(row),
                    }),
                    None => rows.remove(*rowid),
                }
            }
            let rows = rows.iter().map(|it| (it.rowid, SchemaRow::clone(&it.row)));
            let (store, tree) = (self.store.clone(), self.builtin.tree.clone());
            let named = self.claims.named();
            Schema::new(store, tree, version, self.is_temp, rows, named)
        })
    }

    /// The schema of these rows, by their rowids in order: by what it differs in from this one.
    #[must_use]
    pub fn with_rows(
        &self,
        version: u64,
        rows: impl IntoIterator<Item = (i64, SchemaRow)>,
    ) -> Schema {
        let mut changes = RowChanges::new();
        let mut known = self.rows.iter().peekable();
        for (rowid, row) in rows {
            while let Some(gone) = known.next_if(|it| it.rowid < rowid) {
                changes.insert(gone.rowid, None);
            }
            let same = known.next_if(|it| it.rowid == rowid);
            if same.is_none_or(|it| *it.row != row) {
                changes.insert(rowid, Some(Arc::new(row)));
            }
        }
        changes.extend(known.map(|gone| (gone.rowid, None)));
        self.changed(version, &changes)
    }

    /// None where it has to be made from all rows.
    fn try_changed(&self, version: u64, changes: &RowChanges) -> Option<Schema> {
        let mut next = self.with_version(version);
        let mut drafts = FxHashMap::default();
        let is_plain = |row: &SchemaRow| !row.name.eq_ignore_ascii_case(SEQUENCE);
        if !self.claims.are_plain() {
            return None;
        }
        for rowid in changes.keys() {
            if let Some(row) = self.rows.get(*rowid) {
                is_plain(row).then_some(())?;
                next.take_out(*rowid, row, &mut drafts);
            }
        }
        for (rowid, row) in changes {
            if let Some(row) = row {
                is_plain(row).then_some(())?;
                let placed = Placed {
                    rowid: *rowid,
                    row: Arc::clone(row),
                };
                next.put_in(placed, &mut drafts)?;
            }
        }
        let mut refers = false;
        for (name, draft) in drafts {
            let before = self.tables.get(&name);
            refers |= before.is_some_and(|entry| entry.row.has_references());
            next.tables.remove(&name);
            match draft.table {
                Some(table) => {
                    refers |= table.row.has_references();
                    let mut indexes = draft.indexes;
                    indexes.sort_by_key(|it| it.rowid);
                    next.tables.insert(name, TableEntry::new(table, indexes));
                }
                None if draft.indexes.is_empty() => {}
                None => return None,
            }
        }
        if refers {
            next.references = OnceLock::new();
        }
        Some(next)
    }

    /// What is known of a table some rows of which change.
    fn draft<'d>(&self, name: &str, drafts: &'d mut FxHashMap<Arc<str>, Draft>) -> &'d mut Draft {
        let key = key_of(name);
        let entry = self.tables.get(&key);
        drafts.entry(key).or_insert_with(|| match entry {
            Some(entry) => Draft {
                table: Some(Placed {
                    rowid: entry.rowid,
                    row: Arc::clone(&entry.row),
                }),
                indexes: entry.indexes.clone(),
            },
            None => Draft::default(),
        })
    }

    fn take_out(
        &mut self,
        rowid: i64,
        row: &Arc<SchemaRow>,
        drafts: &mut FxHashMap<Arc<str>, Draft>,
    ) {
        self.rows.remove(rowid);
        self.claims.remove(row);
        if row.is("table") {
            if let Some(key) = row.key_row() {
                self.indexes.remove(&*key_of(&key.name));
            }
            let draft = self.draft(&row.name, drafts);
            draft.table = None;
            // That of its key, which has no row of its own.
            draft.indexes.retain(|it| it.rowid != rowid);
        } else if row.is("index") {
            self.indexes.remove(&*key_of(&row.name));
            let draft = self.draft(&row.table, drafts);
            draft.indexes.retain(|it| it.rowid != rowid);
        } else if row.is("view") {
            self.views.remove(&*key_of(&row.name));
        } else if row.is("trigger") {
            let name = key_of(&row.table);
            if let Some(all) = self.triggers.remove(&*name) {
                let others = all.iter().filter(|entry| entry.rowid != rowid);
                let others: Vec<_> = others.cloned().collect();
                if !others.is_empty() {
                    self.triggers.insert(name, others.into());
                }
            }
        }
    }

    /// None where it contradicts another row.
    fn put_in(&mut self, placed: Placed, drafts: &mut FxHashMap<Arc<str>, Draft>) -> Option<()> {
        let (rowid, row) = (placed.rowid, Arc::clone(&placed.row));
        self.rows.put(placed.clone());
        self.claims.add(&row);
        self.claims.are_plain().then_some(())?;
        let mut add_index = |placed: Placed| {
            let name = key_of(&placed.row.name);
            let is_taken = self
                .indexes
                .insert(name, key_of(&placed.row.table))
                .is_some();
            self.draft(&placed.row.table, drafts).indexes.push(placed);
            (!is_taken).then_some(())
        };
        if row.is("table") {
            if let Some(key) = row.key_row() {
                let row = Arc::new(key);
                add_index(Placed { rowid, row })?;
            }
            self.draft(&row.name, drafts).table = Some(placed);
        } else if row.is("index") {
            add_index(placed)?;
        } else if row.is("view") {
            let name = key_of(&row.name);
            self.views.insert(name, ViewEntry::new(placed.row));
        } else if row.is("trigger") {
            self.add_trigger(placed);
        }
        Some(())
    }

    fn add_trigger(&mut self, placed: Placed) {
        let name = key_of(&placed.row.table);
        let before = self.triggers.get(&name);
        let before = before.map(|all| all.to_vec()).unwrap_or_default();
        let mut all = before;
        let place = all.partition_point(|entry| entry.rowid < placed.rowid);
        all.insert(place, Arc::new(TriggerEntry::new(placed)));
        self.triggers.insert(name, all.into());
    }
}
