//! What families and trees hold, and whether that explains what a transaction was told.

mod writes;

use crate::ask::{Ask, Counts, Digest, Move, Moved, Name, To, Told, Value};
use crate::history::Step;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;

pub type Rows = BTreeMap<Name, Value>;

/// A state of the store.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct State {
    pub trees: BTreeMap<u32, Arc<Rows>>,
    pub gone: BTreeSet<u32>,
    pub names: BTreeMap<String, u32>,
}

/// What two stores hold, of which mostly the first one is in use.
pub type World = [State; 2];

impl State {
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (id, rows) in &self.trees {
            (id, rows.len()).hash(&mut hasher);
            for (name, value) in rows.iter() {
                (name, value.digest().hash).hash(&mut hasher);
            }
        }
        (&self.gone, &self.names).hash(&mut hasher);
        hasher.finish()
    }

    fn row(&self, tree: u32, name: &Name) -> Option<&Value> {
        self.trees.get(&tree)?.get(name)
    }

    fn families(&self) -> Vec<(String, u32)> {
        let there = self.names.iter();
        let there = there.filter(|(_, id)| self.trees.contains_key(id));
        there.map(|(name, id)| (name.clone(), *id)).collect()
    }

    fn named(&self, name: &str) -> Option<u32> {
        let id = self.names.get(name).copied();
        id.filter(|id| self.trees.contains_key(id))
    }
}

/// What stays to be so until the commit.
#[derive(Clone, Debug)]
enum Lasting {
    Entry(u32, Name),
    Presence(u32, Name),
    Whole(u32),
}

/// A transaction at work on a state.
#[derive(Clone, Debug)]
pub struct Run {
    base: State,
    pub state: State,
    written: BTreeSet<(u32, Name)>,
    names_written: BTreeSet<String>,
    created: BTreeSet<u32>,
    dropped: BTreeSet<u32>,
    /// Trees that were written to and are not there yet.
    early: BTreeSet<u32>,
    lasting: Vec<Lasting>,
    /// No other writer is at work, so all that is read counts.
    excludes: bool,
}

type Explained = Result<(), String>;

fn same<T: PartialEq + std::fmt::Debug>(told: &T, model: &T) -> Explained {
    match told == model {
        true => Ok(()),
        false => Err(format!("told {told:?}, not {model:?}")),
    }
}

impl Run {
    pub fn new(base: &State) -> Self {
        Self {
            base: base.clone(),
            state: base.clone(),
            written: BTreeSet::new(),
            names_written: BTreeSet::new(),
            created: BTreeSet::new(),
            dropped: BTreeSet::new(),
            early: BTreeSet::new(),
            lasting: Vec::new(),
            excludes: false,
        }
    }

    pub fn base(&self) -> &State {
        &self.base
    }

    /// Whether the state explains all that it was told.
    pub fn explain(&mut self, steps: &[Step]) -> Explained {
        let mut marks: Vec<Run> = Vec::new();
        for step in steps {
            match step.ask {
                Ask::Mark => marks.push(self.clone()),
                Ask::Back(to) => {
                    marks.truncate(to + 1);
                    let lasting = std::mem::take(&mut self.lasting);
                    let excludes = self.excludes;
                    *self = marks[to].clone();
                    (self.lasting, self.excludes) = (lasting, excludes);
                }
                Ask::Release(to) => marks.truncate(to),
                _ => self
                    .step(&step.ask, &step.told)
                    .map_err(|why| format!("{:?}: {why}", step.ask))?,
            }
        }
        Ok(())
    }

    /// Nothing that it read has to stay as it is.
    pub fn lets_go(&mut self) {
        self.lasting.clear();
    }

    /// What it leaves where its reads and its commit are one moment.
    pub fn ends(&self) -> Result<State, String> {
        match self.early.is_empty() {
            true => Ok(self.state.clone()),
            false => Err(format!("{:?} are written to before they are", self.early)),
        }
    }

