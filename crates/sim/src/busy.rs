//! A checkpoint with commits between its calls, in an order the seed decides.

use std::sync::{Arc, mpsc};

use crate::{Gate, SimDisk};

/// Opens a gate whatever happens, so that the guest's thread ends.
struct Opened(Arc<Gate>, SimDisk);

impl Drop for Opened {
    fn drop(&mut self) {
        self.1.set_gate(None);
        self.0.open();
    }
}

/// Runs `guest` on a thread of its own, and `host` here whenever the guest is at
/// one of its calls. Never do both run at once.
pub(crate) fn meanwhile<T: Send>(
    disk: &SimDisk,
    guest: impl FnOnce() -> T + Send,
    mut host: impl FnMut(),
) -> T {
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel::<Arc<Gate>>();
        let thread = scope.spawn(move || {
            let gate = receiver.recv();
            // A panic must not leave the host waiting.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(guest));
            if let Ok(gate) = gate {
                gate.open();
            }
            done
        });
        let gate = Gate::for_thread(thread.thread().id());
        let opened = Opened(Arc::clone(&gate), disk.clone());
        disk.set_gate(Some(Arc::clone(&gate)));
        // The thread is waiting for it.
        let _ = sender.send(Arc::clone(&gate));
        while gate.wait_for_guest() {
            host();
            gate.let_go();
        }
        drop(opened);
        match thread.join() {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) | Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
