//! Expressions as written.

use crate::bind::expr::{BinaryOp, LikeKind};

use super::{Over, Select};
use crate::schema::ConflictAction;

/// A name as written, unquoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub offset: usize,
    /// Written in double quotes: a string, if no column has that name.
    pub double_quoted: bool,
}

impl Name {
    /// A name that is not in the text.
    pub fn synthetic(text: impl Into<String>) -> Name {
        Name {
            text: text.into(),
            offset: 0,
            double_quoted: false,
        }
    }
}

/// An expression and where it starts.
#[derive(Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Byte offset in the statement.
    pub offset: usize,
}

/// As deep as the parser lets it be.
impl Clone for Expr {
    fn clone(&self) -> Self {
        let Self { kind, offset } = self;
        crate::stack::grow(|| Self {
            kind: kind.clone(),
            offset: *offset,
        })
    }
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// NULL
    Null,
    /// An integer that fits.
    Integer(i64),
    /// A real, or an integer that doesn't fit.
    Real(f64),
    /// 'text'
    Text(String),
    /// x'00'
    Blob(Vec<u8>),
    /// CURRENT_DATE and the like, as the function to call.
    Current(&'static str),
}

/// Comparison operators.
pub use crate::bind::expr::CompareOp;

/// An ORDER BY term or an indexed column.
#[derive(Debug, Clone, PartialEq)]
pub struct SortTerm {
    /// The expression.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST (true) or LAST.
    pub nulls_first: Option<bool>,
}

/// WHEN … THEN …
#[derive(Debug, Clone, PartialEq)]
pub struct CaseWhen {
    /// The condition or value.
    pub when: Expr,
    /// The result.
    pub then: Expr,
}

/// A function call.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// Its name.
    pub name: Name,
    /// The arguments; None for `f(*)`.
    pub args: Option<Vec<Expr>>,
    /// DISTINCT
    pub distinct: bool,
    /// FILTER (WHERE …)
    pub filter: Option<Box<Expr>>,
    /// ORDER BY inside the call.
    pub order_by: Vec<SortTerm>,
    /// OVER
    pub over: Option<Over>,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// `name`
    Column(Name),
    /// `table.name`, `schema.table.name`
    Qualified {
        /// Schema.
        schema: Option<Name>,
        /// Table or alias.
        table: Name,
        /// Column.
        column: Name,
    },
    /// `?`, `?5`, `:a`, `@a`, `$a` as an index counted from 0.
    Parameter(usize),
    /// `-x`
    Negate(Box<Expr>),
    /// `+x`, which takes the affinity and indexes away.
    Plus(Box<Expr>),
    /// `~x`
    BitNot(Box<Expr>),
    /// `NOT x`
    Not(Box<Expr>),
    /// Arithmetic and the like.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A comparison.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// A flat AND chain.
    And(Vec<Expr>),
    /// A flat OR chain.
    Or(Vec<Expr>),
    /// `x IS NULL`
    IsNull {
        /// Operand.
        expr: Box<Expr>,
        /// NOT
        negated: bool,
    },
    /// `x BETWEEN a AND b`
    Between {
        /// Operand.
        expr: Box<Expr>,
        /// Lower.
        low: Box<Expr>,
        /// Upper.
        high: Box<Expr>,
        /// NOT
        negated: bool,
    },
    /// `x IN (a, b)`
    InList {
        /// Operand.
        expr: Box<Expr>,
        /// Candidates.
        list: Vec<Expr>,
        /// NOT
        negated: bool,
    },
    /// `x IN (SELECT …)` and `x IN table`
    InSelect {
        /// Operand.
        expr: Box<Expr>,
        /// The subquery.
        select: Box<Select>,
        /// NOT
        negated: bool,
    },
    /// `EXISTS (SELECT …)`
    Exists(Box<Select>),
    /// `(SELECT …)`
    Subquery(Box<Select>),
    /// `(a, b)`
    RowValue(Vec<Expr>),
    /// CASE
    Case {
        /// Operand.
        base: Option<Box<Expr>>,
        /// The WHENs.
        whens: Vec<CaseWhen>,
        /// ELSE
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(x AS type)`
    Cast(Box<Expr>, String),
    /// `x COLLATE name`
    Collate(Box<Expr>, Name),
    /// LIKE and GLOB
    Like {
        /// Which.
        kind: LikeKind,
        /// Text.
        expr: Box<Expr>,
        /// Pattern.
        pattern: Box<Expr>,
        /// ESCAPE
        escape: Option<Box<Expr>>,
        /// NOT
        negated: bool,
    },
    /// A function call.
    Function(Box<FunctionCall>),
    /// `RAISE(action, message)`; IGNORE has no message.
    Raise(ConflictAction, Option<Box<Expr>>),
}
