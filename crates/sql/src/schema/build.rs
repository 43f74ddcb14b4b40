//! CREATE TABLE to what it describes.
//!
//! Only the text decides: which columns alias the rowid, which constraints get
//! an automatic index and how it is called. Creating a table and opening a
//! database run the same code, so the two cannot disagree.

use super::collations::declared_collation;
use super::defaults::{is_constant, literal_value};
use super::shape_checks;
use super::table::{
    Check, Column, ConflictAction, ForeignKey, Generated, IndexColumn, IndexOrigin, StrictType,
};
use super::without_rowid::IntegerKey;
use crate::ast;
use crate::ast::{ColumnConstraint, TableConstraintKind};
use crate::error::{Error, Result};
use crate::parse::MAX_COLUMNS;
use crate::value::{Affinity, Collation, Value};

/// A table before its trees are known.
#[derive(Debug)]
pub struct TableShape {
    /// Columns.
    pub columns: Vec<Column>,
    /// The INTEGER PRIMARY KEY column.
    pub rowid_alias: Option<usize>,
    /// AUTOINCREMENT
    pub autoincrement: bool,
    /// ON CONFLICT of the INTEGER PRIMARY KEY.
    pub rowid_conflict: ConflictAction,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// STRICT
    pub strict: bool,
    /// WITHOUT ROWID
    pub without_rowid: bool,
    /// Automatic indexes in order.
    pub automatic: Vec<IndexShape>,
}

impl TableShape {
    /// Whether some columns have a collation of the program.
    pub fn asks_program(&self) -> bool {
        self.columns.iter().any(|c| c.collation.is_of_program())
    }

    /// Which automatic index is the primary key of a WITHOUT ROWID table.
    pub fn key(&self) -> Option<usize> {
        let is_key = |index: &IndexShape| index.origin == IndexOrigin::PrimaryKey;
        let key = self.automatic.iter().position(is_key);
        key.filter(|_| self.without_rowid)
    }

    /// Whether some columns are generated.
    pub fn has_generated(&self) -> bool {
        self.columns.iter().any(|c| c.generated.is_some())
    }
}

/// An automatic index before its tree is known.
#[derive(Debug)]
pub struct IndexShape {
    /// Name.
    pub name: String,
    /// Key parts.
    pub columns: Vec<IndexColumn>,
    /// ON CONFLICT, if any constraint of this key has it.
    pub conflict: Option<ConflictAction>,
    /// UNIQUE or PRIMARY KEY.
    pub origin: IndexOrigin,
}

/// What a CREATE TABLE with column definitions describes.
pub fn table_shape(create: &ast::CreateTable) -> Result<TableShape> {
    let shape = declared_shape(create)?;
    shape_checks::check_generated(&shape)?;
    Ok(shape)
}

/// The same as far as its definitions make sense each by itself.
pub fn declared_shape(create: &ast::CreateTable) -> Result<TableShape> {
    let name = &create.name.name.text;
    let ast::TableBody::Columns {
        columns,
        constraints,
        without_rowid,
        strict,
    } = &create.body
    else {
        return Err(Error::corrupt(format!(
            "table {name} has no column definitions"
        )));
    };
    let mut builder = Builder {
        table: name,
        shape: TableShape {
            columns: Vec::with_capacity(columns.len()),
            rowid_alias: None,
            autoincrement: false,
            rowid_conflict: ConflictAction::Abort,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            strict: *strict,
            without_rowid: *without_rowid,
            automatic: Vec::new(),
        },
        has_primary_key: false,
        integer_key: None,
    };
    if columns.len() > MAX_COLUMNS {
        return Err(Error::sql(format!("too many columns on {name}")));
    }
    for column in columns {
        builder.column(column)?;
    }
    for constraint in constraints {
        builder.constraint(constraint)?;
    }
    if *strict {
        shape_checks::check_strict(name, &mut builder.shape)?;
    }
    if *without_rowid {
        builder.without_rowid()?;
    }
    Ok(builder.shape)
}

/// A table whose definitions are being read.
pub(super) struct Builder<'a> {
    pub(super) table: &'a str,
    pub(super) shape: TableShape,
    pub(super) has_primary_key: bool,
    /// The INTEGER PRIMARY KEY of a WITHOUT ROWID table.
    pub(super) integer_key: Option<IntegerKey>,
}

