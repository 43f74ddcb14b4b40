//! The sessions as transactions of the key-value store. A predicate is a scan.

use super::{Rows, Sessions};
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Seek, Store, Tree, Txn};

pub struct KeyValue {
    tree: Tree,
    txns: Vec<Txn>,
    isolation: Isolation,
}

impl KeyValue {
    pub fn new(isolation: Isolation) -> Self {
        let store = Store::in_memory(Options::default()).expect("a store");
        let tree = store.create_family("test", KeyKind::Int).expect("a family");
        let txns = (0..4).map(|_| store.txn()).collect();
        let mut new = Self {
            tree,
            txns,
            isolation,
        };
        new.begin(0);
        new.write(0, 1, 10);
        new.write(0, 2, 20);
        assert!(new.commit(0));
        new
    }

    fn filtered(&mut self, session: usize, keep: impl Fn(i64) -> bool) -> Rows {
        let mut rows = self.all(session);
        rows.retain(|(_, value)| keep(*value));
        rows
    }
}

fn value_of(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

impl Sessions for KeyValue {
    fn begin(&mut self, session: usize) {
        self.txns[session].begin(self.isolation).expect("begin");
    }

    fn all(&mut self, session: usize) -> Rows {
        let mut cursor = self.txns[session].cursor(&self.tree).expect("a cursor");
        let mut rows = Rows::new();
        let mut more = cursor.seek(Seek::First).expect("a seek");
        while more {
            let value = value_of(cursor.value().expect("a value"));
            rows.push((cursor.key_int(), value));
            more = cursor.next().expect("a step");
        }
        rows
    }

    fn read(&mut self, session: usize, id: i64) -> Option<i64> {
        let mut value = Vec::new();
        let found = self.txns[session].get_into(&self.tree, Key::Int(id), &mut value);
        found.expect("a read").then(|| value_of(&value))
    }

    fn multiples(&mut self, session: usize, of: i64) -> Rows {
        self.filtered(session, |value| value % of == 0)
    }

    fn holding(&mut self, session: usize, value: i64) -> Rows {
        self.filtered(session, |held| held == value)
    }

    fn insert(&mut self, session: usize, id: i64, value: i64) {
        self.write(session, id, value);
    }

    fn write(&mut self, session: usize, id: i64, value: i64) {
        self.txns[session]
            .put(&self.tree, Key::Int(id), &value.to_le_bytes())
            .expect("a put");
    }

    fn add_to_all(&mut self, session: usize, by: i64) {
        for (id, value) in self.all(session) {
            self.write(session, id, value + by);
        }
    }

    fn delete_holding(&mut self, session: usize, value: i64) {
        for (id, _) in self.holding(session, value) {
            self.txns[session]
                .delete(&self.tree, Key::Int(id))
                .expect("a delete");
        }
    }

    fn commit(&mut self, session: usize) -> bool {
        match self.txns[session].commit() {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                let conflict = error.conflict().expect("what it lost against");
                assert_eq!(conflict.tree(), self.tree.id());
                false
            }
        }
    }

    fn rollback(&mut self, session: usize) {
        self.txns[session].rollback();
    }
}
