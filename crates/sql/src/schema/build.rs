//! CREATE statements to tables and indexes.
//!
//! Only the text decides: which columns alias the rowid, which constraints get
//! an automatic index and how it is called. Creating a table and opening a
//! database run the same code, so the two cannot disagree.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::collations::{declared_collation, indexed_collation};
use super::shape_checks;
use super::table::{
    Check, Column, ConflictAction, ForeignKey, Generated, Index, IndexColumn, IndexOrigin,
    IndexTarget, StrictType, Table,
};
use super::without_rowid::{IntegerKey, distinct_parts};
use crate::ast;
use crate::ast::{ColumnConstraint, ExprKind, Literal, SortTerm, TableConstraintKind};
use crate::error::{Error, Result};
use crate::value::{Affinity, Collation, Value};

/// Columns in a table, SQLite's limit.
const MAX_COLUMNS: usize = 2000;

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

    fn primary_key(
        &mut self,
        at: &[usize],
        descending: bool,
        conflict: Option<ConflictAction>,
        autoincrement: bool,
        parts: Option<&[(usize, Option<Collation>, bool)]>,
    ) -> Result<()> {
        if self.has_primary_key {
            return Err(Error::sql(format!(
                "table \"{}\" has more than one primary key",
                self.table
            )));
        }
        self.has_primary_key = true;
        if let [only] = at
            && !descending
            && self
                .shape
                .columns
                .get(*only)
                .is_some_and(|c| c.decl_type.eq_ignore_ascii_case("integer"))
        {
            self.edit(*only, |c| c.primary_key = 1);
            self.shape.autoincrement = autoincrement;
            match self.shape.without_rowid {
                true => {
                    let part = parts.and_then(|parts| parts.first());
                    self.integer_key = Some(IntegerKey {
                        at: *only,
                        descending: part.is_some_and(|(.., descending)| *descending),
                        conflict,
                    });
                }
                false => {
                    self.shape.rowid_alias = Some(*only);
                    self.shape.rowid_conflict = conflict.unwrap_or_default();
                }
            }
            return Ok(());
        }
        if autoincrement {
            return Err(Error::sql(
                "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY",
            ));
        }
        let mut columns: Vec<IndexColumn> = match parts {
            Some(parts) => parts
                .iter()
                .map(|(at, coll, desc)| self.key_column(*at, *coll, *desc))
                .collect::<Result<_>>()?,
            None => at
                .iter()
                .map(|at| self.key_column(*at, None, descending))
                .collect::<Result<_>>()?,
        };
        if self.shape.without_rowid {
            columns = distinct_parts(columns);
        }
        for (place, part) in (1..).zip(&columns) {
            if let IndexTarget::Column(at) = part.target
                && let Some(column) = self.shape.columns.get_mut(at)
                && column.primary_key == 0
            {
                column.primary_key = place;
            }
        }
        self.automatic(columns, conflict, IndexOrigin::PrimaryKey)
    }

    /// Adds an automatic index, unless an earlier one has the same key.
    pub(super) fn automatic(
        &mut self,
        columns: Vec<IndexColumn>,
        conflict: Option<ConflictAction>,
        origin: IndexOrigin,
    ) -> Result<()> {
        let same = |other: &IndexShape| {
            other.columns.len() == columns.len()
                && other.columns.iter().zip(&columns).all(|(a, b)| {
                    a.collation == b.collation
                        && match (&a.target, &b.target) {
                            (IndexTarget::Column(x), IndexTarget::Column(y)) => x == y,
                            (IndexTarget::Rowid, IndexTarget::Rowid) => true,
                            _ => false,
                        }
                })
        };
        if let Some(other) = self.shape.automatic.iter_mut().find(|i| same(i)) {
            if origin == IndexOrigin::PrimaryKey {
                other.origin = origin;
            }
            if let (Some(one), Some(another)) = (other.conflict, conflict)
                && one != another
            {
                return Err(Error::sql("conflicting ON CONFLICT clauses specified"));
            }
            other.conflict = other.conflict.or(conflict);
            return Ok(());
        }
        let name = format!(
            "sqlite_autoindex_{}_{}",
            self.table,
            self.shape.automatic.len() + 1
        );
        self.shape.automatic.push(IndexShape {
            name,
            columns,
            conflict,
            origin,
        });
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

    fn edit(&mut self, at: usize, f: impl FnOnce(&mut Column)) {
        if let Some(column) = self.shape.columns.get_mut(at) {
            f(column);
        }
    }

    pub(super) fn key_column(
        &self,
        at: usize,
        collation: Option<Collation>,
        descending: bool,
    ) -> Result<IndexColumn> {
        key_column(
            &self.shape.columns,
            self.shape.rowid_alias,
            at,
            collation,
            descending,
        )
    }

    fn parts(&self, terms: &[SortTerm]) -> Result<Vec<(usize, Option<Collation>, bool)>> {
        terms
            .iter()
            .map(|term| {
                let prohibited =
                    || Error::sql("expressions prohibited in PRIMARY KEY and UNIQUE constraints");
                let (name, collation) = plain_column(&term.expr)?.ok_or_else(prohibited)?;
                let at = self
                    .shape
                    .columns
                    .iter()
                    .position(|c| c.name.eq_ignore_ascii_case(name));
                let at = at.ok_or_else(|| match is_expression(&term.expr) {
                    true => prohibited(),
                    false => Error::sql(format!("no such column: {name}")),
                })?;
                Ok((at, collation, term.descending))
            })
            .collect()
    }
}