    /// What it leaves behind a later state, unless it should have lost.
    pub fn ends_on(&self, now: &State) -> Result<State, String> {
        for lasting in &self.lasting {
            let (lasts, tree) = match lasting {
                Lasting::Entry(tree, name) => {
                    (self.base.row(*tree, name) == now.row(*tree, name), tree)
                }
                Lasting::Presence(tree, name) => {
                    let there = |state: &State| state.row(*tree, name).is_some();
                    (there(&self.base) == there(now), tree)
                }
                Lasting::Whole(tree) => (
                    self.rows_in(&self.base, *tree) == self.rows_in(now, *tree),
                    tree,
                ),
            };
            if !lasts && !self.created.contains(tree) {
                return Err(format!("{lasting:?} has changed since it was read"));
            }
        }
        let mut end = now.clone();
        for (tree, name) in &self.written {
            if self.dropped.contains(tree) {
                continue;
            }
            let value = self.state.row(*tree, name).cloned();
            if !self.created.contains(tree) {
                if !now.trees.contains_key(tree) {
                    return Err(format!("{tree} is written to and not there"));
                }
                if now.row(*tree, name) != self.base.row(*tree, name) {
                    return Err(format!("{name:?} of {tree} has changed since"));
                }
            }
            let rows = Arc::make_mut(end.trees.entry(*tree).or_default());
            match value {
                Some(value) => rows.insert(name.clone(), value),
                None => rows.remove(name),
            };
        }
        for name in &self.names_written {
            if now.names.get(name) != self.base.names.get(name) {
                return Err(format!("the name {name:?} has changed since"));
            }
            match self.state.names.get(name) {
                Some(id) => end.names.insert(name.clone(), *id),
                None => end.names.remove(name),
            };
        }
        for id in &self.created {
            end.trees.entry(*id).or_default();
        }
        for id in &self.dropped {
            let was = end.trees.remove(id);
            if was.is_none() {
                return Err(format!("{id} is dropped and not there"));
            }
            if !self.created.contains(id) {
                end.gone.insert(*id);
            }
        }
        Ok(end)
    }

    fn rows_in(&self, state: &State, tree: u32) -> Arc<Rows> {
        state.trees.get(&tree).cloned().unwrap_or_default()
    }

    fn note(&mut self, tree: u32, name: &Name, counts: Counts, presence: bool) {
        if counts == Counts::Lasting || (self.excludes && counts == Counts::Plain) {
            let name = name.clone();
            self.lasting.push(match presence {
                true => Lasting::Presence(tree, name),
                false => Lasting::Entry(tree, name),
            });
        }
    }

    /// The rows of a tree that is there, or will be.
    fn rows(&mut self, tree: u32) -> &mut Rows {
        Arc::make_mut(self.state.trees.entry(tree).or_default())
    }

    fn set(&mut self, tree: u32, name: Name, value: Option<Value>) -> bool {
        if !self.base.trees.contains_key(&tree) && !self.created.contains(&tree) {
            self.early.insert(tree);
        }
        self.written.insert((tree, name.clone()));
        match value {
            Some(value) => self.rows(tree).insert(name, value).is_some(),
            None => self.rows(tree).remove(&name).is_some(),
        }
    }

    fn step(&mut self, ask: &Ask, told: &Told) -> Explained {
        if matches!(
            (ask, told),
            (Ask::Scan(..) | Ask::Estimate(_), Told::Nothing)
        ) {
            return Ok(());
        }
        if let Some(tree) = ask
            .tree()
            .filter(|_| !matches!(ask, Ask::DependOn(_) | Ask::RelyOn(_)))
        {
            let id = tree.id().0;
            let is_there = self.state.trees.contains_key(&id);
            let is_gone = self.state.gone.contains(&id) || self.dropped.contains(&id);
            match told {
                // Without entries nothing is asked of the tree.
                _ if ask.is_empty() => {}
                Told::Refused if !is_there || is_gone => return Ok(()),
                _ if is_gone => return Err(format!("told {told:?} of a tree that is gone")),
                _ => {}
            }
        }
        match ask {
            Ask::Get(..)
            | Ask::GetLasting(..)
            | Ask::GetStart(..)
            | Ask::GetPart(..)
            | Ask::Contains(..)
            | Ask::Count(_)
            | Ask::DependOn(_)
            | Ask::RelyOn(_)
            | Ask::Estimate(_)
            | Ask::Scan(..) => self.read(ask, told),
            Ask::Family(_)
            | Ask::Given(_)
            | Ask::Families
            | Ask::CreateFamily(..)
            | Ask::DropFamily(_)
            | Ask::CreateTree(_)
            | Ask::DropTree(_) => self.about_trees(ask, told),
            Ask::Exclude => {
                self.excludes = true;
                Ok(())
            }
            _ => self.write(ask, told),
        }
    }

