//! Bound logical plans to physical plans.
//!
//! A query block is planned in this order: its conditions are simplified
//! (`rules`), what is known of its sources is gathered (`sources`), their order and access
//! paths are chosen by cost (`order`, `join`, `access`), then aggregation (`aggregate`),
//! projection, DISTINCT, ORDER BY and LIMIT go on top (`block`). Expressions name (source,
//! column) until an operator's input row is known and are then resolved to positions in it
//! (`resolve`).
//!
//! Nothing here looks at a table's or a column's name: every choice follows from
//! shapes, properties and row counts.

mod access;
mod aggregate;
mod anti;
mod any_order;
pub mod any_value;
mod arms;
mod block;
mod common;
mod either;
mod equal_columns;
mod facts;
mod few;
mod firsts;
pub mod foreign;
mod generated;
mod grouped;
mod guessed;
mod in_exists;
mod in_lookup;
mod join;
mod kept;
mod keyed;
mod layout;
mod matches;
mod members;
mod needed;
mod nested;
mod order;
mod outer;
mod output;
pub mod physical;
mod prefix;
mod properties;
mod pushdown;
mod recursion;
mod registers;
pub mod repeated;
mod resolve;
mod rules;
mod sampled;
mod search;
mod semi;
mod shares;
mod single;
mod sources;
mod statement;
mod terms;
pub mod trigger;
mod victim_order;
mod weigh;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use fulgurite_store::Tree;

use crate::bind::BoundStatement;
use crate::bind::common::Common;
use crate::bind::expr::SubqueryId;
use crate::bind::logical::{Bound, LogicalSubquery};
use crate::error::Result;
use crate::func::user::UserCode;
use crate::parse::Parsed;
use crate::schema::{Catalog, Index, Table};
use crate::value::{Value, ValueRef};
use physical::{Action, Plan, Pragma, ScanColumn, Subquery};
use recursion::Recursing;

/// What the planner's costs need to know of trees.
pub trait Statistics {
    /// About how many entries a tree has.
    fn rows(&mut self, tree: &Tree) -> u64;

    /// Of each number of leading parts, from one to all, about how many entries of the
    /// index have the same values in them; None where that is not known.
    fn rows_per_key(&mut self, index: &Index) -> Option<Arc<[f64]>>;

    /// About which share of an index's entries has less than this value in its first part,
    /// or as much where `equal`; None where that is not known.
    fn share_below(&mut self, index: &Index, value: ValueRef<'_>, equal: bool) -> Option<f64>;

    /// About which share of a table's rows has a smaller rowid.
    fn share_of_rowids_below(&mut self, table: &Tree, rowid: i64) -> Option<f64>;

    /// These columns of some rows from all over a table; none where that is not to be had.
    fn sample(&mut self, table: &Arc<Table>, columns: &[ScanColumn]) -> Vec<Vec<Value>>;
}

/// Counts alone.
impl<F: FnMut(&Tree) -> u64> Statistics for F {
    fn rows(&mut self, tree: &Tree) -> u64 {
        self(tree)
    }

    fn rows_per_key(&mut self, _: &Index) -> Option<Arc<[f64]>> {
        None
    }

    fn share_below(&mut self, _: &Index, _: ValueRef<'_>, _: bool) -> Option<f64> {
        None
    }

    fn share_of_rowids_below(&mut self, _: &Tree, _: i64) -> Option<f64> {
        None
    }

    fn sample(&mut self, _: &Arc<Table>, _: &[ScanColumn]) -> Vec<Vec<Value>> {
        Vec::new()
    }
}

/// What of a connection's settings a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `PRAGMA foreign_keys`: they are enforced.
    pub foreign_keys: bool,
    /// `PRAGMA recursive_triggers`: triggers may fire themselves, and rows that are replaced
    /// fire those for DELETE.
    pub recursive_triggers: bool,
    /// `PRAGMA case_sensitive_like`: letters of LIKE are as they are written.
    pub case_sensitive_like: bool,
    /// Triggers are fired: not so for who only asks how rows are written.
    pub triggers: bool,
    /// `PRAGMA trusted_schema` is off: texts of the schema may call those functions of the
    /// program only that are innocuous.
    pub distrusts_schema: bool,
    /// The functions and collations of the program.
    pub user: UserCode,
}

