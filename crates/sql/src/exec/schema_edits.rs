//! What a statement changes in the rows of sqlite_schema: it finds them in the schemas that
//! it was planned with, and notes what it made of them, so that nobody has to read all rows
//! to know what the schema is then.

use std::sync::Arc;

use fulgurite_store::{Key, Tree};

use super::ddl::encode_row;
use super::txns::Txns;
use crate::error::{Error, Result};
use crate::schema::{RowChanges, Schema, SchemaRow};

/// See the module.
pub struct SchemaEdits(Vec<Edited>);

/// A schema, and how it differs by now.
pub struct Edited {
    /// As it was when the statement began.
    pub schema: Arc<Schema>,
    /// What the statement changed.
    pub rows: RowChanges,
}

impl SchemaEdits {
    /// Of a statement that may change these schemas, which are those that its transaction
    /// sees.
    pub fn of(schemas: impl IntoIterator<Item = Arc<Schema>>) -> Self {
        let edited = |schema| Edited {
            schema,
            rows: RowChanges::new(),
        };
        Self(schemas.into_iter().map(edited).collect())
    }

    /// Those that were changed.
    pub fn changed(self) -> impl Iterator<Item = Edited> {
        self.0.into_iter().filter(|edited| !edited.rows.is_empty())
    }

    fn in_tree(&mut self, tree: &Tree) -> Result<&mut Edited> {
        let mut all = self.0.iter_mut();
        let found = all.find(|edited| edited.schema.tree() == tree);
        found.ok_or_else(|| Error::misuse("a change of a schema that is not open"))
    }

    /// The rows that are as asked for, as they were when the statement began.
    pub fn find(
        &mut self,
        tree: &Tree,
        is_it: impl Fn(&SchemaRow) -> bool,
    ) -> Result<Vec<(i64, Arc<SchemaRow>)>> {
        let rows = self.in_tree(tree)?.schema.placed_rows();
        let found = rows.filter(|(_, row)| is_it(row));
        Ok(found.map(|(rowid, row)| (rowid, Arc::clone(row))).collect())
    }

    /// Adds a row.
    pub fn add(&mut self, tree: &Tree, row: SchemaRow, txn: &mut Txns) -> Result<()> {
        let rowid = txn.allocate_rowid(tree)?;
        self.put(tree, rowid, row, txn)
    }

    /// Puts a row in place of another one.
    pub fn put(&mut self, tree: &Tree, rowid: i64, row: SchemaRow, txn: &mut Txns) -> Result<()> {
        let edited = self.in_tree(tree)?;
        txn.put(tree, Key::Int(rowid), &encode_row(&row)?)?;
        edited.rows.insert(rowid, Some(Arc::new(row)));
        Ok(())
    }

    /// Removes a row.
    pub fn remove(&mut self, tree: &Tree, rowid: i64, txn: &mut Txns) -> Result<()> {
        let edited = self.in_tree(tree)?;
        txn.delete(tree, Key::Int(rowid))?;
        edited.rows.insert(rowid, None);
        Ok(())
    }
}
