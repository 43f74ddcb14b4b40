//! What the threads of a life share.

use super::history::{Front, History, SHARED, WRITERS};
use super::view::modelled;
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Error, Result, Store, Tree, Txn};
use std::sync::{Arc, Mutex, MutexGuard};

/// The disk, the store, and what was done so far. The histories' locks are held
/// over no step of the store's.
#[derive(Clone)]
pub struct World {
    pub disk: SimDisk,
    pub store: Store,
    pub trees: [Tree; 2],
    histories: Arc<[Mutex<History>; WRITERS]>,
    /// Whether a call may fail.
    pub faulted: bool,
}

impl World {
    pub fn new(disk: SimDisk, store: Store, trees: [Tree; 2], faulted: bool) -> Self {
        Self {
            disk,
            store,
            trees,
            histories: Arc::default(),
            faulted,
        }
    }

    pub fn history(&self, writer: usize) -> MutexGuard<'_, History> {
        self.histories[writer].lock().expect("no panic")
    }

    /// Panics unless a call was made to fail.
    pub fn may_fail(&self, error: &Error) {
        assert!(self.faulted, "{error}");
    }

    /// The writer's newest commit was acknowledged.
    pub fn acknowledged(&self, writer: usize) {
        let mut history = self.history(writer);
        let commit = history.states.len() - 1;
        history.known.push((self.disk.calls(), commit));
    }

    /// Reads what all share in a transaction's snapshot and checks it; how far each
    /// writer had come.
    pub fn look(&self, txn: &mut Txn) -> Result<Front> {
        let names = SHARED.map(str::to_owned).into_iter();
        let trees: Vec<_> = names.zip(self.trees.clone()).collect();
        let view = modelled(txn, &trees)?;
        let histories: [_; WRITERS] = std::array::from_fn(|writer| self.history(writer));
        let front = view.front();
        view.check(&front, |writer| &histories[writer]);
        Ok(front)
    }

    /// Somebody was shown a snapshot.
    pub fn shown(&self, front: &Front) {
        let call = self.disk.calls();
        for (writer, commit) in front.iter().enumerate() {
            self.history(writer).known.push((call, *commit));
        }
    }

    /// How far each writer had come for all to see.
    pub fn known(&self) -> Front {
        std::array::from_fn(|writer| self.history(writer).least(u64::MAX))
    }

    /// The histories, once nobody else has them.
    pub fn into_histories(self) -> [History; WRITERS] {
        let histories = Arc::into_inner(self.histories).expect("the threads have ended");
        histories.map(|history| history.into_inner().expect("no panic"))
    }
}
