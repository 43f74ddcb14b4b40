//! Lets one thread stop at its calls while another one works, so that what two
//! threads do lies among one another in an order that a seed decides.
//!
//! The engine's checkpoints run on a thread of their own. Here such a thread,
//! the *guest*, is stopped before each of its calls on the data file and each
//! making of a file, where the engine holds no lock that a commit needs; the
//! host does what it wants meanwhile and lets it go on. Never do both run, so
//! one seed is one run.

use std::sync::Arc;
use std::thread::ThreadId;

use parking_lot::{Condvar, Mutex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Host,
    Guest,
    /// The guest has ended, or runs freely.
    Open,
}

/// Where the guest stops. See the module's header.
#[derive(Debug)]
pub struct Gate {
    guest: ThreadId,
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Gate {
    /// A gate for a thread, which runs until its first call.
    pub fn for_thread(guest: ThreadId) -> Arc<Self> {
        Arc::new(Self {
            guest,
            turn: Mutex::new(Turn::Guest),
            changed: Condvar::new(),
        })
    }

    /// The guest is at a call: the host's turn, until it says otherwise.
    pub(crate) fn stop_here(&self) {
        if std::thread::current().id() != self.guest {
            return;
        }
        let mut turn = self.turn.lock();
        if *turn == Turn::Open {
            return;
        }
        *turn = Turn::Host;
        self.changed.notify_all();
        while *turn == Turn::Host {
            self.changed.wait(&mut turn);
        }
    }

    /// The host waits until the guest is at a call; false if it has ended.
    pub fn wait_for_guest(&self) -> bool {
        let mut turn = self.turn.lock();
        while *turn == Turn::Guest {
            self.changed.wait(&mut turn);
        }
        *turn == Turn::Host
    }

    /// Lets the guest go on to its next call.
    pub fn let_go(&self) {
        let mut turn = self.turn.lock();
        if *turn == Turn::Host {
            *turn = Turn::Guest;
            self.changed.notify_all();
        }
    }

    /// A thread that waits for the other one lets it go on, and waits until it is
    /// at a call or its turn is over. False if there is no other one any more.
    pub(crate) fn give_turn(&self) -> bool {
        if std::thread::current().id() == self.guest {
            self.stop_here();
            return *self.turn.lock() != Turn::Open;
        }
        self.let_go();
        self.wait_for_guest()
    }

    /// Ends the gate: by the guest when it has ended, by the host to let it run.
    pub fn open(&self) {
        *self.turn.lock() = Turn::Open;
        self.changed.notify_all();
    }
}
