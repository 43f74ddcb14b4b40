//! Where a text of the schema uses a table or a column of it.
//!
//! What a name stands for is known while it is bound: ALTER TABLE binds the texts that the
//! schema keeps and has the places of such names written down here. The views that a text
//! uses have texts of their own and are left out meanwhile.

use fulgurite_store::Tree;

use super::Binder;
use super::scope::{Frame, ScopeColumns, ScopeTable, is_rowid_name};
use crate::ast;
use crate::ast::{ExprKind, Literal, Name, SelectCore, SortTerm};
use crate::error::{Error, Result};
use crate::schema::Table;

/// Whose names are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Watched {
    /// Nobody's.
    Nothing,
    /// The table's own, of the table that this tree holds.
    Table(Tree),
    /// One of its columns'.
    Column(Tree, usize),
}

/// What is found. Places are those that the names have in the tree.
#[derive(Debug)]
pub(super) struct Uses {
    watched: Watched,
    /// Names that are nowhere are errors, also in double quotes.
    strict: bool,
    /// Where the watched is named.
    pub names: Vec<usize>,
    /// Where a name in double quotes is a text.
    pub texts: Vec<usize>,
    /// Sources that go by their table's own name.
    plain: Vec<usize>,
    /// Tables of parenthesized joins: the join's source, the table's first column there,
    /// the table, and whether it goes by its own name.
    joined: Vec<(usize, usize, Tree, bool)>,
}

impl Uses {
    /// None found so far.
    pub(super) fn new(watched: Watched, strict: bool) -> Box<Uses> {
        Box::new(Uses {
            watched,
            strict,
            names: Vec::new(),
            texts: Vec::new(),
            plain: Vec::new(),
            joined: Vec::new(),
        })
    }

    /// A source by its table's own name.
    pub(super) fn plain_source(&mut self, id: usize) {
        self.plain.push(id);
    }

    /// A table of FROM, or one that is written.
    pub(super) fn source(&mut self, table: &Table, id: usize, name: &Name, has_alias: bool) {
        if !has_alias {
            self.plain_source(id);
        }
        self.table(table, name);
    }

    /// A table that is named.
    pub(super) fn table(&mut self, table: &Table, name: &Name) {
        if matches!(&self.watched, Watched::Table(tree) if *tree == table.tree) {
            self.names.push(name.offset);
        }
    }

    /// A table of a parenthesized join, as names outside see it.
    pub(super) fn joined(&mut self, table: &ScopeTable, source: usize, base: usize) {
        if let Some((tree, is_plain)) = self.direct(table) {
            let tree = tree.clone();
            self.joined.push((source, base, tree, is_plain));
        }
    }

