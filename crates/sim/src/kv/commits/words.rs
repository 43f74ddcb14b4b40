//! Enough rows of the same few hundred words that a tree gets a dictionary, and
//! other words later, that it gets another.

use fulgurite_store::{KeyKind, Result, TreeId};

use crate::kv::{Life, RowKey, Table};

/// Bytes of a row.
const ROW: usize = 400;
/// Pages to fill: more than a dictionary is tried for.
const PAGES: usize = 80;
/// What words are made of; each transaction leaves the others out.
const SOUNDS: [[&str; 6]; 3] = [
    ["ba", "cor", "den", "fi", "gar", "ul"],
    ["mar", "ne", "or", "pe", "ri", "sa"],
    ["wen", "xi", "yo", "zan", "ka", "lu"],
];

impl Life<'_> {
    /// A transaction of such rows, and a checkpoint that writes them.
    pub(in crate::kv) fn words(&mut self) -> Result<()> {
        let store = self.store()?;
        let mut txn = store.txn();
        txn.begin_immediate()?;
        let mut next = self.visible.clone();
        let known = self.any_tree().filter(|_| self.rng.one_in(2));
        let id = match known.filter(|id| next.tables[id].kind == KeyKind::Int) {
            Some(id) => id,
            None => {
                let id = txn.create_tree(KeyKind::Int)?.id().0;
                next.tables.insert(id, Table::new(KeyKind::Int));
                self.made(id);
                id
            }
        };
        let sounds = SOUNDS[self.rng.index(SOUNDS.len())];
        let rows = PAGES * store.page_size() / ROW;
        for number in 0..rows as i64 {
            let key = RowKey::Int(100_000 + number);
            let mut value = Vec::with_capacity(ROW + 8);
            while value.len() < ROW - 8 {
                for _ in 0..4 {
                    value.extend_from_slice(sounds[self.rng.index(6)].as_bytes());
                }
                value.push(b' ');
            }
            value.truncate(ROW - 8);
            value.extend_from_slice(&self.rng.bits().to_le_bytes());
            txn.put(&store.tree(TreeId(id))?, key.borrow(), &value)?;
            let table = next.table(id).expect("the model knows its trees");
            table.rows.insert(key, value.into());
        }
        self.commit(next, &mut txn)?;
        self.checkpoint()
    }
}
