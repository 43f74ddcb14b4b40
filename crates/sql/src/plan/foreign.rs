//! What foreign keys ask of a statement that writes.
//!
//! A *key* is what a child's row refers to its parent's row with, a *reference* the same
//! thing seen from the parent. A plan holds those that its statement may break or mend, of
//! the table that it writes to and of those that actions (CASCADE and the like) reach from
//! there. Actions go round in circles as tables do, so tables are numbered, and each has
//! its place once however it is reached.

use std::sync::Arc;

use fulgurite_store::{Tree, TreeId};

use super::physical::{GeneratedColumn, TableWriter};
use super::trigger::Timed;
use crate::ast::ForeignAction;
use crate::schema::{Index, Table};
use crate::value::{Affinity, Collation};

/// See the module.
#[derive(Debug)]
pub struct ForeignKeys {
    /// The statement's table first, then those that actions reach or that hold children.
    pub tables: Vec<ForeignTable>,
    /// The statement itself may leave a row without its parent. If not, it only mends what
    /// earlier ones of its transaction left.
    pub may_violate: bool,
    /// It inserts one row and does nothing else to keys, so that nothing later brings the
    /// parent.
    pub inserts_one: bool,
}

/// A table among them.
#[derive(Debug)]
pub struct ForeignTable {
    /// The table.
    pub table: Arc<Table>,
    /// How its rows are written, where actions do that.
    pub writer: Option<TableWriter>,
    /// Its generated columns, where it is a child.
    pub generated: Vec<GeneratedColumn>,
    /// Its foreign keys.
    pub keys: Vec<ChildKey>,
    /// The foreign keys that refer to it.
    pub references: Vec<Reference>,
}

/// A foreign key of a table.
#[derive(Debug, Clone)]
pub struct ChildKey {
    /// Its number in the table.
    pub number: usize,
    /// The child's columns, in the order of the parent's key.
    pub columns: Vec<usize>,
    /// None: the parent table is not there, which only DROP TABLE takes.
    pub parent: Option<ParentKey>,
    /// Checked at COMMIT.
    pub deferred: bool,
    /// The table is its own parent.
    pub of_itself: bool,
    /// The statement may write keys, so that it looks for parents.
    pub checked: bool,
    /// An autocommitted statement may look for parents, whose trees it has named.
    pub named: bool,
}

/// Where the parent's rows are found.
#[derive(Debug, Clone)]
pub struct ParentKey {
    /// The parent.
    pub table: Arc<Table>,
    /// Columns of the key.
    pub columns: Vec<usize>,
    /// The unique index; None: the key is the rowid.
    pub index: Option<Arc<Index>>,
}

/// A foreign key that refers to a table.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The child, by number.
    pub child: usize,
    /// The number of the key there.
    pub number: usize,
    /// How parent and child compare, column by column.
    pub parts: Vec<ReferencePart>,
    /// The child's columns that change with them.
    pub touched: Vec<usize>,
    /// How the children of a parent are found to be counted.
    pub counted: ChildSearch,
    /// The same for actions, which SQLite compares in another way: the parent's column, if
    /// it is not the rowid, has no affinity there.
    pub acted: ChildSearch,
    /// ON DELETE
    pub on_delete: ForeignAction,
    /// ON UPDATE
    pub on_update: ForeignAction,
    /// Checked at COMMIT.
    pub deferred: bool,
    /// The table is its own parent.
    pub of_itself: bool,
    /// The statement may take parents away, so that it looks for children.
    pub checked: bool,
    /// An autocommitted statement may look for children, whose trees it has named.
    pub named: bool,
    /// The child's triggers that the action for a parent that goes fires.
    pub delete_fires: Timed,
    /// The same of a parent whose key changes.
    pub update_fires: Timed,
}

/// A column of the parent's key and the child's that refers to it, compared as SQLite
/// compares them: the parent's first, with its collation.
#[derive(Debug, Clone)]
pub struct ReferencePart {
    /// The parent's column.
    pub parent: usize,
    /// The child's.
    pub child: usize,
    /// Of the parent.
    pub collation: Collation,
}

