//! The commands of the program.

pub mod fuzz;
#[cfg(feature = "mutations")]
pub mod mutations;
pub mod replay;
pub mod soak;
pub mod sweep;
