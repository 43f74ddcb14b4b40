//! PRAGMA synchronous: what the commits of a connection survive.
//!
//! Below FULL a commit is with the operating system when it returns, and synced a moment
//! later: a power cut may take the newest ones, never a part of one. OFF does as NORMAL
//! does, since a database that nothing syncs may be damaged.

use fulgurite_store::Durability;

use super::state::State;
use crate::error::{Error, Result};
use crate::value::{Value, ValueRef};

const OFF: u8 = 0;
const NORMAL: u8 = 1;
const FULL: u8 = 2;
const EXTRA: u8 = 3;

/// What it shows for a database that was opened with this durability.
pub(super) fn level_of(durability: Durability) -> u8 {
    match durability {
        Durability::Full => FULL,
        Durability::Normal => NORMAL,
        Durability::Off => OFF,
    }
}

/// What it shows for an attached database, or the temporary one.
pub(super) fn level_in(store: u64, state: &mut State) -> u8 {
    level_of(state.txn.in_store(store).durability())
}

/// Sets it, for the main database or for the one in another store; a word that means nothing
/// changes nothing.
pub(super) fn set(value: &Value, other: Option<u64>, state: &mut State) -> Result<()> {
    if !state.is_autocommit() {
        return Err(Error::sql(
            "Safety level may not be changed inside a transaction",
        ));
    }
    match (level(value), other) {
        (Some(level), None) => state.set_synchronous(level),
        (Some(level), Some(store)) => {
            let txn = state.txn.in_store(store);
            txn.set_durability(durability_of(level));
        }
        (None, _) => {}
    }
    Ok(())
}

/// What commits at this level survive.
pub(super) fn durability_of(level: u8) -> Durability {
    match level {
        OFF => Durability::Off,
        NORMAL => Durability::Normal,
        _ => Durability::Full,
    }
}

fn level(value: &Value) -> Option<u8> {
    let word = match value.as_ref() {
        ValueRef::Text(word) if !word.first().is_some_and(u8::is_ascii_digit) => word,
        number => match number.to_integer() {
            ..0 => return None,
            // Three bits, of which SQLite keeps one for a level that was not set.
            number => return Some(((number as u8).wrapping_add(1) & 7).max(1) - 1),
        },
    };
    const WORDS: [(&[u8], u8); 9] = [
        (b"off", OFF),
        (b"no", OFF),
        (b"false", OFF),
        (b"normal", NORMAL),
        (b"on", NORMAL),
        (b"yes", NORMAL),
        (b"true", NORMAL),
        (b"full", FULL),
        (b"extra", EXTRA),
    ];
    let known = WORDS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word));
    known.map(|(_, level)| *level)
}
