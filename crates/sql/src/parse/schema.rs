//! Lowering of CREATE TABLE, CREATE INDEX and ALTER TABLE.

use sqlite3_parser::ast as raw;
use sqlite3_parser::dialect::TokenType as T;

use super::dml::conflict;
use super::options::TableOptions;
use super::{Lowering, unquote};
use crate::ast::{
    AlterAction, ColumnConstraint, ColumnDef, CreateIndex, CreateTable, CreateView, Expr,
    ForeignAction, ForeignKey, Name, SortTerm, Statement, TableBody, TableConstraint,
    TableConstraintKind,
};
use crate::error::{Error, Result};

impl Lowering<'_> {
    pub(super) fn create_table(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::CreateTable {
            temporary,
            if_not_exists,
            tbl_name,
            body,
        } = stmt
        else {
            return Err(Error::misuse("not a CREATE TABLE"));
        };
        self.tokens.move_behind_head(T::TK_TABLE, *if_not_exists);
        let name = self.qualified(tbl_name);
        let text = self.text_from(&name.name);
        let body = match body {
            raw::CreateTableBody::AsSelect(select) => {
                TableBody::Select(Box::new(self.select(select)?))
            }
            raw::CreateTableBody::ColumnsAndConstraints {
                columns,
                constraints,
                ..
            } => {
                let options = TableOptions::read(&self.tokens)?;
                // Each is found by its place: its words may stand in those before it, too.
                let mut places = self.tokens.definitions().into_iter();
                let mut defined = Vec::with_capacity(columns.len());
                for column in columns.iter() {
                    places.next().inspect(|place| self.tokens.move_to(*place));
                    defined.push(self.column(column)?);
                }
                places.next().inspect(|place| self.tokens.move_to(*place));
                let columns = defined;
                let mut list = Vec::new();
                for constraint in constraints.unwrap_or(&[]) {
                    list.push(self.table_constraint(constraint)?);
                }
                TableBody::Columns {
                    columns,
                    constraints: list,
                    without_rowid: options.without_rowid,
                    strict: options.strict,
                }
            }
        };
        let (if_not_exists, temporary) = (*if_not_exists, *temporary);
        Ok(Statement::CreateTable(Box::new(CreateTable {
            name,
            if_not_exists,
            temporary,
            text,
            body,
        })))
    }

    pub(super) fn create_index(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::CreateIndex {
            unique,
            if_not_exists,
            idx_name,
            tbl_name,
            columns,
            where_clause,
        } = stmt
        else {
            return Err(Error::misuse("not a CREATE INDEX"));
        };
        self.tokens.move_behind_head(T::TK_INDEX, *if_not_exists);
        let name = self.qualified(idx_name);
        let text = self.text_from(&name.name);
        let table = self.name(tbl_name.0);
        let columns = self.sort_terms(columns)?;
        let filter = where_clause.as_ref().map(|e| self.expr(e)).transpose()?;
        let (unique, if_not_exists) = (*unique, *if_not_exists);
        let index = CreateIndex {
            unique,
            if_not_exists,
            name,
            table,
            columns,
            filter,
            text,
        };
        Ok(Statement::CreateIndex(Box::new(index)))
    }

    pub(super) fn create_view(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let raw::Stmt::CreateView {
            temporary,
            if_not_exists,
            view_name,
            columns,
            select,
        } = stmt
        else {
            return Err(Error::misuse("not a CREATE VIEW"));
        };
        self.tokens.move_behind_head(T::TK_VIEW, *if_not_exists);
        let name = self.qualified(view_name);
        let text = self.text_from(&name.name);
        let columns = columns
            .unwrap_or(&[])
            .iter()
            .map(|c| self.name(c.col_name.0))
            .collect();
        self.databases.clear();
        let select = self.select(select)?;
        if !self.parameters.is_empty() {
            return Err(Error::sql("parameters are not allowed in views"));
        }
        let (if_not_exists, temporary) = (*if_not_exists, *temporary);
        let view = CreateView {
            name,
            if_not_exists,
            temporary,
            columns,
            select,
            databases: std::mem::take(&mut self.databases),
            text,
        };
        Ok(Statement::CreateView(Box::new(view)))
    }

    /// The statement's text from a name to its end, without the semicolon.
    pub(super) fn text_from(&self, name: &Name) -> String {
        let list = self.tokens.list();
        let from = list
            .iter()
            .position(|t| t.start == name.offset)
            .unwrap_or(0);
        let semicolon = list.last().is_some_and(|t| t.kind == T::TK_SEMI);
        let to = list.len().saturating_sub(if semicolon { 2 } else { 1 });
        self.tokens.span(from, to).to_owned()
    }

    pub(super) fn column(&mut self, column: &raw::ColumnDefinition<'_>) -> Result<ColumnDef> {
        let name = self.name(column.col_name.0);
        let decl_type = match &column.col_type {
            Some(declared) => self.declared_type(declared),
            None => String::new(),
        };
        let mut constraints = Vec::with_capacity(column.constraints.len());
        for constraint in column.constraints {
            constraints.extend(self.column_constraint(&name.text, constraint)?);
        }
        Ok(ColumnDef {
            name,
            decl_type,
            constraints,
        })
    }

    /// The text of a declared type, which begins at the position: its words and, if it
    /// has one, the size in parentheses. A quoted word may hold blanks.
    fn declared_type(&mut self, declared: &raw::Type<'_>) -> String {
        let from = self.tokens.position();
        let mut to = from;
        let mut rest = declared.name;
        while let Some(token) = self.tokens.list().get(to) {
            rest = match rest.strip_prefix(self.tokens.text(*token)) {
                Some(rest) => rest.trim_start(),
                None => break,
            };
            if rest.is_empty() {
                break;
            }
            to += 1;
        }
        if declared.size.is_some() {
            to = self.tokens.find_outside(to + 2, |_| false);
        }
        self.tokens.move_to(to + 1);
        let first = self.tokens.list().get(from);
        let first = first.map_or("", |token| self.tokens.text(*token));
        type_name(first, self.tokens.span(from, to))
    }

    fn column_constraint(
        &mut self,
        column: &str,
        constraint: &raw::NamedColumnConstraint<'_>,
    ) -> Result<Option<ColumnConstraint>> {
        let name = constraint.name.as_ref().map(|n| self.name(n.0).text);
        Ok(Some(match &constraint.constraint {
            raw::ColumnConstraint::PrimaryKey {
                order,
                conflict_clause,
                auto_increment,
            } => ColumnConstraint::PrimaryKey {
                descending: *order == Some(raw::SortOrder::Desc),
                conflict: conflict_clause.map(conflict),
                autoincrement: *auto_increment,
            },
            raw::ColumnConstraint::NotNull { nullable: true, .. } => return Ok(None),
            raw::ColumnConstraint::NotNull {
                conflict_clause, ..
            } => ColumnConstraint::NotNull(conflict_clause.map(conflict)),
            raw::ColumnConstraint::Unique(action) => ColumnConstraint::Unique(action.map(conflict)),
            raw::ColumnConstraint::Check(expr) => {
                let (expr, text) = self.check(expr)?;
                ColumnConstraint::Check { name, expr, text }
            }
            raw::ColumnConstraint::Default(expr) => {
                ColumnConstraint::Default(self.default_value(expr)?)
            }
            raw::ColumnConstraint::Defer(defer) => ColumnConstraint::Defer(is_deferred(defer)),
            raw::ColumnConstraint::Collate { collation_name } => {
                ColumnConstraint::Collate(self.name(collation_name.0))
            }
            raw::ColumnConstraint::ForeignKey {
                clause,
                defer_clause,
            } => ColumnConstraint::ForeignKey(self.foreign_key(clause, defer_clause.as_ref())),
            raw::ColumnConstraint::Generated { expr, typ } => {
                let is = |word: &str| typ.as_ref().is_some_and(|t| t.0.eq_ignore_ascii_case(word));
                let stored = is("stored");
                if typ.is_some() && !stored && !is("virtual") {
                    let message = format!("error in generated column \"{column}\"");
                    return Err(Error::sql(message).with_hint("it is VIRTUAL or STORED"));
                }
                let expr = self.expr(expr)?;
                ColumnConstraint::Generated { expr, stored }
            }
        }))
    }

    /// `DEFAULT name` is a string, as SQLite has it.
    fn default_value(&mut self, expr: &raw::Expr<'_>) -> Result<Expr> {
        use crate::ast::{ExprKind, Literal};
        // A literal is known by its place alone, and PRAGMA table_info shows its text.
        let kind = |at: usize| self.tokens.kind(at);
        let is_set_default = |at: usize| at > 0 && kind(at - 1) == Some(T::TK_SET);
        let default = (self.tokens.position()..self.tokens.list().len())
            .find(|at| kind(*at) == Some(T::TK_DEFAULT) && !is_set_default(*at));
        if let Some(default) = default {
            self.tokens.move_to(default + 1);
        }
        let mut lowered = self.expr(expr)?;
        if let ExprKind::Column(name) = &lowered.kind
            && !matches!(expr, raw::Expr::Parenthesized(_))
        {
            lowered.kind = match name.text.to_ascii_lowercase().as_str() {
                "true" => ExprKind::Literal(Literal::Integer(1)),
                "false" => ExprKind::Literal(Literal::Integer(0)),
                _ => ExprKind::Literal(Literal::Text(name.text.clone())),
            };
        }
        Ok(lowered)
    }

    fn check(&mut self, expr: &raw::Expr<'_>) -> Result<(Expr, String)> {
        let open = self
            .tokens
            .find(&[T::TK_CHECK])
            .map_or(self.tokens.position(), |i| i + 2);
        self.tokens.move_to(open);
        let close = self.tokens.find_outside(open, |_| false);
        let text = self.tokens.span(open, close.saturating_sub(1)).to_owned();
        let lowered = self.expr(expr)?;
        self.tokens.move_to(close);
        Ok((lowered, text))
    }

    fn table_constraint(
        &mut self,
        constraint: &raw::NamedTableConstraint<'_>,
    ) -> Result<TableConstraint> {
        let name = constraint.name.as_ref().map(|n| self.name(n.0).text);
        let kind = match &constraint.constraint {
            raw::TableConstraint::PrimaryKey {
                columns,
                auto_increment,
                conflict_clause,
            } => TableConstraintKind::PrimaryKey {
                columns: self.key_columns(columns)?,
                conflict: conflict_clause.map(conflict),
                autoincrement: *auto_increment,
            },
            raw::TableConstraint::Unique {
                columns,
                conflict_clause,
            } => TableConstraintKind::Unique {
                columns: self.key_columns(columns)?,
                conflict: conflict_clause.map(conflict),
            },
            raw::TableConstraint::Check(expr, _) => {
                let (expr, text) = self.check(expr)?;
                TableConstraintKind::Check(expr, text)
            }
            raw::TableConstraint::ForeignKey {
                columns,
                clause,
                defer_clause,
            } => {
                let columns = columns.iter().map(|c| self.name(c.col_name.0)).collect();
                let rest = self.foreign_key(clause, defer_clause.as_ref());
                TableConstraintKind::ForeignKey(columns, rest)
            }
        };
        Ok(TableConstraint { name, kind })
    }

    fn foreign_key(
        &mut self,
        clause: &raw::ForeignKeyClause<'_>,
        defer: Option<&raw::DeferSubclause>,
    ) -> ForeignKey {
        let parent = self.name(clause.tbl_name.0);
        let columns = clause
            .columns
            .map(|list| list.iter().map(|c| self.name(c.col_name.0)).collect());
        let mut key = ForeignKey {
            parent,
            parent_columns: columns,
            on_delete: ForeignAction::NoAction,
            on_update: ForeignAction::NoAction,
            deferred: defer.is_some_and(is_deferred),
        };
        for arg in clause.args {
            match arg {
                raw::RefArg::OnDelete(action) => key.on_delete = foreign_action(*action),
                raw::RefArg::OnUpdate(action) => key.on_update = foreign_action(*action),
                raw::RefArg::OnInsert(_) | raw::RefArg::Match(_) => {}
            }
        }
        key
    }

    fn key_columns(&mut self, columns: &[raw::SortedColumn<'_>]) -> Result<Vec<SortTerm>> {
        self.sort_terms(columns)
    }

    pub(super) fn alter(
        &mut self,
        name: &raw::QualifiedName<'_>,
        body: &raw::AlterTableBody<'_>,
    ) -> Result<Statement> {
        self.tokens.move_behind_head(T::TK_TABLE, false);
        let name = self.qualified(name);
        let action = match body {
            raw::AlterTableBody::RenameTo(new) => AlterAction::RenameTable(self.name(new.0)),
            raw::AlterTableBody::RenameColumn { old, new } => {
                let written = old.0.to_owned();
                AlterAction::RenameColumn {
                    old: self.name(old.0),
                    written,
                    new: self.name(new.0),
                    quoted: new.0.starts_with(['"', '\'', '`', '[']),
                }
            }
            raw::AlterTableBody::DropColumn(column) => {
                AlterAction::DropColumn(self.name(column.0), column.0.to_owned())
            }
            raw::AlterTableBody::AddColumn(column) => {
                if let Some(add) = self.tokens.find(&[T::TK_ADD]) {
                    let word = self.tokens.kind(add + 1) == Some(T::TK_COLUMNKW);
                    self.tokens.move_to(add + 1 + usize::from(word));
                }
                let column = self.column(column)?;
                let text = self.text_from(&column.name);
                AlterAction::AddColumn(Box::new(column), text)
            }
            raw::AlterTableBody::AddConstraint(constraint) => {
                let first = self.tokens.find(&[T::TK_CONSTRAINT, T::TK_CHECK]);
                let text = first.map(|first| self.tokens.text_to_end(first));
                let TableConstraint { name, kind } = self.table_constraint(constraint)?;
                let TableConstraintKind::Check(expr, _) = kind else {
                    return Err(Error::misuse("another constraint than a CHECK"));
                };
                AlterAction::AddCheck {
                    name,
                    expr: Box::new(expr),
                    text: text.unwrap_or_default(),
                }
            }
            raw::AlterTableBody::DropConstraint(name) => {
                AlterAction::DropConstraint(self.name(name.0))
            }
            raw::AlterTableBody::SetColumnNotNull(column, _) => {
                let column = self.name(column.0);
                let not_null = self.tokens.find(&[T::TK_NOT]);
                let text = not_null.map(|first| self.tokens.text_to_end(first));
                AlterAction::SetNotNull(column, text.unwrap_or_default())
            }
            raw::AlterTableBody::DropColumnNotNull(column) => {
                AlterAction::DropNotNull(self.name(column.0))
            }
        };
        Ok(Statement::AlterTable { name, action })
    }
}