    fn read(&mut self, ask: &Ask, told: &Told) -> Explained {
        match ask {
            Ask::Get(tree, name, _) | Ask::GetLasting(tree, name) => {
                let id = tree.id().0;
                let counts = match ask {
                    Ask::GetLasting(..) => Counts::Lasting,
                    _ => Counts::Plain,
                };
                self.note(id, name, counts, false);
                let value = self.state.row(id, name).map(|it| it.digest().clone());
                same(told, &Told::Value(value))
            }
            Ask::GetStart(tree, name) => {
                let id = tree.id().0;
                self.note(id, name, Counts::Plain, false);
                let value = self.state.row(id, name);
                match (told, value) {
                    (Told::Start(None), None) => Ok(()),
                    (Told::Start(Some((len, start))), Some(value))
                        if value.bytes().len() == *len && value.bytes().starts_with(start) =>
                    {
                        Ok(())
                    }
                    _ => Err(format!("told {told:?}, not {value:?}")),
                }
            }
            Ask::GetPart(tree, name, from, to) => {
                let id = tree.id().0;
                self.note(id, name, Counts::Plain, false);
                let part = self.state.row(id, name).map(|value| {
                    let bytes = value.bytes();
                    Digest::new(bytes.get(*from..(*to).min(bytes.len())).unwrap_or(&[]))
                });
                same(told, &Told::Value(part))
            }
            Ask::Contains(tree, name, counts) => {
                let id = tree.id().0;
                self.note(id, name, *counts, true);
                same(told, &Told::Is(self.state.row(id, name).is_some()))
            }
            Ask::Count(tree) => {
                let id = tree.id().0;
                if self.excludes {
                    self.lasting.push(Lasting::Whole(id));
                }
                let count = self.rows_in(&self.state, id).len();
                same(told, &Told::Number(count as u64))
            }
            Ask::DependOn(tree) | Ask::RelyOn(tree) => {
                if !self.created.contains(&tree.id().0) {
                    self.lasting.push(Lasting::Whole(tree.id().0));
                }
                Ok(())
            }
            Ask::Estimate(tree) => {
                let count = self.rows_in(&self.state, tree.id().0).len();
                same(told, &Told::Number(count as u64))
            }
            Ask::Scan(tree, counts, bounds) => self.scan(tree.id().0, *counts, bounds, told),
            _ => unreachable!("no reading"),
        }
    }

