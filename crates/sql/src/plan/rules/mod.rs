//! Rewrites of bound conditions, one rule a file. Each takes and gives an
//! expression (or a block's conditions) with the same answers, errors included.

mod arms_of_sources;
mod common_conjuncts;
mod fold;
mod implied;
mod or_to_in;
mod outer_to_inner;
mod telling_keys;

pub use arms_of_sources::arms_of_sources;
pub use common_conjuncts::common_conjuncts;
pub use fold::fold;
pub use implied::implied;
pub use or_to_in::or_to_in;
pub use outer_to_inner::{needs, rejects_null};
pub use telling_keys::telling_keys;
