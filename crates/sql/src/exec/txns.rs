//! The transactions of a connection: one in its main database, and one in each other that
//! it has open, its temporary database first.
//!
//! Trees know which store they are in, and whatever is done to a tree is done in the
//! transaction of its store. To a connection that has only its main database open, that is
//! one comparison.
//!
//! A database that others use may refuse a commit, a private one has nobody to lose
//! against. So those that others use commit first, as one where there are several, and
//! whatever they say holds for all.

use fulgurite_store::{
    Appending, BusyHandler, Cursor, ErrorKind, Isolation, Key, KeyKind, Result, Savepoint, Store,
    Suspended, Tree, Txn, TxnContext, TxnState, commit_together, exclude_together, read_together,
};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// A transaction in a database that is not the main one.
struct Other {
    store: u64,
    /// No other connection can have it open.
    is_private: bool,
    txn: Txn,
}

/// See the module.
pub struct Txns {
    /// That of the main database.
    pub main: Txn,
    store: u64,
    others: Vec<Other>,
}

/// A place to go back to in each of the transactions.
pub struct Mark {
    main: Savepoint,
    others: Vec<(u64, Savepoint)>,
}

/// Begins what may be written to in this way, or by others than this connection; what nobody
/// may write, or may any more, to be read beside others.
///
/// # Errors
/// `Poisoned` where writing has ended with half of a commit to several databases.
pub fn begin_or_read(
    txn: &mut TxnContext,
    begin: impl FnOnce(&mut TxnContext) -> Result<()>,
) -> Result<()> {
    match txn.begin_only_to_read(begin) {
        Err(error) if only_reads(&error) => {
            txn.check_whole()?;
            txn.begin_read()
        }
        begun => begun,
    }
}

/// Begins in this way in a store that comes in the order of locks after so many others.
pub fn begin_after(
    others: usize,
    txn: &mut TxnContext,
    begin: impl FnOnce(&mut TxnContext) -> Result<()>,
) -> Result<()> {
    match others {
        0 => begin(txn),
        _ => txn.begin_after_others(begin),
    }
}

/// Whether what was to be written can only be read.
fn only_reads(error: &fulgurite_store::Error) -> bool {
    matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::Poisoned)
}

/// Begins without a database that cannot be read beside others: it may be of no use to the
/// transaction at all.
fn or_leave_out(begun: Result<()>) -> Result<()> {
    match begun {
        Err(error) if error.kind() == ErrorKind::Poisoned => Ok(()),
        begun => begun,
    }
}

impl Txns {
    /// Of a connection to a database in this store.
    pub fn new(store: &Store) -> Self {
        Self {
            main: store.txn(),
            store: store.number(),
            others: Vec::new(),
        }
    }

    /// Another database is there, at this place among them.
    pub fn open(&mut self, at: usize, store: &Store, is_private: bool) {
        let other = Other {
            store: store.number(),
            is_private,
            txn: store.txn(),
        };
        self.others.insert(at.min(self.others.len()), other);
    }

