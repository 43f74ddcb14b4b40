//! The objects as families: a list is a value that is appended to, a register a
//! value, the set a family's keys.

use crate::history::{Event, Value};
use crate::run::{Ask, Begin, Beginning, Session, Target, USED_AFTER, store};
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Seek, Store, Tree, Txn};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct KeyValue {
    store: Store,
    isolation: Isolation,
    beginning: Beginning,
    sessions: AtomicUsize,
}

impl KeyValue {
    pub fn new(isolation: Isolation, beginning: Beginning) -> Self {
        let store = store(beginning).expect("a store");
        for (name, kind) in [
            ("lists", KeyKind::Int),
            ("registers", KeyKind::Int),
            ("rows", KeyKind::Bytes),
        ] {
            store.create_family(name, kind).expect("a family");
        }
        Self {
            store,
            isolation,
            beginning,
            sessions: AtomicUsize::new(0),
        }
    }
}

impl Target for KeyValue {
    fn session(&self) -> Box<dyn Session> {
        let family = |name| self.store.family(name).expect("reads").expect("there");
        let name = format!("own {}", self.sessions.fetch_add(1, Relaxed));
        let own = self.store.create_family(&name, KeyKind::Int);
        Box::new(KeyValueSession {
            txn: self.store.txn(),
            own: own.expect("a family"),
            lists: family("lists"),
            registers: family("registers"),
            rows: family("rows"),
            isolation: self.isolation,
            beginning: self.beginning,
        })
    }
}

struct KeyValueSession {
    txn: Txn,
    /// Nobody else's.
    own: Tree,
    lists: Tree,
    registers: Tree,
    rows: Tree,
    isolation: Isolation,
    beginning: Beginning,
}

impl KeyValueSession {
    /// A new context, used to small transactions.
    fn get_used(&mut self) {
        self.txn = self.txn.store().txn();
        for _ in 0..USED_AFTER {
            self.txn.begin(self.isolation).expect("begins");
            let put = self.txn.put(&self.own, Key::Int(0), b"");
            put.expect("a put");
            self.txn.commit().expect("nobody else writes there");
        }
    }

    fn list(&mut self, key: usize) -> Vec<Value> {
        let mut bytes = Vec::new();
        self.txn
            .get_into(&self.lists, Key::Int(key as i64), &mut bytes)
            .expect("a list");
        bytes
            .chunks_exact(8)
            .map(|item| Value::from_le_bytes(item.try_into().expect("eight bytes")))
            .collect()
    }

    fn value(&mut self, key: usize) -> Value {
        let mut bytes = Vec::new();
        let found = self
            .txn
            .get_into(&self.registers, Key::Int(key as i64), &mut bytes)
            .expect("a register");
        match found {
            true => Value::from_le_bytes(bytes.as_slice().try_into().expect("eight bytes")),
            false => 0,
        }
    }

    fn rows(&mut self, low: u64, high: u64) -> Vec<Value> {
        let mut cursor = self.txn.cursor(&self.rows).expect("a cursor");
        let low = low.to_be_bytes();
        let mut more = cursor
            .seek(Seek::AtLeast(Key::Bytes(&low)))
            .expect("a seek");
        let mut rows = Vec::new();
        while more {
            let key = cursor
                .key_bytes()
                .expect("a key")
                .try_into()
                .expect("eight bytes");
            let row = Value::from_be_bytes(key);
            if row > high {
                break;
            }
            rows.push(row);
            more = cursor.next().expect("a step");
        }
        rows
    }
}

impl Session for KeyValueSession {
    fn begin(&mut self, how: Begin) {
        let begun = match how {
            Begin::Optimistic => {
                if self.beginning == Beginning::Hold {
                    self.get_used();
                }
                self.txn.begin(self.isolation)
            }
            Begin::Immediate => self.txn.begin_immediate(),
            // It has its tree from here to its end, so it must not stay open while
            // others take their turn.
            Begin::Autocommit => Ok(()),
        };
        begun.expect("begins");
    }

    fn run(&mut self, ask: Ask) -> Vec<Event> {
        let alone = self.txn.state() == fulgurite_store::TxnState::Idle;
        if alone {
            let tree = match ask {
                Ask::ReadList(_) | Ask::Append(..) => &self.lists,
                Ask::Read(_) | Ask::Write(..) => &self.registers,
                Ask::ReadSet(..) | Ask::Add(_) => &self.rows,
            };
            self.txn.begin_statement(&[tree]).expect("begins");
        }
        let events = match ask {
            Ask::ReadList(key) => vec![Event::ReadList(key, self.list(key))],
            Ask::Append(key, value) => {
                let mut list = self.list(key);
                list.push(value);
                let bytes: Vec<u8> = list.iter().flat_map(|item| item.to_le_bytes()).collect();
                self.txn
                    .put(&self.lists, Key::Int(key as i64), &bytes)
                    .expect("a put");
                vec![Event::Append(key, value)]
            }
            Ask::Read(key) => vec![Event::Read(key, self.value(key))],
            Ask::Write(key, value) => {
                let before = self.value(key);
                self.txn
                    .put(&self.registers, Key::Int(key as i64), &value.to_le_bytes())
                    .expect("a put");
                vec![Event::Read(key, before), Event::Write(key, value)]
            }
            Ask::ReadSet(low, high) => vec![Event::ReadSet(low, high, self.rows(low, high))],
            Ask::Add(value) => {
                let key = value.to_be_bytes();
                let fresh = self.txn.insert(&self.rows, Key::Bytes(&key), b"");
                assert!(fresh.expect("an insert"));
                vec![Event::Add(value)]
            }
        };
        if alone {
            self.txn.commit().expect("a statement cannot lose");
        }
        events
    }

    fn commit(&mut self) -> bool {
        if self.txn.state() == fulgurite_store::TxnState::Idle {
            return true;
        }
        match self.txn.commit() {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                false
            }
        }
    }

    fn rollback(&mut self) {
        self.txn.rollback();
    }
}
