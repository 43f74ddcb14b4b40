//! Asking a transaction.

use crate::ask::{Ask, Counts, Digest, Draw, Move, MoveTold, Moved, Name, To, Told, Value};
use fulgurite_store::{
    Appending, Cursor, ErrorKind, Key, KeyKind, Result, Seek, Tree, TreeId, Txn,
};
use std::ops::Bound;

/// A cursor that is read on, now and then.
pub struct Scan {
    /// Which step of its transaction it is.
    pub step: usize,
    cursor: Cursor,
    tree: Tree,
    bounds: Option<(Name, Name)>,
    is_on: bool,
}

impl Scan {
    pub fn open(txn: &mut Txn, ask: &Ask, step: usize) -> Result<Self> {
        let Ask::Scan(tree, counts, bounds) = ask else {
            panic!("{ask:?} is no scan");
        };
        let mut cursor = match counts {
            Counts::Plain => txn.cursor(tree),
            Counts::Lasting => txn.cursor_lasting(tree),
            Counts::Never => txn.cursor_to_estimate(tree),
        }?;
        if let Some((low, high)) = bounds {
            cursor.narrow(Bound::Included(low.key()), Bound::Included(high.key()));
        }
        Ok(Self {
            step,
            cursor,
            tree: tree.clone(),
            bounds: bounds.clone(),
            is_on: false,
        })
    }

    /// Reads everything.
    pub fn read_all(&mut self, into: &mut Vec<Moved>) -> Result<()> {
        let mut more = self.cursor.seek(Seek::First)?;
        let mut asked = Move::Seek(To::First);
        while more {
            let name = match self.tree.kind() {
                KeyKind::Int => Name::Int(self.cursor.key_int()),
                KeyKind::Bytes => Name::Bytes(self.cursor.key_bytes()?.into()),
            };
            let digest = Digest::new(self.cursor.value()?);
            into.push((MoveTold(asked, Vec::new()), Some((name, Some(digest)))));
            asked = Move::Next;
            more = self.cursor.next()?;
        }
        into.push((MoveTold(asked, Vec::new()), None));
        Ok(())
    }

    /// Moves once, and says what lies there.
    pub fn go_on(&mut self, draw: &mut Draw) -> Result<Moved> {
        let asked = match draw.rng.below(12) {
            at if at == 0 || !self.is_on => Move::Seek(draw.seek(&self.tree, &self.bounds)),
            1..4 => Move::Prev,
            4 | 5 if self.tree.kind() == KeyKind::Int => Move::Run(1 + draw.rng.below(4) as usize),
            _ => Move::Next,
        };
        let mut keys = Vec::new();
        let cursor = &mut self.cursor;
        if self.bounds.is_none() && draw.rng.chance(1, 12) {
            let share = cursor.share_before(draw.name(&self.tree).key())?;
            assert!((0.0..=1.0).contains(&share), "{share} of {:?}", self.tree);
        }
        let there = match &asked {
            Move::Seek(To::Share(share)) => cursor.seek_share(*share),
            Move::Seek(to) => cursor.seek(match to {
                To::First => Seek::First,
                To::Last => Seek::Last,
                To::AtLeast(name) => Seek::AtLeast(name.key()),
                To::After(name) => Seek::After(name.key()),
                To::AtMost(name) => Seek::AtMost(name.key()),
                To::Before(name) => Seek::Before(name.key()),
                To::Share(_) => unreachable!("no place"),
            }),
            Move::Next => cursor.next(),
            Move::Prev => cursor.prev(),
            Move::Run(count) => {
                let mut run = cursor.run();
                if let Some((_, high)) = &self.bounds {
                    run = run.up_to(high.int());
                }
                keys.extend(run.first(*count).keys());
                cursor.skip(keys.len())
            }
        }?;
        assert_eq!(there, cursor.valid());
        let name = match there {
            false => None,
            true => Some(match self.tree.kind() {
                KeyKind::Int => Name::Int(cursor.key_int()),
                KeyKind::Bytes => Name::Bytes(cursor.key_bytes()?.into()),
            }),
        };
        let within = |name: &Name| match &self.bounds {
            Some((low, high)) => low <= name && name <= high,
            None => true,
        };
        // What lies beyond does not count, and is not to be told.
        let name = name.filter(within);
        self.is_on = name.is_some();
        let found = match name {
            None => None,
            Some(name) => {
                let digest = match draw.rng.below(4) {
                    0 => None,
                    1 => {
                        let mut whole = Vec::new();
                        cursor.value_part(0..usize::MAX, &mut whole)?;
                        let (start, len) = cursor.value_start()?;
                        assert!(whole.starts_with(start) && whole.len() == len);
                        Some(Digest::new(&whole))
                    }
                    _ => Some(Digest::new(cursor.value()?)),
                };
                Some((name, digest))
            }
        };
        Ok((MoveTold(asked, keys), found))
    }
}

