//! Workloads over several stores: transactions that commit to them as one, make and drop
//! their families, and overlap with commits to one of them, and the model they are
//! compared with.
//!
//! A life has some of the stores open. It opens others, closes them and makes checkpoints
//! while transactions over several come and go, so what is kept of these is met in every
//! state: not made yet, in doubt, asked for by a store that is opened alone.

mod change;
mod life;
mod model;

pub use life::{Life, Together};
pub use model::{Oracle, STORES, State};
