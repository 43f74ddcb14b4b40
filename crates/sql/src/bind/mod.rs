//! Syntax trees to bound logical plans.
//!
//! The binder looks names up, checks what SQLite checks at prepare, and computes
//! every expression's properties ([`expr::Props`]) and every comparison's pair
//! ([`expr::Comparison`]). It reads the schema and nothing else; it changes
//! nothing. Recursion follows the syntax tree, whose depth the parser bounds.

mod aggregate;
mod alter;
mod alter_constraint;
mod call;
mod collate;
pub mod common;
mod create_index;
mod databases;
mod ddl;
mod distinct;
mod dml;
pub mod expr;
pub mod foreign;
mod from;
pub mod generated;
mod indexes;
mod insert;
mod join;
pub mod logical;
mod names;
mod order;
pub mod pragma;
mod props;
mod recursion;
mod refused;
mod reindex;
mod rows;
mod same;
mod scalar;
mod scope;
mod select;
mod source_columns;
mod table_function;
mod texts;
mod trigger;
mod trigger_uses;
mod unread;
mod upsert;
mod uses;
mod view_change;
mod view_columns;
mod window;

use crate::ast;
use crate::error::{Error, Result};
use crate::plan::Settings;
use crate::plan::physical::{Action, SchemaPlace};
use crate::schema::{Catalog, ConflictAction, Schema, Table};
use crate::value::collate::CollationName;
use common::Common;
use logical::{Bound, BoundProgram, LogicalSubquery};
use scope::{Frame, Level, Reach, ScopedCte};
use trigger::{Registered, TriggerRows};

/// Sources in a statement, views and common table expressions unfolded.
const MAX_SOURCES: usize = 4096;

/// What binding a statement gave.
#[derive(Debug)]
pub struct BoundStatement {
    /// The statement.
    pub bound: Bound,
    /// Subqueries of its expressions.
    pub subqueries: Vec<LogicalSubquery>,
    /// Registers used so far.
    pub registers: usize,
    /// Sources numbered so far.
    pub sources: usize,
    /// Common table expressions whose rows may be those of several sources.
    pub commons: Vec<Common>,
    /// The database whose schema it changes.
    pub place: Option<Box<SchemaPlace>>,
    /// It calls code of the program.
    pub calls_user: bool,
    /// Texts and collations of the schema are among what calls it.
    pub schema_calls_user: bool,
    /// Collations of its tables that the connection lacks.
    pub lacks: Vec<CollationName>,
}

impl BoundStatement {
    fn new(bound: Bound, binder: Binder<'_>) -> Self {
        Self {
            bound,
            subqueries: binder.subqueries,
            registers: binder.registers,
            sources: binder.sources,
            commons: binder.commons,
            place: binder.place,
            calls_user: binder.calls_user,
            schema_calls_user: binder.schema_calls_user,
            lacks: binder.lacks,
        }
    }
}

/// Binds one statement against the databases that are open, with the trigger programs that it may run.
pub fn bind(
    catalog: &Catalog,
    statement: &ast::Statement,
    settings: &Settings,
) -> Result<(BoundStatement, Vec<BoundProgram>)> {
    let mut binder = Binder::new(catalog, settings);
    let bound = binder.statement(statement)?;
    let registered = std::mem::take(&mut binder.programs);
    let programs = match registered.is_empty() {
        true => Vec::new(),
        false => trigger::bind_programs(catalog, settings, registered)?,
    };
    Ok((BoundStatement::new(bound, binder), programs))
}

/// State of binding one statement.
struct Binder<'a> {
    catalog: &'a Catalog,
    /// The database that all names belong to; None: any.
    home: Option<&'a Schema>,
    settings: &'a Settings,
    frames: Vec<Frame>,
    levels: Vec<Level>,
    subqueries: Vec<LogicalSubquery>,
    registers: usize,
    sources: usize,
    /// Common table expressions in scope, outermost WITH first.
    ctes: Vec<ScopedCte>,
    /// Those that have been named and may be shared.
    commons: Vec<Common>,
    /// The outermost frame that a name was found in, since a common table expression began
    /// to be bound; 0 where it may be further out.
    reached: usize,
    /// Views that are being unfolded, outermost first, with the stores that they are in.
    views: Vec<(String, u64)>,
    /// Aggregates whose arguments are being bound, outermost first.
    reaches: Vec<Reach>,
    /// Calls around what is being bound, in the innermost frame, that ask which values are texts of JSON.
    asks_json: usize,
    /// Sources with a column that may be a text of JSON, and the one that says whether it is.
    json_columns: Vec<(usize, usize)>,
    /// Where names stand that ALTER TABLE looks for.
    uses: Option<Box<uses::Uses>>,
    /// What OLD and NEW are, within a trigger.
    trigger: Option<Box<TriggerRows>>,
    /// The OR clause of the statement around, which goes before those within a trigger.
    policy: Option<ConflictAction>,
    /// Trigger programs that the statement may run.
    programs: Vec<Registered<'a>>,
    /// The database whose schema the statement changes.
    place: Option<Box<SchemaPlace>>,
    /// While what the schema says of a table is bound, for statements that may never ask for
    /// it: a function that there is not is an error only where it is called. The table's
    /// store.
    texts_of: Option<u64>,
    /// Code of the program is called.
    calls_user: bool,
    /// By texts or collations of the schema.
    schema_calls_user: bool,
    /// Collations of tables that the connection lacks.
    lacks: Vec<CollationName>,
}