    /// The table whose own columns these are, and whether it goes by its own name.
    fn direct<'t>(&'t self, table: &'t ScopeTable) -> Option<(&'t Tree, bool)> {
        match &table.columns {
            ScopeColumns::Table(of) => Some((&of.tree, self.plain.contains(&table.source))),
            ScopeColumns::NewRow(of) => Some((&of.tree, false)),
            ScopeColumns::Query(_, base) => {
                let is_it =
                    |join: &&(usize, usize, Tree, bool)| (join.0, join.1) == (table.source, *base);
                let join = self.joined.iter().find(is_it)?;
                Some((&join.2, join.3))
            }
            _ => None,
        }
    }

    fn is_watched(&self, table: &ScopeTable, column: &str) -> bool {
        let Watched::Column(tree, at) = &self.watched else {
            return false;
        };
        let is_it = self.direct(table).is_some_and(|(of, _)| of == tree);
        is_it && table.position(column) == Some(*at)
    }

    fn qualifier(&mut self, table: &ScopeTable, name: &Name) {
        let is_watched = |tree| matches!(&self.watched, Watched::Table(watched) if watched == tree);
        if let Some((tree, true)) = self.direct(table)
            && is_watched(tree)
        {
            self.names.push(name.offset);
        }
    }

    /// A name that a frame knows, of one of its tables or else as an alias.
    pub(super) fn name(&mut self, frame: &Frame, qualifier: Option<&Name>, name: &Name) {
        let is_meant =
            |t: &&ScopeTable| qualifier.is_none_or(|q| t.name.eq_ignore_ascii_case(&q.text));
        let mut tables = frame.tables.iter().filter(is_meant);
        let has_it = |t: &&ScopeTable| t.position(&name.text).is_some();
        if let Some(table) = tables.clone().find(has_it) {
            if self.is_watched(table, &name.text) {
                self.names.push(name.offset);
            }
            if let Some(qualifier) = qualifier {
                self.qualifier(table, qualifier);
            }
        } else if let Some(qualifier) = qualifier
            && is_rowid_name(&name.text)
            && let Some(table) = tables.find(|t| t.rowid().is_some())
        {
            self.qualifier(table, qualifier);
        }
    }

    /// `table.*`
    pub(super) fn star(&mut self, frame: &Frame, name: &Name) {
        let is_meant = |t: &&ScopeTable| t.name.eq_ignore_ascii_case(&name.text);
        if let Some(table) = frame.tables.iter().find(is_meant) {
            self.qualifier(table, name);
        }
    }

    /// A name of USING, which both of these tables have. It can be another one only if it
    /// is the same column on both sides.
    pub(super) fn merged(&mut self, left: &ScopeTable, right: &ScopeTable, name: &Name) {
        if self.is_watched(left, &name.text) && self.is_watched(right, &name.text) {
            self.names.push(name.offset);
        }
    }

    /// A column as a key part of its table's index, or where a trigger names it for itself.
    pub(super) fn key_column(&mut self, table: &Table, column: usize, place: usize) {
        let is_it = |tree: &Tree, at| *tree == table.tree && at == column;
        if matches!(&self.watched, Watched::Column(tree, at) if is_it(tree, *at)) {
            self.names.push(place);
        }
    }

    /// A name in double quotes that is nowhere.
    pub(super) fn text(&mut self, name: &Name) -> Result<()> {
        if self.strict {
            return Err(Error::sql(format!(
                "no such column: \"{}\" - should this be a string literal in single-quotes?",
                name.text
            )));
        }
        self.texts.push(name.offset);
        Ok(())
    }
}

impl Binder<'_> {
    /// Binds common table expressions by themselves, which are otherwise bound where they
    /// are named only. What is wrong with one that nobody names is of no importance.
    pub(super) fn uses_of_ctes(&mut self, outer: usize) {
        for at in outer..self.ctes.len() {
            if let Some(cte) = self.ctes.get(at).map(|scoped| scoped.cte.clone()) {
                let _ = self.cte_query(at, &cte);
            }
        }
    }

    /// ORDER BY terms of a compound that are expressions of this SELECT's result, in whose
    /// frame they are bound; they are taken out of `terms`.
    pub(super) fn uses_of_order(
        &mut self,
        core: &SelectCore,
        outputs: &[super::expr::Expr],
        terms: &mut Vec<&SortTerm>,
    ) {
        let SelectCore::Select { columns, .. } = core else {
            return;
        };
        let is_alias = |name: &Name| {
            columns.iter().any(|column| {
                matches!(column, ast::ResultColumn::Expr { alias: Some(alias), .. }
                    if alias.text.eq_ignore_ascii_case(&name.text))
            })
        };
        terms.retain(|term| {
            let mut inner = &term.expr;
            while let ExprKind::Collate(operand, _) = &inner.kind {
                inner = operand;
            }
            match &inner.kind {
                ExprKind::Literal(Literal::Integer(_)) => return false,
                ExprKind::Column(name) if is_alias(name) => return false,
                _ => {}
            }
            let before = self.uses.as_ref().map_or(0, |uses| uses.names.len());
            let is_one = self.expr(inner).is_ok_and(|bound| outputs.contains(&bound));
            if !is_one && let Some(uses) = &mut self.uses {
                uses.names.truncate(before);
            }
            !is_one
        });
    }
}