impl Builder<'_> {
    fn column(&mut self, def: &ast::ColumnDef) -> Result<()> {
        let name = &def.name.text;
        if self
            .shape
            .columns
            .iter()
            .any(|c| c.name.eq_ignore_ascii_case(name))
        {
            return Err(
                Error::sql(format!("duplicate column name: {name}")).with_offset(def.name.offset)
            );
        }
        // The collation first: a UNIQUE before it uses it too.
        let mut collation = Collation::Binary;
        for constraint in &def.constraints {
            if let ColumnConstraint::Collate(name) = constraint {
                collation = declared_collation(name)?;
            }
        }
        let at = self.shape.columns.len();
        let is_any = self.shape.strict && def.decl_type == "ANY";
        let strict = StrictType::declared(&def.decl_type).filter(|_| self.shape.strict);
        self.shape.columns.push(Column {
            name: name.clone(),
            decl_type: def.decl_type.clone(),
            affinity: match is_any {
                true => Affinity::Blob,
                false => Affinity::of_declared_type(&def.decl_type),
            },
            collation,
            not_null: None,
            default: None,
            missing: Value::Null,
            primary_key: 0,
            generated: None,
            strict,
        });
        for constraint in &def.constraints {
            self.column_constraint(at, constraint)?;
        }
        Ok(())
    }

    fn column_constraint(&mut self, at: usize, constraint: &ColumnConstraint) -> Result<()> {
        match constraint {
            ColumnConstraint::PrimaryKey {
                descending,
                conflict,
                autoincrement,
            } => {
                self.primary_key(&[at], *descending, *conflict, *autoincrement, None)?;
            }
            ColumnConstraint::Unique(conflict) => {
                let columns = vec![self.key_column(at, None, false)?];
                self.automatic(columns, *conflict, IndexOrigin::Unique)?;
            }
            ColumnConstraint::NotNull(conflict) => {
                self.edit(at, |c| c.not_null = Some(conflict.unwrap_or_default()))
            }
            ColumnConstraint::Default(_) if self.is_generated(at) => {
                return Err(Error::sql("cannot use DEFAULT on a generated column"));
            }
            ColumnConstraint::Default(expr) => {
                if !is_constant(expr) {
                    return Err(Error::sql(format!(
                        "default value of column [{}] is not constant",
                        self.column_name(at)
                    )));
                }
                self.edit(at, |c| {
                    c.missing =
                        literal_value(expr).map_or(Value::Null, |v| c.affinity.apply_owned(v));
                    c.default = Some(expr.clone());
                });
            }
            ColumnConstraint::Check { name, expr, text } => {
                let label = name.clone().unwrap_or_else(|| text.clone());
                self.shape.checks.push(Check {
                    label,
                    expr: expr.clone(),
                });
            }
            ColumnConstraint::Collate(_) => {}
            ColumnConstraint::ForeignKey(key) => self.foreign_key(vec![at], key),
            ColumnConstraint::Defer(deferred) => {
                if let Some(key) = self.shape.foreign_keys.last_mut() {
                    key.deferred = *deferred;
                }
            }
            ColumnConstraint::Generated { expr, stored } => {
                let column = self.shape.columns.get(at);
                if self.is_generated(at) || column.is_some_and(|c| c.default.is_some()) {
                    let name = self.column_name(at);
                    return Err(Error::sql(format!("error in generated column \"{name}\"")));
                }
                let (expr, stored) = (expr.clone(), *stored);
                self.edit(at, |c| c.generated = Some(Generated { expr, stored }));
            }
        }
        Ok(())
    }

    fn constraint(&mut self, constraint: &ast::TableConstraint) -> Result<()> {
        match &constraint.kind {
            TableConstraintKind::PrimaryKey {
                columns,
                conflict,
                autoincrement,
            } => {
                let parts = self.parts(columns)?;
                let at: Vec<usize> = parts.iter().map(|(column, ..)| *column).collect();
                self.primary_key(&at, false, *conflict, *autoincrement, Some(&parts))?;
            }
            TableConstraintKind::Unique { columns, conflict } => {
                let parts = self.parts(columns)?;
                let columns = parts
                    .iter()
                    .map(|(at, coll, desc)| self.key_column(*at, *coll, *desc))
                    .collect::<Result<_>>()?;
                self.automatic(columns, *conflict, IndexOrigin::Unique)?;
            }
            TableConstraintKind::Check(expr, text) => {
                let label = constraint.name.clone().unwrap_or_else(|| text.clone());
                self.shape.checks.push(Check {
                    label,
                    expr: expr.clone(),
                });
            }
            TableConstraintKind::ForeignKey(columns, key) => {
                // One that is not there leaves fewer than the parent has: a mismatch.
                let position = |name: &ast::Name| {
                    let mut known = self.shape.columns.iter();
                    known.position(|c| c.name.eq_ignore_ascii_case(&name.text))
                };
                let columns = columns.iter().filter_map(position).collect();
                self.foreign_key(columns, key);
            }
        }
        Ok(())
    }

    fn foreign_key(&mut self, columns: Vec<usize>, key: &ast::ForeignKey) {
        let names = |list: &Vec<ast::Name>| list.iter().map(|n| n.text.clone()).collect();
        self.shape.foreign_keys.push(ForeignKey {
            columns,
            parent: key.parent.text.clone(),
            parent_columns: key.parent_columns.as_ref().map(names),
            on_delete: key.on_delete,
            on_update: key.on_update,
            deferred: key.deferred,
        });
    }

    fn column_name(&self, at: usize) -> &str {
        self.shape.columns.get(at).map_or("", |c| c.name.as_str())
    }

    fn is_generated(&self, at: usize) -> bool {
        let column = self.shape.columns.get(at);
        column.is_some_and(|c| c.generated.is_some())
    }

    pub(super) fn edit(&mut self, at: usize, f: impl FnOnce(&mut Column)) {
        if let Some(column) = self.shape.columns.get_mut(at) {
            f(column);
        }
    }
}