    /// Bounds waits for locks.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        self.each(|txn| txn.set_busy_timeout(timeout));
    }

    /// Has a handler be asked in place of that.
    pub fn set_busy_handler(&mut self, handler: &BusyHandler) {
        self.each(|txn| txn.set_busy_handler(Some(handler.clone())));
    }

    /// Whether what is written from here on cannot be taken back in part; see
    /// [`TxnContext::set_whole`].
    pub fn set_whole(&mut self, is_whole: bool) {
        self.each(|txn| txn.set_whole(is_whole));
    }

    /// Whether nothing is refused to what is written from here on; see
    /// [`TxnContext::set_unasked`].
    pub fn set_unasked(&mut self, is_unasked: bool) {
        self.each(|txn| txn.set_unasked(is_unasked));
    }

    /// Whether writing to a tree may have to wait for others; see
    /// [`TxnContext::may_be_refused`].
    pub fn may_be_refused(&mut self, tree: &Tree, grows: bool) -> bool {
        self.of(tree).may_be_refused(tree, grows)
    }

    fn each(&mut self, act: impl Fn(&mut Txn)) {
        act(&mut self.main);
        self.others.iter_mut().for_each(|other| act(&mut other.txn));
    }

    /// The transaction in this store; in one that is not open, that of the main database,
    /// which refuses its trees.
    pub fn in_store(&mut self, store: u64) -> &mut Txn {
        let others = &mut self.others;
        let found = others.iter_mut().find(|other| other.store == store);
        found.map_or(&mut self.main, |other| &mut other.txn)
    }

    #[inline(always)]
    fn of(&mut self, tree: &Tree) -> &mut TxnContext {
        match tree.store_number() == self.store {
            true => &mut self.main,
            false => self.in_other(tree),
        }
    }

    #[cold]
    fn in_other(&mut self, tree: &Tree) -> &mut TxnContext {
        self.in_store(tree.store_number())
    }

    /// Whether something was written, to any of them.
    pub fn has_written(&self) -> bool {
        let mut others = self.others.iter();
        self.main.has_written() || others.any(|other| other.txn.has_written())
    }

    /// Fails where one of these trees is in a database that the transaction can only read:
    /// before anything is done, so that nothing is to be undone.
    #[inline]
    pub fn check_writes<'t>(&mut self, trees: impl IntoIterator<Item = &'t Tree>) -> Result<()> {
        if self.others.is_empty() && self.main.state() != TxnState::Read {
            return Ok(());
        }
        let mut trees = trees.into_iter();
        trees.try_for_each(|tree| self.of(tree).check_writes())
    }

    /// Whether a transaction is under way in this store.
    pub fn is_begun(&mut self, store: u64) -> bool {
        self.in_store(store).state() != TxnState::Idle
    }

    // ---- from the beginning to the end -------------------------------------

    /// Where that of the main database stands.
    #[inline]
    pub fn state(&self) -> TxnState {
        self.main.state()
    }

    /// Begins in another database what lasts as long as the transaction in the main one,
    /// with a place to go back to for each that was taken since that began.
    pub fn join<'m>(
        &mut self,
        store: u64,
        isolation: Isolation,
        marks: impl Iterator<Item = &'m mut Mark>,
    ) -> Result<()> {
        let txn = self.in_store(store);
        txn.check_whole()?;
        // The others may hold locks by now.
        begin_or_read(txn, |txn| {
            txn.begin_after_others(|txn| txn.begin(isolation))
        })?;
        for mark in marks {
            mark.others.push((store, txn.savepoint()?));
        }
        Ok(())
    }

    /// The stores of the databases that others use, in the order in which their locks are
    /// taken.
    fn shared(&self) -> Vec<u64> {
        let others = self.others.iter().filter(|other| !other.is_private);
        let mut all: Vec<u64> = others.map(|other| other.store).collect();
        all.push(self.store);
        all.sort_unstable();
        all
    }

    /// Begins an explicit transaction, in all databases that others use: it reads what they
    /// showed at one moment. One that cannot be read beside others is left out; who comes to
    /// use it there hears of that ([`join`](Self::join)).
    pub fn begin(&mut self, isolation: Isolation) -> Result<()> {
        if self.others.is_empty() {
            return match self.main.begin(isolation) {
                Err(error) if only_reads(&error) => self.main.begin_read(),
                begun => begun,
            };
        }
        let begin = |txn: &mut TxnContext| txn.begin(isolation);
        let begun = self.begin_all(|main| begin_or_read(main, begin), begin);
        begun
            .and_then(|()| self.read_together(|_| true))
            .inspect_err(|_| self.rollback())
    }

    /// As [`begin_immediate`](Self::begin_immediate), in the main database ahead of what is
    /// acknowledged but for this tree. What private ones hold then comes from answers that
    /// were confirmed, and commits after the main one; a commit to other ones, too, waits for
    /// what the main one builds on. Where this connection may only read the main one it
    /// begins to read, as in SQLite.
    pub fn begin_immediate_ahead(&mut self, acknowledged: &Tree) -> Result<()> {
        let begun = match self.others.iter().any(|other| !other.is_private) {
            true => self.exclude_all(TxnContext::begin_immediate_ahead),
            false => self.main.begin_immediate_ahead(),
        };
        match begun {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {
                return self.begin(Isolation::Serializable);
            }
            begun => begun?,
        }
        let relied = self.main.rely_on(acknowledged);
        let confirmed = relied.and_then(|()| self.main.confirm());
        confirmed.inspect_err(|_| self.rollback())
    }

    /// Begins one that nobody can make fail: it keeps the other writers out of all of them.
    pub fn begin_immediate(&mut self) -> Result<()> {
        match self.others.is_empty() {
            true => self.main.begin_immediate(),
            false => self.exclude_all(TxnContext::begin_immediate),
        }
    }

    /// Begins in all databases that others use, in the main one so, and keeps the other
    /// writers out.
    fn exclude_all(&mut self, begin_main: impl Fn(&mut TxnContext) -> Result<()>) -> Result<()> {
        let begun = self.begin_all(begin_main, TxnContext::begin_immediate);
        begun.inspect_err(|_| self.rollback())
    }

    /// Begins in all databases that others use, in the order of their locks; what cannot be
    /// read beside others is left out as in [`begin`](Self::begin). It waits for its turn
    /// before, in the first of those that it wrote to last.
    fn begin_all(
        &mut self,
        begin_main: impl Fn(&mut TxnContext) -> Result<()>,
        begin_other: impl Fn(&mut TxnContext) -> Result<()>,
    ) -> Result<()> {
        let (main, stores) = (self.store, self.shared());
        for store in &stores {
            if self.in_store(*store).take_turn()? {
                break;
            }
        }
        stores.into_iter().try_for_each(|store| {
            let txn = self.in_store(store);
            let begin_other = |txn: &mut TxnContext| txn.begin_after_others(|txn| begin_other(txn));
            match store == main {
                true => txn.begin_after_others(|txn| begin_main(txn)),
                false => or_leave_out(begin_or_read(txn, begin_other)),
            }
        })
    }

    /// Keeps other writers out from here on, of all databases that others use: who comes to
    /// do that in another one does not wait for it while it holds this one.
    pub fn exclude_writers(&mut self) -> Result<()> {
        if self.others.is_empty() {
            return self.main.exclude_writers();
        }
        let mut all = self.begun_shared(|_| true);
        all.retain(|txn| txn.state() != TxnState::Read);
        exclude_together(&mut all)
    }

    /// Has those that were begun in these stores and have read nothing read what their
    /// databases showed at one moment.
    pub fn read_together(&mut self, is_used: impl Fn(u64) -> bool) -> Result<()> {
        let mut all = self.begun_shared(is_used);
        all.retain(|txn| txn.is_unused());
        match all.len() {
            0 | 1 => Ok(()),
            _ => read_together(&mut all),
        }
    }

    /// Those under way in such of these stores as others use, that in main first.
    fn begun_shared(&mut self, is_used: impl Fn(u64) -> bool) -> Vec<&mut TxnContext> {
        let others = self.others.iter_mut().filter(|other| !other.is_private);
        let others = others.map(|other| (other.store, &mut other.txn));
        let all = std::iter::once((self.store, &mut self.main)).chain(others);
        let begun = all.filter(|(store, txn)| is_used(*store) && txn.state() != TxnState::Idle);
        begun.map(|(_, txn)| &mut **txn).collect()
    }

    /// A database is closed; nothing is under way in it.
    pub fn close(&mut self, store: u64) {
        self.others.retain(|other| other.store != store);
    }

    /// Undoes everything.
    #[inline]
    pub fn rollback(&mut self) {
        if self.main.state() != TxnState::Idle {
            self.main.rollback();
        }
        if !self.others.is_empty() {
            self.begun_others().for_each(|txn| txn.rollback());
        }
    }

    /// Undoes everything of a statement alone that has failed. That tells about data that
    /// others published: nobody may hear of it before it is durable.
    #[cold]
    pub fn rollback_to_tell(&mut self) -> Result<()> {
        self.rollback();
        self.wait_until_visible()
    }

    /// Waits until all that was seen, in any of them, is acknowledged.
    pub fn wait_until_visible(&self) -> Result<()> {
        self.main.wait_until_visible()?;
        let mut others = self.others.iter();
        others.try_for_each(|other| other.txn.wait_until_visible())
    }

    /// Those in the other databases that are under way.
    fn begun_others(&mut self) -> impl Iterator<Item = &mut Txn> {
        let txns = self.others.iter_mut().map(|other| &mut other.txn);
        txns.filter(|txn| txn.state() != TxnState::Idle)
    }

    /// Commits, as [`TxnContext::commit`] does: idle afterwards, unless `Busy` left it open.
    #[inline]
    pub fn commit(&mut self) -> Result<()> {
        match self.others.is_empty() {
            true => self.main.commit(),
            false => self.commit_all(),
        }
    }

    /// Commits in each database by itself, up to the first that fails.
    pub fn commit_apart(&mut self) -> Result<()> {
        if self.main.state() != TxnState::Idle {
            self.main.commit()?;
        }
        self.begun_others().try_for_each(|txn| txn.commit())
    }

    #[cold]
    fn commit_all(&mut self) -> Result<()> {
        let mut shared = self.begun_shared(|_| true);
        if let Err(error) = commit_together(&mut shared) {
            let is_open = shared.iter().any(|txn| txn.state() != TxnState::Idle);
            if !is_open {
                self.rollback();
            }
            return Err(error);
        }
        // What is committed stays: none is kept from it by another that fails.
        let mut all = Ok(());
        for txn in self.begun_others() {
            all = all.and(txn.commit());
        }
        all
    }

    /// Takes a place to go back to.
    pub fn savepoint(&mut self) -> Result<Mark> {
        let main = self.main.savepoint()?;
        let mut mark = Mark {
            main,
            others: Vec::new(),
        };
        for other in &mut self.others {
            if other.txn.state() != TxnState::Idle {
                mark.others.push((other.store, other.txn.savepoint()?));
            }
        }
        Ok(mark)
    }

    /// Undoes what was done since.
    pub fn rollback_to(&mut self, mark: &Mark) -> Result<()> {
        self.main.rollback_to(&mark.main)?;
        for (store, savepoint) in &mark.others {
            self.in_store(*store).rollback_to(savepoint)?;
        }
        Ok(())
    }

    /// Nobody goes back to it, or to a later one, again.
    pub fn release(&mut self, mark: &Mark) -> Result<()> {
        self.main.release(&mark.main)?;
        for (store, savepoint) in &mark.others {
            self.in_store(*store).release(savepoint)?;
        }
        Ok(())
    }

    /// Makes a new tree in the store of another one.
    pub fn create_tree(&mut self, beside: &Tree, kind: KeyKind) -> Result<Tree> {
        self.of(beside).create_tree(kind)
    }

    /// The store that a tree is in.
    pub fn store_of(&mut self, tree: &Tree) -> &Store {
        self.of(tree).store()
    }
}