/// How the children of a parent are found.
#[derive(Debug, Clone)]
pub struct ChildSearch {
    /// Of each part, applied to both sides.
    pub affinities: Vec<Affinity>,
    /// Where they are looked for.
    pub access: ChildAccess,
}

/// Where the children of a parent are looked for.
#[derive(Debug, Clone)]
pub enum ChildAccess {
    /// All rows are looked at.
    Scan,
    /// This part of the key is the child's rowid.
    Rowid(usize),
    /// The first columns of an index hold these parts of the key.
    Index(Arc<Index>, Vec<usize>),
}

impl ChildSearch {
    /// Whether an index entry alone tells that its row is a child.
    pub fn is_told_by_index(&self) -> bool {
        matches!(&self.access, ChildAccess::Index(_, parts) if parts.len() == self.affinities.len())
    }
}

impl ForeignKeys {
    /// Whether rows that go may be missed, or make good what was left for COMMIT, where all
    /// that foreign keys ask may be.
    pub fn may_mend(&self, postpones: bool) -> bool {
        let is_left = |key: &ChildKey| key.deferred || postpones;
        let first = self.tables.first();
        first.is_some_and(|t| !t.references.is_empty() || t.keys.iter().any(is_left))
    }

    /// The trees that an autocommitted statement looks into, beside those it writes.
    pub fn looked_into(&self) -> impl Iterator<Item = &Tree> {
        self.tables.iter().flat_map(|table| {
            let keys = table.keys.iter().filter(|key| key.checked);
            let parents = keys.filter_map(|key| key.parent.as_ref()).map(|parent| {
                let index = parent.index.as_ref();
                index.map_or(&parent.table.tree, |index| &index.tree)
            });
            let references = table.references.iter().filter(|it| it.checked);
            let children = references.flat_map(|reference| {
                let child = self.tables.get(reference.child);
                let rows = child.map(|child| &child.table.tree);
                [&reference.counted, &reference.acted]
                    .into_iter()
                    .flat_map(move |search| {
                        let index = match &search.access {
                            ChildAccess::Index(index, _) => Some(&index.tree),
                            _ => None,
                        };
                        let rows = rows.filter(|_| !search.is_told_by_index());
                        rows.into_iter().chain(index)
                    })
            });
            parents.chain(children)
        })
    }

    /// Whether it looks into this index, or actions write to it.
    pub fn concerns(&self, index: &Tree) -> bool {
        self.looked_into().any(|tree| tree == index)
            || self.tables.iter().any(|table| {
                let writer = table.writer.as_ref();
                writer.is_some_and(|w| w.indexes.iter().any(|i| i.index.tree == *index))
            })
    }

    /// Notes what may be looked into by an autocommitted statement that writes to these
    /// trees.
    pub fn name(&mut self, written: &[Tree]) {
        let number = |tree: &Tree| (tree.store_number(), tree.id());
        let mut named: Vec<(u64, TreeId)> = self.looked_into().map(number).collect();
        named.extend(written.iter().map(number));
        let tables = self.tables.iter();
        let rows: Vec<(u64, TreeId)> = tables.map(|t| number(&t.table.tree)).collect();
        let is_named = |tree: &Tree| named.contains(&number(tree));
        for table in &mut self.tables {
            for key in &mut table.keys {
                key.named = key.parent.as_ref().is_none_or(|parent| {
                    let index = parent.index.as_ref();
                    is_named(index.map_or(&parent.table.tree, |index| &index.tree))
                });
            }
            for reference in &mut table.references {
                let has_rows = rows
                    .get(reference.child)
                    .is_some_and(|id| named.contains(id));
                let counted = &reference.counted;
                reference.named = match &counted.access {
                    ChildAccess::Index(index, _) => {
                        is_named(&index.tree) && (has_rows || counted.is_told_by_index())
                    }
                    _ => has_rows,
                };
            }
        }
    }
}
