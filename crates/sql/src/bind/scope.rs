//! Names in scope.
//!
//! Each SELECT has a [`Frame`] with its tables. Each subquery of an expression
//! opens a *level*: a name found in a frame of an outer level becomes a register
//! that the caller fills, level by level ([`Binder::capture`]). A subquery in
//! FROM has a frame of its own but no level; the frame around it is hidden
//! meanwhile, since it may not see its neighbours.

mod resolve;
mod table;

use std::sync::Arc;

use super::Binder;
use super::expr::{AggregateCall, Expr, Register, Windowing};
use super::join::{PendingOn, SharedColumn};
use super::names::Naming;
use super::recursion::RecursiveTable;
use super::table_function::PendingCall;
use super::window::NamedWindows;
use crate::ast;
use crate::error::Result;
use crate::func::Definition;
use crate::value::Affinity;

pub use resolve::ColumnName;
pub use table::{Found, ROWID_NAMES, ScopeColumns, ScopeTable, is_rowid_name};

/// The names of one SELECT.
#[derive(Debug, Default)]
pub struct Frame {
    /// Sources in order.
    pub tables: Vec<ScopeTable>,
    /// Result columns with names, once bound.
    pub aliases: Vec<(String, Expr)>,
    /// Aggregates found so far.
    pub aggregates: Vec<AggregateCall>,
    /// Windows found so far.
    pub windows: Vec<Windowing>,
    /// Those that it names.
    pub named_windows: Option<Arc<NamedWindows>>,
    /// While what a window function is called with is bound.
    pub in_window: bool,
    /// What is being bound.
    pub clause: Clause,
    /// There is a GROUP BY, or an aggregate among the result columns.
    pub is_aggregate: bool,
    /// Its columns are values at hand, as those of RETURNING, so that no aggregate is
    /// made of them: one that reads them alone belongs to where it stands.
    pub has_values: bool,
    /// ON conditions still to be bound.
    pub pending: Vec<PendingOn>,
    /// Columns whose plain names may mean one of another table than the first.
    pub shared: Vec<SharedColumn>,
    /// How many tables stand before the last RIGHT or FULL JOIN.
    pub before_right: usize,
    /// While FROM is bound.
    pub hidden: bool,
    /// While an expression of the schema is bound for the rows that are written.
    pub definition: Option<Definition>,
    /// What its result columns are called by.
    pub naming: Naming,
    /// While the key of a new index is bound, which has neither rowid nor qualified names.
    pub is_key: bool,
    /// Calls of table-valued functions whose arguments are still to be bound.
    pub calls: Vec<PendingCall>,
    /// A recursive SELECT's own table, until FROM names it.
    pub recursive: Option<Box<RecursiveTable>>,
    /// The subquery level it belongs to.
    pub level: usize,
}

/// The clause of a SELECT that is being bound, as far as aggregates care.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clause {
    /// One in which no aggregate may stand.
    #[default]
    Other,
    /// The result columns.
    Results,
    /// WHERE and ON.
    Filter,
    /// GROUP BY.
    Grouping,
    /// HAVING.
    Having,
    /// ORDER BY.
    Order,
    /// What an aggregate is called with.
    Argument,
}

/// An aggregate whose arguments are being bound.
#[derive(Debug)]
pub struct Reach {
    /// The frame it stands in.
    pub stands: usize,
    /// The innermost frame from there outwards of which it reads a column.
    pub reads: Option<usize>,
}

/// A common table expression in scope.
#[derive(Debug)]
pub struct ScopedCte {
    /// What it is.
    pub cte: Arc<ast::Cte>,
    /// How many are in scope up to the end of its WITH clause: those that it sees.
    pub sees: usize,
    /// While it is being bound, so that it may not be named: what naming it would be.
    pub refused: Option<&'static str>,
    /// The affinities of its columns, where it is recursive and has been bound before.
    pub affinities: Option<Vec<Option<Affinity>>>,
    /// Its number among those that may be shared, once it has been named.
    pub common: Option<usize>,
}

/// What the caller of a subquery hands in.
#[derive(Debug, Default)]
pub struct Level {
    /// Register and the caller's expression.
    pub captures: Vec<(Register, Expr)>,
    /// Something in it may raise.
    pub fallible: bool,
    /// Something in it is not deterministic.
    pub volatile: bool,
}

impl Binder<'_> {
    /// Runs `f` where the expressions of a WITH clause are known.
    pub(super) fn with_ctes<T>(
        &mut self,
        ctes: &[Arc<ast::Cte>],
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = self.ctes.len();
        let sees = outer + ctes.len();
        self.ctes.extend(ctes.iter().map(|cte| ScopedCte {
            cte: cte.clone(),
            sees,
            refused: None,
            affinities: None,
            common: None,
        }));
        let result = f(self);
        if self.uses.is_some() {
            self.uses_of_ctes(outer);
        }
        self.ctes.truncate(outer);
        result
    }
}

impl Frame {
    /// An aggregate may stand in what is being bound.
    pub fn may_hold_aggregates(&self) -> bool {
        match self.clause {
            Clause::Results | Clause::Grouping | Clause::Having | Clause::Order => true,
            Clause::Filter => self.is_aggregate,
            Clause::Other | Clause::Argument => false,
        }
    }

    /// SQLite's complaint about an aggregate of this SELECT that is where it may not be.
    pub fn misuse(&self, aggregate: usize) -> String {
        let call = self.aggregates.get(aggregate);
        let name = call.map_or("", |call| &call.function.name);
        format!("misuse of aggregate: {name}()")
    }
}