impl Txns {
    /// As [`TxnContext::put_all`].
    pub fn put_all<'e>(
        &mut self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (i64, &'e [u8])>,
    ) -> Result<()> {
        self.of(tree).put_all(tree, entries)
    }

    /// As [`TxnContext::rewrite_all`].
    pub fn rewrite_all<'e>(
        &mut self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (i64, &'e [u8])>,
    ) -> Result<()> {
        self.of(tree).rewrite_all(tree, entries)
    }

    /// As [`TxnContext::insert_all`].
    pub fn insert_all<'e>(
        &mut self,
        tree: &Tree,
        entries: impl IntoIterator<Item = (i64, &'e [u8])>,
    ) -> Result<usize> {
        self.of(tree).insert_all(tree, entries)
    }

    /// As [`TxnContext::append`].
    pub fn append<'t>(&'t mut self, tree: &'t Tree) -> Appending<'t> {
        self.of(tree).append(tree)
    }

    /// As [`TxnContext::delete_all`].
    pub fn delete_all(
        &mut self,
        tree: &Tree,
        keys: &[i64],
        deleted: impl FnMut(i64),
    ) -> Result<()> {
        self.of(tree).delete_all(tree, keys, deleted)
    }

    /// As [`TxnContext::go_on_appending`].
    pub fn go_on_appending<'t>(
        &'t mut self,
        tree: &'t Tree,
        suspended: Suspended,
    ) -> Appending<'t> {
        self.of(tree).go_on_appending(tree, suspended)
    }

    /// As [`TxnContext::take_all`].
    pub fn take_all(&mut self, tree: &Tree) -> Result<Option<Cursor>> {
        self.of(tree).take_all(tree)
    }

    /// As [`TxnContext::clear`].
    pub fn clear(&mut self, tree: &Tree, goes_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        self.of(tree).clear(tree, goes_on)
    }
}

