//! Index entries of a row.

use crate::bind::expr::ExprKind;
use crate::error::{Error, Result};
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition, eval};
use crate::exec::range::key_column;
use crate::key::{self, KeyColumn};
use crate::plan::physical::IndexWriter;
use crate::schema::{Index, IndexOrigin, IndexTarget, Table};
use crate::value::Value;

/// How to make the entries of one index.
#[derive(Debug)]
pub struct KeyMaker {
    columns: Vec<KeyColumn>,
    /// The parts as columns of the row, if they are nothing else.
    plain: Option<Vec<usize>>,
}

/// An entry as bytes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// Another entry with this key would break uniqueness.
    pub exclusive: bool,
    /// The row is in the index at all (a partial index leaves rows out).
    pub present: bool,
}

impl KeyMaker {
    /// For an index.
    pub fn new(writer: &IndexWriter) -> Self {
        let plain = writer
            .key
            .iter()
            .map(|e| {
                if let ExprKind::Input(c) = e.kind {
                    Some(c)
                } else {
                    None
                }
            })
            .collect();
        Self {
            columns: writer.index.columns.iter().map(key_column).collect(),
            plain,
        }
    }

    /// The entry of a row.
    pub fn make(
        &self,
        writer: &IndexWriter,
        row: Row<'_>,
        rowid: i64,
        cx: &mut Context<'_, '_>,
        out: &mut Entry,
    ) -> Result<()> {
        out.present = match &writer.predicate {
            None => true,
            Some(predicate) => condition(predicate, row, cx)? == Some(true),
        };
        if !out.present {
            out.key.clear();
            out.value.clear();
            return Ok(());
        }
        let unique = writer.index.unique;
        out.exclusive = match &self.plain {
            Some(parts) => {
                let values = parts.iter().map(|c| row.get(*c));
                key::encode_entry(
                    &mut out.key,
                    &mut out.value,
                    &self.columns,
                    values,
                    rowid,
                    unique,
                )
            }
            None => {
                let values = writer
                    .key
                    .iter()
                    .map(|e| Ok(eval(e, row, cx)?.into_value()))
                    .collect::<Result<Vec<Value>>>()?;
                let values = values.iter().map(Value::as_ref);
                key::encode_entry(
                    &mut out.key,
                    &mut out.value,
                    &self.columns,
                    values,
                    rowid,
                    unique,
                )
            }
        };
        Ok(())
    }
}

/// The error of a duplicate in an index.
#[cold]
pub fn duplicate(table: &Table, index: &Index) -> Error {
    let mut names = Vec::new();
    for part in &index.columns {
        let column = match part.target {
            IndexTarget::Column(c) => table.columns.get(c).map(|c| c.name.as_str()),
            IndexTarget::Rowid => table
                .rowid_alias
                .and_then(|c| table.columns.get(c))
                .map(|c| c.name.as_str()),
            IndexTarget::Expr(_) => None,
        };
        match column {
            Some(column) => names.push(format!("{}.{column}", table.name)),
            None => return Error::unique(format!("index '{}'", index.name)),
        }
    }
    let names = names.join(", ");
    if index.origin == IndexOrigin::PrimaryKey {
        Error::primary_key(names)
    } else {
        Error::unique(names)
    }
}

/// The error of a duplicate rowid.
#[cold]
pub fn duplicate_rowid(table: &Table) -> Error {
    match table.rowid_alias.and_then(|c| table.columns.get(c)) {
        Some(column) => Error::primary_key(format!("{}.{}", table.name, column.name)),
        None => Error::rowid_taken(&table.name),
    }
}
