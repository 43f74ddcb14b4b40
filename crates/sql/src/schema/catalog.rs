//! The databases that a connection has open, as a statement names what is in them.
//!
//! A bare name is looked for in the temporary database, in the main one, and in the others
//! in the order in which they were attached. What the temporary database holds may name
//! what is in any of them; what another one holds, only what is beside it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use fulgurite_store::Tree;

use super::{Schema, Trigger};
use crate::error::Result;

/// The name of the main database.
pub const MAIN: &str = "main";
/// The name of the temporary one.
pub const TEMP: &str = "temp";

/// See the module.
#[derive(Debug, Clone)]
pub struct Catalog {
    main: Arc<Schema>,
    temp: Option<Arc<Schema>>,
    attached: Vec<(Arc<str>, Arc<Schema>)>,
    /// The stores of the databases in which something was looked for, found or not.
    searched: RefCell<Vec<u64>>,
    /// The temporary database was asked for, and is not there yet.
    wants_temp: Cell<bool>,
}

impl Catalog {
    /// Of a connection that has only its main database open.
    pub fn new(main: Arc<Schema>) -> Self {
        Self {
            main,
            temp: None,
            attached: Vec::new(),
            searched: RefCell::default(),
            wants_temp: Cell::new(false),
        }
    }

    /// Adds a database; the temporary one by its name.
    pub fn add(&mut self, name: &Arc<str>, schema: Arc<Schema>) {
        match &**name {
            TEMP => self.temp = Some(schema),
            _ => self.attached.push((Arc::clone(name), schema)),
        }
    }

    /// The main database.
    pub fn main(&self) -> &Schema {
        &self.main
    }

    /// The temporary database, if there is one by now.
    pub fn temp(&self) -> Option<&Schema> {
        self.temp.as_deref()
    }

    /// Whether the temporary database is in this store.
    pub fn is_temp(&self, store: u64) -> bool {
        let is_it = |it: &Schema| it.is_temp() && it.tree().store_number() == store;
        self.in_order().any(is_it)
    }

    /// There is only the main database.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.temp.is_none() && self.attached.is_empty()
    }

    /// All others, the temporary one first.
    pub fn others(&self) -> impl Iterator<Item = &Schema> {
        let attached = self.attached.iter().map(|(_, schema)| &**schema);
        self.temp().into_iter().chain(attached)
    }

    /// All of them, in the order in which bare names are looked for.
    pub fn in_order(&self) -> impl Iterator<Item = &Schema> {
        let attached = self.attached.iter().map(|(_, schema)| &**schema);
        self.temp().into_iter().chain([self.main()]).chain(attached)
    }

    /// The first of them that has something, in the order in which bare names are looked
    /// for. What it means depends on those before, too, which have it not.
    pub fn find(&self, has: impl Fn(&Schema) -> bool) -> Option<&Schema> {
        self.in_order()
            .inspect(|it| self.note(it))
            .find(|it| has(it))
    }

    /// All of them, in each of which something is looked for.
    pub fn search_all(&self) -> impl Iterator<Item = &Schema> {
        self.in_order().inspect(|it| self.note(it))
    }

    /// Notes that something was looked for in a database.
    fn note(&self, schema: &Schema) {
        if self.is_alone() {
            return;
        }
        let mut searched = self.searched.borrow_mut();
        let store = schema.tree().store_number();
        if !searched.contains(&store) {
            searched.push(store);
        }
    }

    /// The stores of the databases in which something was looked for, found or not; none
    /// where there is only the main one.
    pub fn searched(&self) -> Vec<u64> {
        self.searched.borrow().clone()
    }

    /// All of them with their numbers, of which that of the temporary one is 1.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &Schema)> {
        let temp = self.temp().map(|temp| (1, temp));
        let attached = self.attached.iter().map(|(_, schema)| &**schema);
        let first = [(0, self.main())].into_iter().chain(temp);
        first.chain((2..).zip(attached))
    }

    /// The database of a name, in any case.
    pub fn named(&self, name: &str) -> Option<&Schema> {
        self.with_name(name).inspect(|schema| self.note(schema))
    }

    fn with_name(&self, name: &str) -> Option<&Schema> {
        if name.eq_ignore_ascii_case(MAIN) {
            return Some(&self.main);
        }
        if name.eq_ignore_ascii_case(TEMP) {
            if self.temp.is_none() {
                self.want_temp();
            }
            return self.temp();
        }
        let mut attached = self.attached.iter();
        let found = attached.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, schema)| &**schema)
    }

    /// What a database is called.
    pub fn name_of(&self, schema: &Schema) -> &str {
        let is_it = |other: &Schema| other.tree() == schema.tree();
        if is_it(&self.main) {
            return MAIN;
        }
        let found = self.attached.iter().find(|(_, other)| is_it(other));
        found.map_or(TEMP, |(name, _)| name)
    }

    /// What the database in a store is called.
    pub fn name_of_store(&self, store: u64) -> &str {
        let is_it = |schema: &&Schema| schema.tree().store_number() == store;
        self.name_of(self.others().find(is_it).unwrap_or(&self.main))
    }

    /// The database that a tree belongs to.
    pub fn of(&self, tree: &Tree) -> &Schema {
        if self.is_alone() {
            return &self.main;
        }
        let is_it = |schema: &&Schema| schema.tree().store_number() == tree.store_number();
        self.others().find(is_it).unwrap_or(&self.main)
    }

    /// The same databases, with this schema in place of the one whose store it belongs to.
    #[must_use]
    pub fn with(&self, changed: Schema) -> Self {
        let mut catalog = self.clone();
        let changed = Arc::new(changed);
        let is_it = |schema: &Schema| schema.tree() == changed.tree();
        if is_it(&catalog.main) {
            catalog.main = changed;
        } else if catalog.temp.as_deref().is_some_and(is_it) {
            catalog.temp = Some(changed);
        } else if let Some(of) = catalog.attached.iter_mut().find(|(_, s)| is_it(s)) {
            of.1 = changed;
        }
        catalog
    }

    /// Notes that a name is one of the temporary database.
    pub fn want_temp(&self) {
        self.wants_temp.set(true);
    }

    /// Whether a name was met that only means something once there is a temporary database.
    pub fn wants_temp(&self) -> bool {
        self.wants_temp.get()
    }

    /// Whether a table or view of a database, by its name in any case, has triggers.
    #[inline]
    pub fn has_triggers(&self, schema: &Schema, table: &str) -> bool {
        schema.has_triggers(table, None)
            || self.temp_beside(schema).is_some_and(|temp| {
                let database = self.name_of(schema);
                temp.has_triggers(table, Some(database))
            })
    }

    /// The triggers of a table or view of a database, with the database that each is in, in
    /// the order in which SQLite runs them: temporary ones first.
    pub fn triggers_of<'c>(
        &'c self,
        schema: &'c Schema,
        table: &str,
    ) -> Result<Vec<(Arc<Trigger>, &'c Schema)>> {
        let mut all = Vec::new();
        if let Some(temp) = self.temp_beside(schema) {
            let mut temporary = temp.triggers_of(table, Some(self.name_of(schema)))?;
            temporary.reverse();
            all.extend(temporary.into_iter().map(|trigger| (trigger, temp)));
        }
        let own = schema.triggers_of(table, None)?;
        all.extend(own.into_iter().map(|trigger| (trigger, schema)));
        Ok(all)
    }

    /// The temporary database, if it is another one.
    pub fn temp_beside(&self, schema: &Schema) -> Option<&Schema> {
        self.temp().filter(|temp| temp.tree() != schema.tree())
    }
}