/// NOT DEFERRABLE keys are checked at once, whatever they are INITIALLY.
fn is_deferred(clause: &raw::DeferSubclause) -> bool {
    clause.deferrable && clause.init_deferred == Some(raw::InitDeferredPred::InitiallyDeferred)
}

fn foreign_action(action: raw::RefAct) -> ForeignAction {
    match action {
        raw::RefAct::NoAction => ForeignAction::NoAction,
        raw::RefAct::Restrict => ForeignAction::Restrict,
        raw::RefAct::SetNull => ForeignAction::SetNull,
        raw::RefAct::SetDefault => ForeignAction::SetDefault,
        raw::RefAct::Cascade => ForeignAction::Cascade,
    }
}

/// A type, of this first word, as SQLite shows it: its standard types in capitals, and of
/// one that begins with a quote what is within the first and the last character where there
/// is no other quote, else the first word.
fn type_name(first: &str, text: &str) -> String {
    const STANDARD: [&str; 6] = ["ANY", "BLOB", "INT", "INTEGER", "REAL", "TEXT"];
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'[' | b'`');
    let name = match text.as_bytes() {
        [open, inner @ .., _] if is_quote(open) => match inner.iter().any(is_quote) {
            true => unquote(first),
            false => text.get(1..text.len() - 1).unwrap_or(text).to_owned(),
        },
        _ => text.to_owned(),
    };
    let standard = STANDARD
        .iter()
        .find(|other| other.eq_ignore_ascii_case(&name));
    standard.map_or(name, |standard| (*standard).to_owned())
}