impl<'a> Binder<'a> {
    fn new(catalog: &'a Catalog, settings: &'a Settings) -> Self {
        Binder {
            catalog,
            home: None,
            settings,
            frames: Vec::new(),
            levels: vec![Level::default()],
            subqueries: Vec::new(),
            registers: 0,
            sources: 0,
            ctes: Vec::new(),
            commons: Vec::new(),
            reached: usize::MAX,
            views: Vec::new(),
            reaches: Vec::new(),
            asks_json: 0,
            json_columns: Vec::new(),
            uses: None,
            trigger: None,
            policy: None,
            programs: Vec::new(),
            place: None,
            texts_of: None,
            calls_user: false,
            schema_calls_user: false,
            lacks: Vec::new(),
        }
    }
}

impl<'a> Binder<'a> {
    fn statement(&mut self, statement: &ast::Statement) -> Result<Bound> {
        use ast::Statement as S;
        match statement {
            S::Select(select) => Ok(Bound::Query(self.query(select)?)),
            S::Insert(insert) => self.with_ctes(&insert.ctes, |this| this.insert(insert)),
            S::Update(update) => self.with_ctes(&update.ctes, |this| this.update(update)),
            S::Delete(delete) => self.with_ctes(&delete.ctes, |this| this.delete(delete)),
            S::CreateTable(create) => self.create_table(create),
            S::CreateIndex(create) => self.create_index(create),
            S::DropTable { name, if_exists } => self.drop_table(name, *if_exists),
            S::DropIndex { name, if_exists } => self.drop_index(name, *if_exists),
            S::CreateView(create) => self.create_view(create),
            S::DropView { name, if_exists } => self.drop_view(name, *if_exists),
            S::CreateTrigger(create) => self.create_trigger(create),
            S::DropTrigger { name, if_exists } => self.drop_trigger(name, *if_exists),
            S::AlterTable { name, action } => self.alter_table(name, action),
            S::Transaction(action) => Ok(Bound::Ready(
                Action::Transaction(action.clone()),
                Vec::new(),
            )),
            S::Attach(both) => self.attachment(both.as_slice()),
            S::Detach(name) => self.attachment(std::slice::from_ref(name)),
            S::Pragma(pragma) => self.pragma(pragma),
            S::Explain { statement, .. } => {
                Ok(Bound::Explain(Box::new(self.statement(statement)?)))
            }
            S::Reindex(name) => self.reindex(name.as_ref()),
            S::Analyze(name) => self.analyze(name.as_ref()),
            S::Vacuum { schema, into } => self.vacuum(schema.as_ref(), into.as_deref()),
            S::Unsupported(what) => Err(Error::sql(format!("{what} is not supported"))),
        }
    }

    /// Runs `f` with texts that the schema has of a table.
    fn in_texts_of<T>(&mut self, table: &Table, f: impl FnOnce(&mut Self) -> T) -> T {
        let store = Some(table.tree.store_number());
        let outside = std::mem::replace(&mut self.texts_of, store);
        let result = f(self);
        self.texts_of = outside;
        result
    }

    fn new_source(&mut self) -> Result<usize> {
        if self.sources >= MAX_SOURCES {
            return Err(Error::sql(format!(
                "too many tables in one statement (more than {MAX_SOURCES})"
            )));
        }
        self.sources += 1;
        Ok(self.sources - 1)
    }

    /// The innermost frame.
    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame {
                level: self.levels.len() - 1,
                ..Frame::default()
            });
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Runs `f` with a new innermost frame and hands that back too.
    fn in_frame<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Frame)> {
        self.frames.push(Frame {
            level: self.levels.len() - 1,
            ..Frame::default()
        });
        let asks_json = std::mem::take(&mut self.asks_json);
        let result = f(self);
        self.asks_json = asks_json;
        let frame = self.frames.pop().unwrap_or_default();
        Ok((result?, frame))
    }
}