/// Asks for anything but a scan; who made a tree, or heard of one, is told of the handle.
pub fn act(txn: &mut Txn, ask: &Ask, meet: &mut dyn FnMut(&Tree)) -> Result<Told> {
    let told = match ask {
        Ask::Family(_)
        | Ask::Given(_)
        | Ask::Families
        | Ask::CreateFamily(..)
        | Ask::DropFamily(_)
        | Ask::CreateTree(_)
        | Ask::DropTree(_) => about_trees(txn, ask, meet),
        Ask::Get(..)
        | Ask::GetLasting(..)
        | Ask::GetStart(..)
        | Ask::GetPart(..)
        | Ask::Contains(..)
        | Ask::Count(_)
        | Ask::DependOn(_)
        | Ask::RelyOn(_)
        | Ask::Estimate(_) => read(txn, ask),
        _ => write(txn, ask),
    };
    match told {
        Err(error) if error.kind() == ErrorKind::Misuse => Ok(Told::Refused),
        told => told,
    }
}

fn read(txn: &mut Txn, ask: &Ask) -> Result<Told> {
    let mut out = b"before".to_vec();
    let value = |found: bool, out: &[u8]| Told::Value(found.then(|| Digest::new(out)));
    Ok(match ask {
        Ask::Get(tree, name, true) => {
            let found = txn.get_to_change(tree, name.key(), &mut out)?;
            value(found, &out)
        }
        Ask::Get(tree, name, false) => {
            let found = txn.get_into(tree, name.key(), &mut out)?;
            value(found, &out)
        }
        Ask::GetLasting(tree, name) => {
            let found = txn.get_lasting(tree, name.key(), &mut out)?;
            value(found, &out)
        }
        Ask::GetStart(tree, name) => {
            let len = txn.get_start_into(tree, name.key(), &mut out)?;
            Told::Start(len.map(|len| (len, out)))
        }
        Ask::GetPart(tree, name, from, to) => {
            let found = txn.get_part(tree, name.key(), *from..*to, &mut out)?;
            value(found, out.strip_prefix(b"before").expect("appends"))
        }
        Ask::Contains(tree, name, Counts::Lasting) => Told::Is(txn.is_taken(tree, name.key())?),
        Ask::Contains(tree, name, _) => Told::Is(txn.contains(tree, name.key())?),
        Ask::Count(tree) => Told::Number(txn.count(tree)?),
        Ask::DependOn(tree) => {
            txn.depend_on(tree);
            Told::Nothing
        }
        Ask::RelyOn(tree) => {
            txn.rely_on(tree)?;
            Told::Nothing
        }
        Ask::Estimate(tree) => Told::Number(txn.estimate(tree)?),
        _ => panic!("{ask:?} does not read"),
    })
}