/// Binds and plans a parsed statement; None for an empty one. The names of its parameters
/// are left to the caller.
pub fn prepare(
    catalog: &Catalog,
    statistics: &mut dyn Statistics,
    parsed: &Parsed,
    settings: &Settings,
) -> Result<Option<Plan>> {
    let Some(statement) = &parsed.statement else {
        return Ok(None);
    };
    let (bound, programs) = crate::bind::bind(catalog, statement, settings)?;
    let explains = matches!(bound.bound, Bound::Explain(_));
    let mut plan = plan_one(statistics, bound, catalog.main().version(), settings)?;
    let beside = catalog.others();
    plan.beside = beside
        .map(|schema| (schema.tree().store_number(), schema.version()))
        .collect();
    plan.searched = catalog.searched();
    if !explains && !programs.is_empty() {
        trigger::plan_programs(&mut plan, programs, statistics)?;
    }
    Ok(Some(plan))
}

/// The plan of one bound statement, without parameters and trigger programs.
fn plan_one(
    statistics: &mut dyn Statistics,
    bound: BoundStatement,
    schema_version: u64,
    settings: &Settings,
) -> Result<Plan> {
    let BoundStatement {
        bound,
        subqueries,
        registers,
        commons,
        place,
        calls_user,
        schema_calls_user,
        lacks,
        ..
    } = bound;
    let planned = match &bound {
        Bound::Explain(explained) => explained,
        bound => bound,
    };
    let writes_rows = matches!(planned, Bound::Update(_) | Bound::Delete(_));
    let mut planner = Planner {
        statistics,
        logical: &subqueries,
        subqueries: Vec::new(),
        shared: Vec::new(),
        commons: &commons,
        common: Vec::new(),
        registers,
        recursions: Vec::new(),
        pass: 0,
        passes: 1,
        calls: 1.0,
        callers: None,
        reads: Vec::new(),
        writes: Vec::new(),
        guards: Vec::new(),
        pragmas: Vec::new(),
        deterministic: true,
        guesses: false,
        writes_rows,
        any_order: false,
    };
    let (action, columns) = planner.statement(bound)?;
    let Planner {
        mut subqueries,
        registers,
        reads,
        writes,
        guards,
        pragmas,
        deterministic,
        guesses,
        ..
    } = planner;
    for vain in subqueries.iter_mut().filter(|it| !it.asked) {
        vain.root = physical::Node {
            op: physical::Op::Values(Vec::new()),
            width: vain.root.width,
            rows: 0.0,
        };
    }
    Ok(Plan {
        columns,
        subqueries,
        registers,
        reads,
        writes,
        guards,
        pragmas,
        place,
        schema_version,
        deterministic,
        guesses,
        calls_user,
        schema_calls_user,
        lacks,
        ..Plan::of_no_names(action, settings)
    })
}

impl Plan {
    /// The plan of a statement that nothing in a database has a part in.
    pub fn of_no_names(action: Action, settings: &Settings) -> Self {
        Self {
            action,
            columns: Vec::new(),
            subqueries: Vec::new(),
            registers: 0,
            parameters: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            guards: Vec::new(),
            pragmas: Vec::new(),
            programs: Vec::new(),
            place: None,
            schema_version: 0,
            beside: Vec::new(),
            searched: Vec::new(),
            settings: settings.clone(),
            deterministic: true,
            guesses: false,
            calls_user: false,
            schema_calls_user: false,
            lacks: Vec::new(),
        }
    }
}

/// State of planning one statement.
struct Planner<'a, 'r> {
    statistics: &'r mut dyn Statistics,
    logical: &'a [LogicalSubquery],
    subqueries: Vec<Subquery>,
    /// Those without bindings: their logical numbers and those in `subqueries`.
    shared: Vec<(SubqueryId, SubqueryId)>,
    commons: &'a [Common],
    /// Those of them whose rows are kept: their numbers and those in `subqueries`.
    common: Vec<(usize, SubqueryId)>,
    registers: usize,
    /// Recursions whose members are being planned, outermost first.
    recursions: Vec<Recursing>,
    /// What is being planned and is opened anew as a whole, so that registers read there
    /// keep their values meanwhile: the statement (0), a subquery, the members of a
    /// recursion.
    pass: usize,
    passes: usize,
    /// About how often the query is run that is being planned, and for how many rows of it
    /// the expressions are computed that are being resolved, where that is known.
    calls: f64,
    callers: Option<f64>,
    reads: Vec<Tree>,
    writes: Vec<Tree>,
    guards: Vec<Tree>,
    pragmas: Vec<Pragma>,
    deterministic: bool,
    guesses: bool,
    /// What becomes of other rows where one fails may hang on their order.
    writes_rows: bool,
    /// The rows of the query that is planned next may come in any order.
    any_order: bool,
}

impl Planner<'_, '_> {
    fn reads(&mut self, tree: &Tree) {
        if !self.reads.contains(tree) {
            self.reads.push(tree.clone());
        }
    }

    fn writes(&mut self, tree: &Tree) {
        if !self.writes.contains(tree) {
            self.writes.push(tree.clone());
        }
    }
}
