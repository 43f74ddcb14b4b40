//! Bound expressions: names resolved, functions looked up, properties computed.
//!
//! The binder alone computes an expression's affinity, collation, determinism
//! and fallibility ([`Props`]) and the ([`Affinity`], [`Collation`]) pair of
//! every comparison ([`Comparison`]). Later stages copy them and never derive
//! them again: the rules are SQLite's (datatype3.html, sections 3.3, 4.2 and
//! 7.1) and live in `bind/props.rs`.
//!
//! Invariants:
//! * In a physical plan no [`ExprKind::Column`], no [`ExprKind::Aggregate`] and no
//!   [`ExprKind::Window`] is left: they have become [`ExprKind::Input`], an index into the row that
//!   the operator holding the expression reads.
//! * Depth is bounded by [`crate::parse::MAX_EXPR_DEPTH`]; AND and OR chains are
//!   flat, so walking an expression recursively needs bounded stack.

use std::sync::Arc;

pub use crate::ast::{Exclude, FrameBound, FrameMode};
use crate::error::Error;
use crate::func::user::CallSite;
use crate::func::{AggregateFunction, JsonText, ScalarFunction, UserFunction, WindowFunction};
use crate::value::{Affinity, Collation, Value};

/// A column of a source in the FROM clause, before physical planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnRef {
    /// The source, numbered through the whole statement.
    pub source: usize,
    /// Column of the source; [`ROWID`] is a table's rowid.
    pub column: usize,
}

/// [`ColumnRef::column`] of a table's rowid (also of its INTEGER PRIMARY KEY).
pub const ROWID: usize = usize::MAX;

/// A slot of the running statement that carries a value into a plan that is
/// opened again and again: the outer row's values of a correlated subquery, the
/// left row's values of a nested-loop join.
pub type Register = usize;

/// Index into [`crate::plan::physical::Plan::subqueries`].
pub type SubqueryId = usize;

/// What the binder knows about an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Props {
    /// None: no affinity, as of a literal or an operator's result.
    pub affinity: Option<Affinity>,
    /// None: no collation of its own (BINARY unless the other side has one).
    pub collation: Option<Collation>,
    /// The collation stems from a COLLATE operator, so it wins over a column's.
    pub explicit_collation: bool,
    /// Equal inputs give equal results within one statement.
    pub deterministic: bool,
    /// May raise an error; such conjuncts are never moved ahead of others.
    pub fallible: bool,
    /// Neither columns, registers, aggregates nor subqueries below: one value
    /// for a whole execution (parameters count as constant).
    pub constant: bool,
    /// Whether it may be a text of JSON to a function that asks.
    pub json: JsonText,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// Applied to both sides before comparing: `Numeric` turns texts that look
    /// like numbers into numbers, `Text` turns numbers into text, `Blob` leaves
    /// both alone. Never `Integer` or `Real`.
    pub affinity: Affinity,
    /// Compares two texts.
    pub collation: Collation,
}

/// A bound expression.
#[derive(Debug, PartialEq)]
pub struct Expr {
    /// The operation.
    pub kind: ExprKind,
    /// Its properties.
    pub props: Props,
}

