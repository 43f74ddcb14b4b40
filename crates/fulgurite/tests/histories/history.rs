//! What a run leaves: for each transaction what it read and wrote, and whether
//! it committed.

/// Names a value that was written, unique in the whole history; 0 is what was
/// there before.
pub type Value = u64;

/// One operation with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The list of this key was read.
    ReadList(usize, Vec<Value>),
    /// A value was appended to the list of this key, blindly.
    Append(usize, Value),
    /// The register of this key was read.
    Read(usize, Value),
    /// The register of this key was written after it had been read.
    Write(usize, Value),
    /// All rows of the set within these bounds were read: the phantoms' case.
    /// Rows are only added, and are their own values.
    ReadSet(u64, u64, Vec<Value>),
    /// A row was added to the set.
    Add(Value),
}

/// A transaction.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    pub events: Vec<Event>,
    pub committed: bool,
    /// When it began and when its commit had returned, on one clock.
    pub began: u64,
    pub ended: u64,
}

/// All of a run.
#[derive(Debug, Default)]
pub struct History {
    pub transactions: Vec<Transaction>,
}
