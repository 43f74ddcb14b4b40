//! Running physical plans.
//!
//! [`batch`] holds rows as columns, [`expr`] evaluates expressions over them and
//! over single rows, [`ops`] are the operators of a query, one a file, [`dml`]
//! the sinks of INSERT, UPDATE and DELETE, with triggers, [`ddl`], `alter` and [`schema_edits`]
//! the changes of the schema.
//! Beside them: what operators share ([`hash`], [`sorter`], [`rows`], [`fetch`], [`covering`],
//! [`range`], [`once`], [`members`], [`external`], [`disk_set`]) and what a run carries ([`context`], [`memory`],
//! [`effects`], [`txns`]).

mod alter;
pub mod batch;
pub mod context;
pub mod covering;
pub mod ddl;
pub mod disk_set;
pub mod dml;
pub mod effects;
pub mod expr;
pub mod external;
pub mod fetch;
pub mod hash;
pub mod kind;
pub mod members;
pub mod memory;
pub mod once;
pub mod ops;
pub mod point;
pub mod point_read;
pub mod range;
pub mod rows;
pub mod schema_edits;
pub mod sorter;
pub mod subquery;
pub mod txns;
