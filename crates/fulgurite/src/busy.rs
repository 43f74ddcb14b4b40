//! What a connection does where another one is in its way.

use std::time::Duration;

use crate::hooks::Exclusive;
use crate::{Connection, Error, Result};

impl Connection {
    /// How long a call waits for another connection before it answers
    /// `SQLITE_BUSY`; 5 s at first. A handler that was set is asked no more.
    ///
    /// # Errors
    /// None today.
    pub fn busy_timeout(&self, timeout: Duration) -> Result<()> {
        self.session().set_busy_timeout(timeout);
        Ok(())
    }

    /// Has a handler be asked where a lock is not to be had, in place of the timeout: true
    /// tries again, false answers `SQLITE_BUSY`. It is told how often it was asked for that
    /// lock before. None answers so at once; [`busy_timeout`](Self::busy_timeout) and
    /// `PRAGMA busy_timeout = …` remove it, too. `SQLITE_BUSY_SNAPSHOT` is not asked about,
    /// since to try again does not help there.
    ///
    /// The handler is called in the midst of a statement: from it the connection answers
    /// `SQLITE_MISUSE`. One that panics gives up. What has no owner to wait for (space in
    /// the log until a checkpoint has made some) is waited for as long as
    /// [`Options::busy_timeout`](crate::Options::busy_timeout) says.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// let mut db = fulgurite::Connection::open_in_memory()?;
    /// db.busy_handler(Some(|asked| {
    ///     std::thread::sleep(std::time::Duration::from_millis(5));
    ///     asked < 100
    /// }))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `SQLITE_MISUSE` from within a function or a hook.
    pub fn busy_handler<F>(&mut self, handler: Option<F>) -> Result<()>
    where
        F: FnMut(i32) -> bool + Send + 'static,
    {
        let handler = handler.map(|it| {
            let handler = Exclusive::new(it);
            std::sync::Arc::new(move |asked| handler.with(|f| f(asked)).unwrap_or(false)) as _
        });
        let set = self.session().set_busy_handler(handler);
        set.map_err(Error::from_engine)
    }
}