fn write(txn: &mut Txn, ask: &Ask) -> Result<Told> {
    Ok(match ask {
        Ask::Put(tree, name, value) => Told::Is(txn.put(tree, name.key(), value.bytes())?),
        Ask::Insert(tree, name, value) => Told::Is(txn.insert(tree, name.key(), value.bytes())?),
        Ask::Delete(tree, name) => Told::Is(txn.delete(tree, name.key())?),
        Ask::PutPart(tree, name, from, part) => {
            Told::Is(txn.put_part(tree, name.key(), *from, part.bytes())?)
        }
        Ask::PutStart(tree, name, until, start) => {
            Told::Is(txn.put_start(tree, name.key(), *until, start.bytes())?)
        }
        Ask::PutAll(tree, rows) => {
            let rows = rows.iter().map(|(key, value)| (*key, value.bytes()));
            txn.put_all(tree, rows)?;
            Told::Nothing
        }
        Ask::InsertAll(tree, rows) => {
            let rows = rows.iter().map(|(key, value)| (*key, value.bytes()));
            Told::Number(txn.insert_all(tree, rows)? as u64)
        }
        Ask::DeleteAll(tree, keys) => {
            let mut deleted = Vec::new();
            txn.delete_all(tree, keys, |key| deleted.push(key))?;
            Told::Keys(deleted)
        }
        Ask::Rewrite(tree, name, value) => {
            Told::Is(txn.rewrite(tree, name.key(), value.bytes())?)
        }
        Ask::RewriteStart(tree, name, until, start) => {
            Told::Is(txn.rewrite_start(tree, name.key(), *until, start.bytes())?)
        }
        Ask::RewriteAll(tree, rows) => {
            let rows = rows.iter().map(|(key, value)| (*key, value.bytes()));
            txn.rewrite_all(tree, rows)?;
            Told::Nothing
        }
        Ask::InsertSorted(tree, rows) => {
            let (first, rest) = rows.split_at(rows.len() / 2);
            let mut appending = txn.append(tree);
            let mut inserted = insert_each(&mut appending, first)?;
            let suspended = appending.suspend();
            let mut appending = txn.go_on_appending(tree, suspended);
            inserted.extend(insert_each(&mut appending, rest)?);
            appending.finish()?;
            Told::Each(inserted)
        }
        Ask::Clear(tree) => Told::Number(txn.clear(tree, || true)?.expect("goes on")),
        Ask::Append(tree, count, value) => {
            let given = txn.allocate_rowids(tree, *count)?;
            let mut keys = Vec::new();
            for key in given.take(*count) {
                let was_there = txn.put(tree, Key::Int(key), value.bytes())?;
                assert!(!was_there, "row {key} of {tree:?} was given and is there");
                keys.push(key);
            }
            Told::Keys(keys)
        }
        Ask::Exclude => {
            txn.exclude_writers()?;
            Told::Nothing
        }
        _ => panic!("{ask:?} does not write"),
    })
}

fn insert_each(appending: &mut Appending<'_>, rows: &[(Name, Value)]) -> Result<Vec<bool>> {
    let rows = rows.iter();
    rows.map(|(name, value)| appending.insert(name.key(), value.bytes()))
        .collect()
}

/// Families that no round is about.
pub fn is_own(name: &str) -> bool {
    name.starts_with("own")
}

fn about_trees(txn: &mut Txn, ask: &Ask, meet: &mut dyn FnMut(&Tree)) -> Result<Told> {
    Ok(match ask {
        Ask::Families => {
            let mut families = txn.families()?;
            families.retain(|(name, _)| !is_own(name));
            let told = families.into_iter().map(|(name, tree)| {
                meet(&tree);
                (name, tree.id().0)
            });
            Told::Families(told.collect())
        }
        Ask::Given(name) => {
            let names = txn.store().tree(TreeId(0))?;
            let mut number = Vec::new();
            let is_given = txn.get_into(&names, Key::Bytes(name.as_bytes()), &mut number)?;
            let number = is_given.then(|| number.try_into().expect("a number of a tree"));
            Told::Tree(number.map(u32::from_le_bytes))
        }
        Ask::CreateFamily(name, kind) => {
            let tree = txn.create_family(name, *kind)?;
            meet(&tree);
            Told::Tree(Some(tree.id().0))
        }
        Ask::DropFamily(name) => Told::Dropped(txn.drop_family(name)?),
        Ask::CreateTree(kind) => {
            let tree = txn.create_tree(*kind)?;
            meet(&tree);
            Told::Tree(Some(tree.id().0))
        }
        Ask::DropTree(tree) => {
            txn.drop_tree(tree)?;
            Told::Nothing
        }
        _ => panic!("{ask:?} is not about trees"),
    })
}
