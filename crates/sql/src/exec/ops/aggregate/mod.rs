//! Aggregation: GROUP BY with a hash table, or over neighbouring equal keys.
//!
//! Both yield the keys, then the aggregates, then the bare expressions, and
//! share the state of the groups ([`states`]).

mod distinct;
mod hashed;
mod neighbours;
mod ordered;
mod seen;
mod sorted;
mod states;

pub use hashed::HashAggregate;
pub use sorted::SortedAggregate;
