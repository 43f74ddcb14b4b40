//! What functions know beyond their arguments.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::hooks::Hooks;
use super::json::Documents;
use super::user::KeptData;
use crate::plan::physical::Pragma;
use crate::value::{Collation, Value};

/// The state of a session that functions may ask for. One lives as long as the
/// session; a statement has one of its own, which [begins](Context::begin_in) with it.
#[derive(Debug, Clone)]
pub struct Context {
    /// The collation of the call at hand (min, max, nullif).
    pub collation: Collation,
    /// Rows changed by the last INSERT, UPDATE or DELETE.
    pub changes: i64,
    /// Rows changed since the session was opened.
    pub total_changes: i64,
    /// The last rowid inserted.
    pub last_insert_rowid: i64,
    /// Which arguments of the call at hand are texts of JSON, where the function asks.
    pub json_arguments: Vec<bool>,
    /// The call that has ended made a text of JSON.
    pub gave_json: bool,
    /// The subtype of what the last function of the program gave.
    pub subtype: u32,
    /// The connection's hooks, where it has any.
    pub hooks: Option<Arc<Hooks>>,
    /// What functions of the program keep for their arguments while the statement runs.
    pub(super) kept: Option<Box<KeptData>>,
    /// Texts of JSON that were read.
    pub(super) documents: Option<Box<Documents>>,
    /// What the PRAGMAs answered that the statement asks.
    pub(crate) answers: Vec<(Pragma, Arc<Vec<Vec<Value>>>)>,
    /// A function has asked for the time or its zone.
    pub(super) clock_asked: bool,
    now_ms: Option<i64>,
    random: Random,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            collation: Collation::Binary,
            changes: 0,
            total_changes: 0,
            last_insert_rowid: 0,
            json_arguments: Vec::new(),
            gave_json: false,
            subtype: 0,
            hooks: None,
            kept: None,
            documents: None,
            answers: Vec::new(),
            clock_asked: false,
            now_ms: None,
            random: Random::default(),
        }
    }
}

impl Context {
    /// A fresh session's.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an argument of the call at hand is a text of JSON.
    pub(super) fn takes_json(&self, argument: usize) -> bool {
        self.json_arguments.get(argument).copied().unwrap_or(false)
    }

    /// Begins a statement of a session, within which 'now' stands still. It has random
    /// numbers of its own.
    #[inline(always)]
    pub fn begin_in(&mut self, session: &mut Context) {
        self.changes = session.changes;
        self.total_changes = session.total_changes;
        self.last_insert_rowid = session.last_insert_rowid;
        self.random = session.random.next_statement();
        self.clock_asked = false;
        if self.documents.as_ref().is_some_and(|it| it.is_large()) {
            self.documents = None;
        }
        if self.hooks.is_some() || session.hooks.is_some() {
            self.hooks.clone_from(&session.hooks);
        }
        if self.kept.is_some() {
            self.kept = None;
        }
        self.now_ms = None;
    }

    /// That of a statement which has not begun, and holds nothing of the program.
    pub fn of_statement(&self) -> Self {
        Self {
            hooks: None,
            kept: None,
            ..self.clone()
        }
    }

    /// Lets go of what is the program's: hooks that are removed, and what functions keep,
    /// are to be dropped though the statement stays.
    #[inline]
    pub fn end(&mut self) {
        if self.kept.is_some() {
            self.kept = None;
        }
        if self.hooks.is_some() {
            self.hooks = None;
        }
    }

    /// Gives back what texts of JSON took.
    pub fn let_go(&mut self) {
        self.documents = None;
    }

    /// Fixes 'now', in milliseconds since 1970, until the next statement.
    pub fn set_now_ms(&mut self, now_ms: i64) {
        self.now_ms = Some(now_ms);
    }

    /// Notes that the result hangs on the time or its zone.
    pub(super) fn ask_clock(&mut self) {
        self.clock_asked = true;
    }

    /// Milliseconds since 1970, the same through a statement.
    pub fn now_ms(&mut self) -> i64 {
        self.ask_clock();
        *self.now_ms.get_or_insert_with(|| {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_millis());
            i64::try_from(now).unwrap_or(0)
        })
    }

    /// The next random number.
    pub fn random(&mut self) -> u64 {
        self.random.next()
    }
}

/// Random numbers: what SipHash, with a random key that a session has for itself, makes of
/// the number of the statement and how many it has asked for. No statement has those of
/// another one, and nothing follows from one about the next.
#[derive(Debug, Clone, Default)]
struct Random {
    key: RandomState,
    statement: u64,
    asked: u64,
}

impl Random {
    /// Those of the next statement of a session.
    #[inline(always)]
    fn next_statement(&mut self) -> Self {
        self.statement += 1;
        Self {
            asked: 0,
            ..self.clone()
        }
    }

    fn next(&mut self) -> u64 {
        self.asked += 1;
        self.key.hash_one((self.statement, self.asked))
    }
}
