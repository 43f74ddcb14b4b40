//! What transactions asked and were told.

use crate::act::{Scan, act};
use crate::ask::{Ask, Told};
use crate::shared::Shared;
use fulgurite_store::{ErrorKind, Result, Txn};

/// What was asked, and told.
#[derive(Debug, Clone)]
pub struct Step {
    pub ask: Ask,
    pub told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// It reads and commits at one moment.
    AtOnce,
    /// It commits at a moment after that at which it reads.
    Later,
    /// It lost or was rolled back.
    Undone,
}

#[derive(Debug, Clone)]
pub struct Transaction {
    pub how: &'static str,
    pub steps: Vec<Step>,
    /// Those in the second of two stores.
    pub beside: Vec<Step>,
    pub ends: Ends,
    pub began: u64,
    /// Before its commit was asked for.
    pub commits: u64,
    pub ended: u64,
}

impl Transaction {
    /// The same in the second store.
    pub fn in_the_second(mut self) -> Self {
        std::mem::swap(&mut self.steps, &mut self.beside);
        self
    }
}

/// A transaction under way.
pub struct Record {
    pub began: u64,
    pub by: String,
    pub steps: Vec<Step>,
    pub scans: Vec<Scan>,
}

impl Record {
    pub fn note(&mut self, ask: Ask, told: Told) {
        self.steps.push(Step { ask, told });
    }

    /// Whether it keeps the writers of its store out.
    pub fn excludes(&self) -> bool {
        self.steps.iter().any(|it| matches!(it.ask, Ask::Exclude))
    }

    pub fn ask(&mut self, txn: &mut Txn, shared: &Shared, ask: Ask) -> Result<()> {
        if let Ask::Scan(..) = ask {
            let told = match Scan::open(txn, &ask, self.steps.len()) {
                Ok(scan) => {
                    self.scans.push(scan);
                    Told::Moves(Vec::new())
                }
                Err(error) if error.kind() == ErrorKind::Misuse => Told::Refused,
                Err(error) => return Err(error),
            };
            self.note(ask, told);
            return Ok(());
        }
        let told = act(txn, &ask, &mut |tree| shared.meet(tree))?;
        self.note(ask, told);
        Ok(())
    }
}