    /// Where a cursor comes to.
    fn moved<'r>(
        rows: &'r Rows,
        at: Option<&Name>,
        (asked, found): &Moved,
    ) -> Result<Option<(&'r Name, &'r Value)>, String> {
        let from = |from: Bound<&Name>| rows.range::<Name, _>((from, Bound::Unbounded)).next();
        let to = |to: Bound<&Name>| rows.range::<Name, _>((Bound::Unbounded, to)).next_back();
        Ok(match &asked.0 {
            // Somewhere, if there is anything.
            Move::Seek(To::Share(share)) => {
                let found = found.as_ref().filter(|_| *share > 0);
                found.map_or_else(|| rows.first_key_value(), |it| rows.get_key_value(&it.0))
            }
            Move::Seek(To::First) => rows.first_key_value(),
            Move::Seek(To::Last) => rows.last_key_value(),
            Move::Seek(To::AtLeast(name)) => from(Bound::Included(name)),
            Move::Seek(To::After(name)) => from(Bound::Excluded(name)),
            Move::Seek(To::AtMost(name)) => to(Bound::Included(name)),
            Move::Seek(To::Before(name)) => to(Bound::Excluded(name)),
            Move::Next => at.and_then(|at| from(Bound::Excluded(at))),
            Move::Prev => at.and_then(|at| to(Bound::Excluded(at))),
            Move::Run(_) => {
                let run = at.into_iter().flat_map(|at| rows.range(at..));
                let run = run.map(|(name, _)| name.int());
                let run: Vec<i64> = run.take(asked.1.len()).collect();
                same(&asked.1, &run)?;
                let last = run.last().map(|last| Name::Int(*last));
                last.and_then(|last| from(Bound::Excluded(&last)))
            }
        })
    }

    fn scan(
        &mut self,
        id: u32,
        counts: Counts,
        bounds: &Option<(Name, Name)>,
        told: &Told,
    ) -> Explained {
        let Told::Moves(moves) = told else {
            return Err(format!("told {told:?}"));
        };
        let rows = self.rows_in(&self.state, id);
        let mut at: Option<Name> = None;
        let mut met = Vec::new();
        for (number, moved) in moves.iter().enumerate() {
            let (asked, found) = moved;
            let there = Self::moved(&rows, at.as_ref(), moved)?;
            let within = |name: &Name| match bounds {
                Some((low, high)) => low <= name && name <= high,
                None => true,
            };
            let there = there.filter(|(name, _)| within(name));
            let is_same = match (there, found) {
                (None, None) => true,
                (Some((name, value)), Some((found, digest))) => {
                    name == found && digest.as_ref().is_none_or(|it| it == value.digest())
                }
                _ => false,
            };
            if !is_same {
                return Err(format!(
                    "move {number}, told {found:?}, not {there:?}, {asked:?}"
                ));
            }
            at = there.map(|(name, _)| name.clone());
            met.extend(at.clone());
        }
        for name in met {
            if !self.written.contains(&(id, name.clone())) {
                self.note(id, &name, counts, false);
            }
        }
        Ok(())
    }

    fn about_trees(&mut self, ask: &Ask, told: &Told) -> Explained {
        match ask {
            Ask::Given(name) => same(told, &Told::Tree(self.state.names.get(name).copied())),
            Ask::Family(name) => same(told, &Told::Tree(self.state.named(name))),
            Ask::Families => same(told, &Told::Families(self.state.families())),
            Ask::CreateFamily(name, _) => {
                if let Some(id) = self.state.named(name) {
                    // It may be one with other keys.
                    return match told {
                        Told::Refused => Ok(()),
                        told => same(told, &Told::Tree(Some(id))),
                    };
                }
                let id = self.create(told)?;
                self.names_written.insert(name.clone());
                self.state.names.insert(name.clone(), id);
                Ok(())
            }
            Ask::DropFamily(name) => {
                let Some(id) = self.state.names.get(name).copied() else {
                    return match told {
                        Told::Is(false) => Ok(()),
                        told => same(told, &Told::Dropped(None)),
                    };
                };
                let was_there = self.state.trees.contains_key(&id);
                self.names_written.insert(name.clone());
                self.state.names.remove(name);
                if was_there {
                    self.drop_tree(id);
                }
                match told {
                    Told::Is(told) => same(told, &was_there),
                    told => same(told, &Told::Dropped(Some(was_there))),
                }
            }
            Ask::CreateTree(_) => self.create(told).map(|_| ()),
            Ask::DropTree(tree) => {
                let id = tree.id().0;
                if !self.state.trees.contains_key(&id) {
                    self.early.insert(id);
                }
                self.drop_tree(id);
                same(told, &Told::Nothing)
            }
            _ => unreachable!("nothing about trees"),
        }
    }

    fn create(&mut self, told: &Told) -> Result<u32, String> {
        let Told::Tree(Some(id)) = told else {
            return Err(format!("told {told:?}, not a new tree"));
        };
        let is_known = self.state.trees.contains_key(id) || self.state.gone.contains(id);
        if is_known || self.dropped.contains(id) {
            return Err(format!("told {id}, which is no new tree"));
        }
        self.created.insert(*id);
        self.state.trees.insert(*id, Arc::default());
        Ok(*id)
    }

    fn drop_tree(&mut self, id: u32) {
        self.state.trees.remove(&id);
        self.dropped.insert(id);
        // What was never there for others may be given again.
        if !self.created.contains(&id) {
            self.state.gone.insert(id);
        }
    }
}