/// What is done to a tree, in the transaction of its store: as the methods of [`TxnContext`].
macro_rules! in_its_store {
    ($($(#[$hint:meta])? $method:ident($($name:ident: $type:ty),*) -> $out:ty;)+) => {
        #[allow(missing_docs, reason = "they are those of the store")]
        impl Txns {
            $($(#[$hint])? pub fn $method(&mut self, tree: &Tree, $($name: $type),*) -> $out {
                self.of(tree).$method(tree, $($name),*)
            })+
        }
    };
}

in_its_store! {
    #[inline] get_into(key: Key<'_>, out: &mut Vec<u8>) -> Result<bool>;
    #[inline] get_to_change(key: Key<'_>, out: &mut Vec<u8>) -> Result<bool>;
    #[inline] get_start_into(key: Key<'_>, out: &mut Vec<u8>) -> Result<Option<usize>>;
    #[inline] get_start_to_change(key: Key<'_>, out: &mut Vec<u8>) -> Result<Option<usize>>;
    get_part(key: Key<'_>, part: Range<usize>, out: &mut Vec<u8>) -> Result<bool>;
    #[inline] get_lasting(key: Key<'_>, out: &mut Vec<u8>) -> Result<bool>;
    #[inline] is_taken(key: Key<'_>) -> Result<bool>;
    #[inline] put(key: Key<'_>, value: &[u8]) -> Result<bool>;
    put_part(key: Key<'_>, from: usize, bytes: &[u8]) -> Result<bool>;
    put_start(key: Key<'_>, until: usize, start: &[u8]) -> Result<bool>;
    #[inline] rewrite(key: Key<'_>, value: &[u8]) -> Result<bool>;
    rewrite_start(key: Key<'_>, until: usize, start: &[u8]) -> Result<bool>;
    #[inline] insert(key: Key<'_>, value: &[u8]) -> Result<bool>;
    #[inline] delete(key: Key<'_>) -> Result<bool>;
    #[inline] stamp() -> Result<u64>;
    #[inline] allocate_rowid() -> Result<i64>;
    #[inline] allocate_rowid_above(floor: Option<i64>) -> Result<i64>;
    allocate_rowids(want: usize) -> Result<RangeInclusive<i64>>;
    largest_rowid() -> Result<Option<i64>>;
    count() -> Result<u64>;
    estimate() -> Result<u64>;
    cursor() -> Result<Cursor>;
    cursor_lasting() -> Result<Cursor>;
    cursor_to_estimate() -> Result<Cursor>;
    claim() -> Result<()>;
    is_scattered() -> bool;
    drop_tree() -> Result<()>;
}
