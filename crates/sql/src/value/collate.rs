//! Collations of the program, which compare two texts and can do nothing else.
//!
//! A comparison lies deep within operators and sorts and knows neither connection nor
//! errors. So what a connection has registered is noted for the thread while one of its
//! statements runs that may ask ([`enter`]), and so is what went wrong
//! ([`take_failure`]): the texts count as equal then, and the statement fails once it
//! looks. What such a statement calls may run others: each has its own.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use fulgurite_store::caught;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result, code};

/// Names that there may be in a process.
const NAMES_MAX: usize = 1 << 16;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 255;

/// The name of a collation that is not built in; equal in whatever case it is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CollationName(u16);

/// All names that came, as they were first written.
static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

impl CollationName {
    /// The name as it is known everywhere from here on.
    ///
    /// # Errors
    /// One that is too long, or one too many.
    pub fn new(name: &str) -> Result<Self> {
        if let Some(known) = Self::known(name) {
            return Ok(known);
        }
        let mut names = NAMES.write();
        let place = names.iter().position(|it| it.eq_ignore_ascii_case(name));
        let place = place.unwrap_or(names.len());
        if place == names.len() {
            if name.len() > NAME_BYTES_MAX || place >= NAMES_MAX {
                return Err(Error::misuse("bad parameter or other API misuse").with_hint(
                    "the name of a collation has up to 255 bytes, and a process up to 65536 of them",
                ));
            }
            names.push(Box::leak(Box::from(name)));
        }
        Ok(Self(place as u16))
    }

    /// A name that came before.
    pub fn known(name: &str) -> Option<Self> {
        let names = NAMES.read();
        let place = names.iter().position(|it| it.eq_ignore_ascii_case(name))?;
        Some(Self(place as u16))
    }

    /// As it was first written.
    pub fn text(self) -> &'static str {
        NAMES.read().get(usize::from(self.0)).copied().unwrap_or("")
    }
}

impl fmt::Debug for CollationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Compares two texts.
pub type CompareTexts = Arc<dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync>;

/// What a connection has registered.
#[derive(Clone, Default)]
pub struct Collations(Option<Arc<FxHashMap<CollationName, CompareTexts>>>);

impl fmt::Debug for Collations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Collations {
    /// Whether there is one of this name.
    pub fn has(&self, name: CollationName) -> bool {
        self.0.as_ref().is_some_and(|it| it.contains_key(&name))
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|it| it.is_empty())
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = CollationName> {
        self.0.iter().flat_map(|it| it.keys().copied())
    }

    /// Adds one, or replaces it.
    pub fn set(&mut self, name: CollationName, compare: CompareTexts) {
        Arc::make_mut(self.0.get_or_insert_default()).insert(name, compare);
    }

    /// Removes one.
    pub fn remove(&mut self, name: CollationName) {
        if let Some(known) = &mut self.0 {
            Arc::make_mut(known).remove(&name);
        }
    }
}

/// Whom comparisons on a thread ask, and what went wrong since.
#[derive(Default)]
pub struct Current {
    collations: Collations,
    failure: Option<Error>,
}

thread_local!(static CURRENT: RefCell<Current> = RefCell::default());

/// Has comparisons on this thread ask these, until what it gives is what [`leave`] is
/// given: that of the statement that called code of the program which runs this one.
pub fn enter(collations: Collations) -> Current {
    let failure = None;
    CURRENT.replace(Current {
        collations,
        failure,
    })
}

/// Goes back to what there was before; tells what went wrong meanwhile.
pub fn leave(outer: Current) -> Option<Error> {
    CURRENT.replace(outer).failure
}

/// What went wrong since it was last asked.
pub fn take_failure() -> Option<Error> {
    CURRENT.with_borrow_mut(|current| current.failure.take())
}

/// Notes what went wrong; the first failure counts.
pub fn fail(error: Error) {
    CURRENT.with_borrow_mut(|current| {
        current.failure.get_or_insert(error);
    });
}

/// Compares two texts by a collation of the program.
#[cold]
#[inline(never)]
pub(super) fn compare(name: CollationName, a: &[u8], b: &[u8]) -> Ordering {
    let known = CURRENT.with_borrow(|current| {
        let collations = current.collations.0.as_ref()?;
        collations.get(&name).cloned()
    });
    let Some(known) = known else {
        fail(missing(name.text()));
        return Ordering::Equal;
    };
    caught(|| known(a, b)).unwrap_or_else(|| {
        fail(Error::sql("unwinding panic").with_hint("a collation of the program panicked"));
        Ordering::Equal
    })
}

/// There is no collation of this name.
#[cold]
pub fn missing(name: &str) -> Error {
    let message = format!("no such collation sequence: {name}");
    Error::new(code::ERROR_MISSING_COLLSEQ, message)
        .with_hint("BINARY, NOCASE and RTRIM are built in; others are a connection's own")
}
