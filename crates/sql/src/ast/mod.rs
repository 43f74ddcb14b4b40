//! Syntax trees: what the parser hands to the binder and the schema.
//!
//! Names are unquoted, literals decoded, offsets are bytes in the statement's
//! text. AND and OR chains are flat and the depth of expressions is bounded by
//! the parser, so trees may be walked, cloned and dropped recursively.

mod alter;
mod expr;
mod names;
mod statement;
mod window;

pub use alter::AlterAction;
pub use expr::{CaseWhen, CompareOp, Expr, ExprKind, FunctionCall, Literal, Name, SortTerm};
pub use names::for_each_name;
pub use statement::{
    Assignment, ColumnConstraint, ColumnDef, Compound, CreateIndex, CreateTable, CreateTrigger,
    CreateView, Cte, Delete, ForeignAction, ForeignKey, FromItem, Indexed, Insert, InsertSource,
    JoinConstraint, JoinSpec, Pragma, QualifiedName, ResultColumn, Select, SelectCore, SelectTable,
    Statement, TableBody, TableConstraint, TableConstraintKind, TriggerEvent, TriggerTime, Update,
    Upsert,
};
pub use window::{Exclude, Frame, FrameBound, FrameMode, NamedWindow, Over, Window, Windows};