/// A level of it takes kilobytes of stack.
impl Clone for Expr {
    fn clone(&self) -> Self {
        let Self { kind, props } = self;
        crate::stack::grow(|| Self {
            kind: kind.clone(),
            props: *props,
        })
    }
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-x`
    Negate,
    /// `~x`
    BitNot,
    /// `NOT x`, three-valued
    Not,
}

/// Operators with two operands that are not comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    BitOr,
    ShiftLeft,
    ShiftRight,
    Concat,
}

/// Comparison operators; `Is` and `IsNot` treat NULL as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Is,
    IsNot,
}

/// LIKE or GLOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LikeKind {
    Like,
    /// LIKE where `PRAGMA case_sensitive_like` is on.
    LikeExact,
    Glob,
}

/// One WHEN of a CASE.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseArm {
    /// The condition, or with a base operand the value compared with it.
    pub when: Expr,
    /// Some exactly when the CASE has a base operand.
    pub comparison: Option<Comparison>,
    /// The result.
    pub then: Expr,
}

/// What yields a row of [`ExprKind::WithRow`].
#[derive(Debug, Clone, PartialEq)]
pub enum RowSource {
    /// An expression each.
    Exprs(Vec<Expr>),
    /// The first row of a subquery, NULLs without one.
    Subquery(SubqueryId),
}

/// What an expression does.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Value),
    /// A bound parameter, counted from 0; unbound ones are NULL.
    Parameter(usize),
    /// A source's column (logical plans only).
    Column(ColumnRef),
    /// The n-th result of the enclosing aggregation (logical plans only).
    Aggregate(usize),
    /// A call of the n-th window of the block: the m-th one (logical plans only).
    Window(usize, usize),
    /// The n-th column of the operator's input row.
    Input(usize),
    /// A value put there by an enclosing join or subquery call.
    Register(Register),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands, arithmetic and the like.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A comparison.
    Compare(CompareOp, Comparison, Box<Expr>, Box<Expr>),
    /// All conjuncts, evaluated left to right until one is false.
    And(Vec<Expr>),
    /// All disjuncts, evaluated left to right until one is true.
    Or(Vec<Expr>),
    /// `x IS NULL`; negated: `x IS NOT NULL`.
    IsNull {
        /// The operand.
        expr: Box<Expr>,
        /// IS NOT NULL.
        negated: bool,
    },
    /// `x IS [NOT] TRUE` and `x IS [NOT] FALSE`: 0 or 1, never NULL.
    IsTruth {
        /// The operand.
        expr: Box<Expr>,
        /// TRUE or FALSE.
        truth: bool,
        /// IS NOT.
        negated: bool,
    },
    /// `x BETWEEN low AND high`; x is evaluated once.
    Between {
        /// The operand.
        expr: Box<Expr>,
        /// Lower bound, inclusive.
        low: Box<Expr>,
        /// Upper bound, inclusive.
        high: Box<Expr>,
        /// How `expr >= low` compares.
        low_comparison: Comparison,
        /// How `expr <= high` compares.
        high_comparison: Comparison,
        /// NOT BETWEEN.
        negated: bool,
    },
    /// `x IN (a, b, …)`; an empty list is false even for NULL.
    InList {
        /// The operand.
        expr: Box<Expr>,
        /// The candidates.
        list: Vec<Expr>,
        /// How the operand compares with each.
        comparison: Comparison,
        /// NOT IN.
        negated: bool,
    },
    /// `x IN (SELECT …)`, also `(x, y) IN (SELECT …)`.
    InSubquery {
        /// The operands, one for each column of the subquery.
        exprs: Vec<Expr>,
        /// The subquery.
        subquery: SubqueryId,
        /// How each operand compares with its column.
        comparisons: Vec<Comparison>,
        /// NOT IN.
        negated: bool,
    },
    /// What a subquery without bindings yields in a column: as many keys of a lookup, and
    /// nowhere else (physical plans only).
    Members {
        /// The subquery.
        subquery: SubqueryId,
        /// The column, the only one but for row values.
        column: usize,
        /// How the IN's operands compare with its columns.
        comparisons: Vec<Comparison>,
    },
    /// `EXISTS (SELECT …)`: 0 or 1.
    Exists(SubqueryId),
    /// `(SELECT …)`: a column of its first row, NULL without a row.
    ScalarSubquery {
        /// The subquery.
        subquery: SubqueryId,
        /// The column, the only one but for row values.
        column: usize,
    },
    /// Puts a row into registers and evaluates what reads them.
    WithRow {
        /// Where the row comes from.
        row: RowSource,
        /// A register for each of its columns.
        registers: Vec<Register>,
        /// What reads them.
        body: Box<Expr>,
    },
    /// CASE.
    Case {
        /// Evaluated once and compared with each WHEN.
        base: Option<Box<Expr>>,
        /// The WHENs in order.
        arms: Vec<CaseArm>,
        /// ELSE; NULL where absent.
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(x AS type)`, which forces where affinity only tries.
    Cast(Box<Expr>, Affinity),
    /// LIKE and GLOB.
    Like {
        /// Which of the two.
        kind: LikeKind,
        /// The text.
        expr: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// ESCAPE.
        escape: Option<Box<Expr>>,
        /// NOT LIKE.
        negated: bool,
    },
    /// A scalar function.
    Function {
        /// The implementation.
        function: Arc<ScalarFunction>,
        /// Its arguments.
        args: Vec<Expr>,
        /// The collation it compares with (min, max, nullif).
        collation: Collation,
    },
    /// A scalar function of the program.
    UserFunction {
        /// The implementation.
        function: Arc<UserFunction>,
        /// Its arguments.
        args: Vec<Expr>,
        /// Where it is called.
        site: CallSite,
    },
    /// A function that may not be called, where it is an error only to call it.
    RefusedFunction {
        /// Its name.
        name: String,
        /// The error.
        error: Error,
        /// Its arguments.
        args: Vec<Expr>,
    },
}

/// An aggregate in a query.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// The implementation.
    pub function: Arc<AggregateFunction>,
    /// Arguments; none for `count(*)`.
    pub args: Vec<Expr>,
    /// DISTINCT over the first argument, compared with `collation`.
    pub distinct: bool,
    /// The collation it compares with (min, max, DISTINCT).
    pub collation: Collation,
    /// FILTER (WHERE …).
    pub filter: Option<Expr>,
    /// ORDER BY inside the call.
    pub order_by: Vec<SortKey>,
}

/// One term of an ordering.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// What is compared.
    pub expr: Expr,
    /// How texts compare.
    pub collation: Collation,
    /// DESC.
    pub descending: bool,
    /// NULLs come first (by default they do when ascending).
    pub nulls_first: bool,
}

/// A frame with bound offsets, which are constant.
pub type Frame = crate::ast::Frame<Expr>;

/// A function over a window.
#[derive(Debug, Clone, PartialEq)]
pub enum OverWindow {
    /// One that exists over windows only.
    Function(&'static WindowFunction),
    /// An aggregate.
    Aggregate(Arc<AggregateFunction>),
}

/// A call over a window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    /// The implementation.
    pub function: OverWindow,
    /// Arguments; none for `count(*)`.
    pub args: Vec<Expr>,
    /// The collation it compares with (min, max).
    pub collation: Collation,
    /// FILTER (WHERE …).
    pub filter: Option<Expr>,
    /// Its frame.
    pub frame: Frame,
}

/// Windows that divide and order their rows alike, and the calls over them.
#[derive(Debug, Clone, PartialEq)]
pub struct Windowing {
    /// PARTITION BY.
    pub partition: Vec<SortKey>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// The calls.
    pub calls: Vec<WindowCall>,
}

impl OverWindow {
    /// Its name in lower case.
    pub fn name(&self) -> &str {
        match self {
            OverWindow::Function(function) => function.name,
            OverWindow::Aggregate(function) => &function.name,
        }
    }
}

impl WindowCall {
    /// Its expressions, those of its frame apart.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(&self.filter)
    }
}

impl Windowing {
    /// What its rows are divided and ordered by.
    pub fn keys(&self) -> impl Iterator<Item = &SortKey> {
        self.partition.iter().chain(&self.order)
    }

    /// All expressions over its rows.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let calls = self.calls.iter().flat_map(WindowCall::exprs);
        self.keys().map(|key| &key.expr).chain(calls)
    }
}