fn key_column(
    columns: &[Column],
    rowid_alias: Option<usize>,
    at: usize,
    collation: Option<Collation>,
    descending: bool,
) -> Result<IndexColumn> {
    let column = columns.get(at);
    let collation = collation
        .or(column.map(|c| c.collation))
        .unwrap_or_default();
    let collation = match rowid_alias == Some(at) {
        true => Collation::default(),
        false => indexed_collation(collation)?,
    };
    Ok(IndexColumn {
        target: if rowid_alias == Some(at) {
            IndexTarget::Rowid
        } else {
            IndexTarget::Column(at)
        },
        affinity: column.map(|c| c.affinity),
        collation,
        descending,
    })
}

/// The key parts of a CREATE INDEX over a table.
pub fn index_columns(create: &ast::CreateIndex, table: &Table) -> Result<Vec<IndexColumn>> {
    create
        .columns
        .iter()
        .map(|term| {
            if let Some((name, collation)) = plain_column(&term.expr)? {
                if let Some(at) = table
                    .columns
                    .iter()
                    .position(|c| c.name.eq_ignore_ascii_case(name))
                {
                    return key_column(
                        &table.columns,
                        table.rowid_alias,
                        at,
                        collation,
                        term.descending,
                    );
                }
                if !is_expression(&term.expr) {
                    return Err(
                        Error::sql(format!("no such column: {name}")).with_offset(term.expr.offset)
                    );
                }
            }
            let (expr, collation) = strip_collate(&term.expr)?;
            Ok(IndexColumn {
                target: IndexTarget::Expr(expr.clone()),
                affinity: None,
                collation: indexed_collation(collation.unwrap_or_default())?,
                descending: term.descending,
            })
        })
        .collect()
}

/// Makes an index of its shape.
pub fn automatic_index(shape: IndexShape, table: &str, tree: Tree) -> Arc<Index> {
    Arc::new(Index {
        name: shape.name,
        table: table.to_owned(),
        tree,
        columns: shape.columns,
        unique: true,
        conflict: shape.conflict.unwrap_or_default(),
        origin: shape.origin,
        predicate: None,
        sql: String::new(),
    })
}

fn strip_collate(expr: &ast::Expr) -> Result<(&ast::Expr, Option<Collation>)> {
    match &expr.kind {
        ExprKind::Collate(inner, name) => {
            let (inner, _) = strip_collate(inner)?;
            Ok((inner, Some(declared_collation(name)?)))
        }
        _ => Ok((expr, None)),
    }
}

/// Whether a name that is no column's is an expression: TRUE, FALSE, a string in double
/// quotes.
fn is_expression(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ExprKind::Collate(inner, _) => is_expression(inner),
        ExprKind::Column(name) => {
            let is = |word: &str| name.text.eq_ignore_ascii_case(word);
            name.double_quoted || is("true") || is("false")
        }
        _ => false,
    }
}

/// `name` or `name COLLATE c`; a string counts as a name here.
fn plain_column(expr: &ast::Expr) -> Result<Option<(&str, Option<Collation>)>> {
    let (inner, collation) = strip_collate(expr)?;
    Ok(match &inner.kind {
        ExprKind::Column(name) => Some((name.text.as_str(), collation)),
        ExprKind::Literal(Literal::Text(text)) => Some((text.as_str(), collation)),
        _ => None,
    })
}

/// A literal with signs.
pub fn literal_value(expr: &ast::Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Literal(literal) => match literal {
            Literal::Null => Some(Value::Null),
            Literal::Integer(n) => Some(Value::Integer(*n)),
            Literal::Real(r) => Some(Value::real(*r)),
            Literal::Text(t) => Some(Value::Text(t.clone().into_bytes())),
            Literal::Blob(b) => Some(Value::Blob(b.clone())),
            Literal::Current(_) => None,
        },
        ExprKind::Negate(inner) => literal_value(inner).map(|v| crate::value::negate(v.as_ref())),
        ExprKind::Plus(inner) => literal_value(inner),
        _ => None,
    }
}

/// Names no column, parameter or subquery.
fn is_constant(expr: &ast::Expr) -> bool {
    let all = |list: &[ast::Expr]| list.iter().all(is_constant);
    let option = |e: &Option<Box<ast::Expr>>| e.as_deref().is_none_or(is_constant);
    match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Column(name) => name.double_quoted,
        ExprKind::Qualified { .. }
        | ExprKind::Parameter(_)
        | ExprKind::InSelect { .. }
        | ExprKind::Exists(_)
        | ExprKind::Subquery(_) => false,
        ExprKind::Negate(e)
        | ExprKind::Plus(e)
        | ExprKind::BitNot(e)
        | ExprKind::Not(e)
        | ExprKind::Cast(e, _)
        | ExprKind::Collate(e, _)
        | ExprKind::IsNull { expr: e, .. } => is_constant(e),
        ExprKind::Binary(_, a, b) | ExprKind::Compare(_, a, b) => is_constant(a) && is_constant(b),
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::RowValue(list) => all(list),
        ExprKind::Between {
            expr, low, high, ..
        } => is_constant(expr) && is_constant(low) && is_constant(high),
        ExprKind::InList { expr, list, .. } => is_constant(expr) && all(list),
        ExprKind::Case {
            base,
            whens,
            otherwise,
        } => {
            option(base)
                && option(otherwise)
                && whens
                    .iter()
                    .all(|w| is_constant(&w.when) && is_constant(&w.then))
        }
        ExprKind::Like {
            expr,
            pattern,
            escape,
            ..
        } => is_constant(expr) && is_constant(pattern) && option(escape),
        ExprKind::Function(call) => call.over.is_none() && call.args.as_deref().is_none_or(all),
        ExprKind::Raise(_, message) => option(message),
    }
}
