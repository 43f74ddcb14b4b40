//! Code of the program: what a connection registers, and its hooks.
//!
//! A query calls it while nothing of the session is locked. A statement that writes keeps
//! the session for itself: who asks for that from within, on the same thread, is told so
//! instead of waiting for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::MutexGuard;

use super::state::State;
use super::{Session, Shared};
use crate::error::{Error, Result};
use crate::func::UserFunction;
use crate::func::hooks::Hooks;
use crate::func::user::UserCode;
use crate::value::collate::CompareTexts;

/// Tells threads apart.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// While a thread may call code of the program with the session locked.
pub(super) struct Calling<'a>(&'a AtomicUsize);

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Shared {
    /// The session's state, for whoever is not called by a statement that has it.
    ///
    /// # Errors
    /// `SQLITE_MISUSE`: who asks is.
    #[inline]
    pub(super) fn state(&self) -> Result<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Some(state) => Ok(state),
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> Result<MutexGuard<'_, State>> {
        if self.calling.load(Ordering::Relaxed) == this_thread() {
            return Err(Error::misuse("bad parameter or other API misuse").with_hint(
                "a function or a hook may not use the connection whose statement writes meanwhile",
            ));
        }
        Ok(self.state.lock())
    }

    /// Notes that this thread, which has the state, may call code of the program.
    pub(super) fn calls(&self) -> Calling<'_> {
        self.calling.store(this_thread(), Ordering::Relaxed);
        Calling(&self.calling)
    }
}

impl Session {
    /// Whether functions or collations are registered.
    pub fn has_user_code(&self) -> bool {
        self.read(true, |state| state.settings.user != UserCode::NONE)
    }

    /// Registers a function, in place of one of that name and number of arguments.
    ///
    /// # Errors
    /// `SQLITE_BUSY` where one would be replaced while statements are running.
    pub fn register_function(&self, function: UserFunction) -> Result<()> {
        // Refused, it is dropped while nothing is locked.
        let function = Arc::new(function);
        self.change_user_code(|user, is_busy| user.register(Arc::clone(&function), is_busy))
    }

    /// Removes a registered function; one that is built in, and was hidden by it, is back.
    ///
    /// # Errors
    /// `SQLITE_BUSY` while statements are running.
    pub fn remove_function(&self, name: &str, arguments: i32) -> Result<()> {
        self.change_user_code(|user, is_busy| user.remove(name, arguments, is_busy))
    }

    /// Registers a collation, in place of one of that name; None removes it.
    ///
    /// # Errors
    /// As [`UserCode::collate`](crate::func::user::UserCode::collate).
    pub fn set_collation(&self, name: &str, how: Option<CompareTexts>) -> Result<()> {
        self.change_user_code(|user, is_busy| user.collate(name, how.clone(), is_busy))
    }

    fn change_user_code(
        &self,
        change: impl FnOnce(&mut UserCode, bool) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.0.state()?;
        let is_busy = state.running > 0;
        // What is replaced is the program's, and is dropped while nothing is locked.
        let before = state.settings.user.clone();
        let changed = change(&mut state.settings.user, is_busy);
        drop(state);
        drop(before);
        changed
    }

    /// Changes the hooks; statements that run go on with those that they began with.
    ///
    /// # Errors
    /// `SQLITE_MISUSE` from within a statement that writes.
    pub fn set_hooks(&self, set: impl FnOnce(&mut Hooks)) -> Result<()> {
        let mut state = self.0.state()?;
        let mut hooks = state
            .functions
            .hooks
            .as_deref()
            .cloned()
            .unwrap_or_default();
        set(&mut hooks);
        hooks.databases = state.names_beside();
        let before = std::mem::take(&mut state.functions.hooks);
        state.functions.hooks = (!hooks.is_empty()).then(|| Arc::new(hooks));
        drop(state);
        drop(before);
        Ok(())
    }
}
