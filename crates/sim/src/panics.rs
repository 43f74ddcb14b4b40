//! Panics, which are failures here: those of the engine's own threads, which
//! nobody would notice, are kept; what others say is kept quiet, since it is
//! reported with the seed.

use std::any::Any;
use std::cell::Cell;
use std::sync::Once;

use parking_lot::Mutex;

static BACKGROUND: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Begins to watch.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current();
            if thread
                .name()
                .is_some_and(|name| name.starts_with("fulgurite-"))
            {
                *BACKGROUND.lock() = Some(format!("the thread {thread:?}: {info}"));
            }
            if !QUIET.get() {
                before(info);
            }
        }));
    });
}

/// Says nothing of this thread's panics from now on: they are caught.
pub fn quiet() {
    watch();
    QUIET.set(true);
}

/// What a thread of the engine panicked with since the last call.
pub fn of_the_background() -> Option<String> {
    BACKGROUND.lock().take()
}

/// What a caught panic says.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
