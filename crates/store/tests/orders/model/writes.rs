//! What writes leave in the model.

use super::{Explained, Run, same};
use crate::ask::{Ask, Counts, Name, Told, Value};

impl Run {
    pub(super) fn write(&mut self, ask: &Ask, told: &Told) -> Explained {
        match ask {
            Ask::Put(tree, name, value) | Ask::Rewrite(tree, name, value) => {
                let replaced = self.set(tree.id().0, name.clone(), Some(value.clone()));
                same(told, &Told::Is(replaced))
            }
            Ask::Insert(tree, name, value) => {
                let inserted = self.insert(tree.id().0, name, value);
                same(told, &Told::Is(inserted))
            }
            Ask::Delete(tree, name) => {
                let id = tree.id().0;
                let is_there = self.state.row(id, name).is_some();
                if is_there {
                    self.set(id, name.clone(), None);
                }
                same(told, &Told::Is(is_there))
            }
            Ask::PutPart(tree, name, from, part) => {
                let id = tree.id().0;
                let Some(value) = self.state.row(id, name) else {
                    return same(told, &Told::Is(false));
                };
                let mut bytes = value.bytes().to_vec();
                let Some(place) = bytes.get_mut(*from..from + part.bytes().len()) else {
                    return same(told, &Told::Refused);
                };
                place.copy_from_slice(part.bytes());
                self.set(id, name.clone(), Some(Value::new(bytes)));
                same(told, &Told::Is(true))
            }
            Ask::PutStart(tree, name, until, start)
            | Ask::RewriteStart(tree, name, until, start) => {
                let id = tree.id().0;
                let Some(value) = self.state.row(id, name) else {
                    return same(told, &Told::Is(false));
                };
                let Some(rest) = value.bytes().get(*until..) else {
                    return same(told, &Told::Refused);
                };
                let whole = [start.bytes(), rest].concat();
                self.set(id, name.clone(), Some(Value::new(whole)));
                same(told, &Told::Is(true))
            }
            _ => self.write_many(ask, told),
        }
    }

    fn write_many(&mut self, ask: &Ask, told: &Told) -> Explained {
        match ask {
            Ask::PutAll(tree, rows) | Ask::RewriteAll(tree, rows) => {
                for (key, value) in rows {
                    self.set(tree.id().0, Name::Int(*key), Some(value.clone()));
                }
                same(told, &Told::Nothing)
            }
            Ask::InsertAll(tree, rows) => {
                let mut rows = rows.iter();
                let inserted = rows
                    .by_ref()
                    .take_while(|(key, value)| self.insert(tree.id().0, &Name::Int(*key), value))
                    .count();
                same(told, &Told::Number(inserted as u64))
            }
            Ask::InsertSorted(tree, rows) => {
                let rows = rows.iter();
                let inserted = rows.map(|(name, value)| self.insert(tree.id().0, name, value));
                same(told, &Told::Each(inserted.collect()))
            }
            Ask::DeleteAll(tree, keys) => {
                let id = tree.id().0;
                let mut deleted = Vec::new();
                for key in keys {
                    let name = Name::Int(*key);
                    if self.state.row(id, &name).is_some() {
                        self.set(id, name, None);
                        deleted.push(*key);
                    }
                }
                same(told, &Told::Keys(deleted))
            }
            Ask::Clear(tree) => {
                let id = tree.id().0;
                let names: Vec<Name> = self.rows_in(&self.state, id).keys().cloned().collect();
                let count = names.len() as u64;
                for name in names {
                    self.set(id, name, None);
                }
                same(told, &Told::Number(count))
            }
            Ask::Append(tree, _, value) => {
                let Told::Keys(keys) = told else {
                    return Err(format!("told {told:?}"));
                };
                for key in keys {
                    if self.set(tree.id().0, Name::Int(*key), Some(value.clone())) {
                        return Err(format!("was given {key}, which is there"));
                    }
                }
                Ok(())
            }
            _ => unreachable!("no writing"),
        }
    }

    /// Whether it was not there.
    fn insert(&mut self, tree: u32, name: &Name, value: &Value) -> bool {
        if !self.written.contains(&(tree, name.clone())) {
            self.note(tree, name, Counts::Lasting, true);
        }
        let is_there = self.state.row(tree, name).is_some();
        if !is_there {
            self.set(tree, name.clone(), Some(value.clone()));
        }
        !is_there
    }
}
