//! Finds in a history what no order of its transactions explains, as Elle does
//! (Kingsbury and Alvaro, "Elle: inferring isolation anomalies from experimental
//! observations", 2020).
//!
//! Versions of a list are its prefixes: the longest one read gives the order in
//! which values were appended. A register is only written by who read it, so each
//! version names the one before. Rows of the set are only added, so who did not
//! see one read before it was added. From these follow the dependencies:
//!
//! * `ww`: wrote the version after the other's;
//! * `wr`: read what the other wrote;
//! * `rw`: read a version that the other replaced;
//! * `real time`: began after the other's commit had returned.
//!
//! A cycle of them is an anomaly, named by what it takes. Reads of what was never
//! committed, of half a transaction, or that do not fit together are anomalies by
//! themselves.

use crate::history::{Event, History, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A kind of dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    WriteWrite,
    WriteRead,
    ReadWrite,
    RealTime,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anomaly {
    /// A value that was rolled back, or that nobody wrote, was read (G1a).
    AbortedRead(Value),
    /// A list ended within one transaction's appends (G1b).
    IntermediateRead(Value),
    /// Two reads of a list are no prefixes of each other, or a value is in it
    /// twice.
    Incompatible(usize),
    /// A transaction did not see its own writes, or its snapshot changed.
    Internal(usize),
    /// A committed append is in no later version (lost update), or two wrote the
    /// version after the same one.
    Lost(Value),
    /// A cycle without `rw` (G0, G1c).
    Circular(Vec<usize>),
    /// A cycle with one `rw`, or with several none of which follow one another
    /// (G-single, G-nonadjacent): impossible under snapshot isolation.
    SingleSkew(Vec<usize>),
    /// A cycle with two `rw` in a row (G2): write skew.
    WriteSkew(Vec<usize>),
}

/// What a check looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub transactions: usize,
    pub committed: usize,
    pub reads: usize,
    pub edges: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.committed += other.committed;
        self.reads += other.reads;
        self.edges += other.edges;
    }
}

type Edges = BTreeMap<(usize, usize), Vec<Kind>>;

struct Checker<'h> {
    history: &'h History,
    /// Who wrote a value: list values, register values and rows alike.
    writers: HashMap<Value, usize>,
    edges: Edges,
    found: Vec<Anomaly>,
}

/// All anomalies of a history, and how much it looked at.
pub fn check(history: &History) -> (Vec<Anomaly>, Counts) {
    let mut checker = Checker {
        history,
        writers: HashMap::new(),
        edges: Edges::new(),
        found: Vec::new(),
    };
    checker.note_writers();
    checker.internal();
    checker.lists();
    checker.registers();
    checker.sets();
    checker.real_time();
    checker.cycles();
    let reads = |event: &&Event| {
        matches!(
            event,
            Event::ReadList(..) | Event::Read(..) | Event::ReadSet(..)
        )
    };
    let counts = Counts {
        transactions: history.transactions.len(),
        committed: checker.committed().count(),
        reads: history
            .transactions
            .iter()
            .flat_map(|t| t.events.iter().filter(reads))
            .count(),
        edges: checker.edges.len(),
    };
    (checker.found, counts)
}

impl<'h> Checker<'h> {
    fn committed(&self) -> impl Iterator<Item = (usize, &'h [Event])> + use<'h> {
        let all = self.history.transactions.iter().enumerate();
        all.filter(|(_, t)| t.committed)
            .map(|(i, t)| (i, t.events.as_slice()))
    }

    fn edge(&mut self, from: usize, to: usize, kind: Kind) {
        if from != to {
            let kinds = self.edges.entry((from, to)).or_default();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }

    /// The committed writer of a value that somebody read; none for what was
    /// there before.
    fn writer(&mut self, value: Value) -> Option<usize> {
        if value == 0 {
            return None;
        }
        let writer = self.writers.get(&value).copied();
        let committed = writer.is_some_and(|w| self.history.transactions[w].committed);
        if !committed {
            self.found.push(Anomaly::AbortedRead(value));
            return None;
        }
        writer
    }

    fn note_writers(&mut self) {
        for (at, transaction) in self.history.transactions.iter().enumerate() {
            for event in &transaction.events {
                if let Event::Append(_, value) | Event::Write(_, value) | Event::Add(value) = event
                {
                    self.writers.insert(*value, at);
                }
            }
        }
    }

    /// A transaction sees its snapshot with its own writes, however often it
    /// looks. Holds for those that lost too.
    fn internal(&mut self) {
        for (at, transaction) in self.history.transactions.iter().enumerate() {
            let mut lists: HashMap<usize, Vec<Value>> = HashMap::new();
            let mut appended: HashMap<usize, Vec<Value>> = HashMap::new();
            let mut registers: HashMap<usize, Value> = HashMap::new();
            let mut sound = true;
            for event in &transaction.events {
                match event {
                    Event::Append(key, value) => appended.entry(*key).or_default().push(*value),
                    Event::ReadList(key, list) => {
                        let own = appended.get(key).map_or(&[][..], Vec::as_slice);
                        sound &= list.ends_with(own);
                        let before = list[..list.len().saturating_sub(own.len())].to_vec();
                        sound &= *lists.entry(*key).or_insert_with(|| before.clone()) == before;
                    }
                    Event::Read(key, value) => {
                        sound &= *registers.entry(*key).or_insert(*value) == *value;
                    }
                    Event::Write(key, value) => {
                        registers.insert(*key, *value);
                    }
                    Event::ReadSet(..) | Event::Add(_) => {}
                }
            }
            if !sound {
                self.found.push(Anomaly::Internal(at));
            }
        }
    }

    fn lists(&mut self) {
        let mut longest: BTreeMap<usize, &'h [Value]> = BTreeMap::new();
        let all = &self.history.transactions;
        let reads = || {
            all.iter()
                .enumerate()
                .filter(|(_, t)| t.committed)
                .flat_map(|(at, t)| {
                    t.events.iter().filter_map(move |event| match event {
                        Event::ReadList(key, list) => Some((at, *key, list.as_slice())),
                        _ => None,
                    })
                })
        };
        for (_, key, list) in reads() {
            let known = longest.entry(key).or_default();
            if !(known.starts_with(list) || list.starts_with(known)) {
                self.found.push(Anomaly::Incompatible(key));
            }
            if list.len() > known.len() {
                *known = list;
            }
        }
        for (key, order) in &longest {
            let distinct: HashSet<&Value> = order.iter().collect();
            if distinct.len() != order.len() {
                self.found.push(Anomaly::Incompatible(*key));
            }
            for pair in order.windows(2) {
                if let (Some(a), Some(b)) = (self.writer(pair[0]), self.writer(pair[1])) {
                    self.edge(a, b, Kind::WriteWrite);
                }
            }
        }
        for (at, key, list) in reads() {
            let order = longest.get(&key).copied().unwrap_or_default();
            let last = list.last().copied().unwrap_or(0);
            let wrote = self.writer(last);
            if let Some(writer) = wrote {
                self.edge(writer, at, Kind::WriteRead);
            }
            let Some(next) = order.get(list.len()).copied() else {
                continue;
            };
            if let Some(next_writer) = self.writer(next) {
                // A list that ends between two appends of one transaction.
                if wrote == Some(next_writer) && next_writer != at {
                    self.found.push(Anomaly::IntermediateRead(last));
                }
                self.edge(at, next_writer, Kind::ReadWrite);
            }
        }
        self.lost_appends(&longest);
    }

    /// The last read of each list is of the whole of it, after all else.
    fn lost_appends(&mut self, longest: &BTreeMap<usize, &'h [Value]>) {
        for (_, events) in self.committed() {
            for event in events {
                if let Event::Append(key, value) = event
                    && !longest.get(key).is_some_and(|list| list.contains(value))
                {
                    self.found.push(Anomaly::Lost(*value));
                }
            }
        }
    }

    fn registers(&mut self) {
        // The version that was read, and what was written in its place.
        let mut next: HashMap<(usize, Value), (usize, Value)> = HashMap::new();
        let mut reads = Vec::new();
        for (at, events) in self.committed() {
            let mut seen: BTreeMap<usize, (Value, Option<Value>)> = BTreeMap::new();
            for event in events {
                match event {
                    Event::Read(key, value) => {
                        seen.entry(*key).or_insert((*value, None));
                    }
                    Event::Write(key, value) => {
                        seen.entry(*key).or_insert((0, None)).1 = Some(*value);
                    }
                    _ => {}
                }
            }
            for (key, (read, wrote)) in seen {
                reads.push((at, key, read));
                if let Some(wrote) = wrote
                    && let Some((_, other)) = next.insert((key, read), (at, wrote))
                {
                    self.found.push(Anomaly::Lost(other));
                }
            }
        }
        for (at, key, read) in reads {
            if let Some(writer) = self.writer(read) {
                self.edge(writer, at, Kind::WriteRead);
            }
            if let Some((replacer, _)) = next.get(&(key, read)).copied() {
                self.edge(at, replacer, Kind::ReadWrite);
                if let Some(writer) = self.writer(read) {
                    self.edge(writer, replacer, Kind::WriteWrite);
                }
            }
        }
    }

    fn sets(&mut self) {
        let added = self.committed().flat_map(|(at, events)| {
            let rows = events.iter().filter_map(|e| match e {
                Event::Add(row) => Some(*row),
                _ => None,
            });
            rows.map(move |row| (at, row)).collect::<Vec<_>>()
        });
        let added: Vec<(usize, Value)> = added.collect();
        for (at, events) in self.committed() {
            for event in events {
                let Event::ReadSet(low, high, rows) = event else {
                    continue;
                };
                let seen: HashSet<Value> = rows.iter().copied().collect();
                for row in rows {
                    self.writer(*row);
                }
                for (writer, row) in &added {
                    if (*low..=*high).contains(row) {
                        if seen.contains(row) {
                            self.edge(*writer, at, Kind::WriteRead);
                        } else {
                            self.edge(at, *writer, Kind::ReadWrite);
                        }
                    }
                }
            }
        }
    }

    fn real_time(&mut self) {
        let all = &self.history.transactions;
        for (a, first) in all.iter().enumerate().filter(|(_, t)| t.committed) {
            for (b, second) in all.iter().enumerate().filter(|(_, t)| t.committed) {
                if first.ended < second.began {
                    self.edge(a, b, Kind::RealTime);
                }
            }
        }
    }

    /// One cycle a strongly connected component, the gravest first.
    fn cycles(&mut self) {
        use Kind::{ReadWrite, RealTime, WriteRead, WriteWrite};
        let plain = [WriteWrite, WriteRead, RealTime];
        if let Some(cycle) = self.shortest(&plain, None) {
            self.found.push(Anomaly::Circular(cycle));
        } else if let Some(cycle) = self.shortest(&plain, Some(ReadWrite)) {
            self.found.push(Anomaly::SingleSkew(cycle));
        } else if let Some(cycle) =
            self.shortest(&[WriteWrite, WriteRead, ReadWrite, RealTime], None)
        {
            self.found.push(Anomaly::WriteSkew(cycle));
        }
    }

    /// The shortest cycle whose dependencies are of `kinds`; with `between`, one
    /// in which each of that kind stands between two of `kinds`.
    fn shortest(&self, kinds: &[Kind], between: Option<Kind>) -> Option<Vec<usize>> {
        let count = self.history.transactions.len();
        let mut out = vec![Vec::new(); count];
        for ((from, to), have) in &self.edges {
            let plain = have.iter().any(|kind| kinds.contains(kind));
            let special = between.is_some_and(|kind| have.contains(&kind));
            if plain || special {
                out[*from].push((*to, plain, special));
            }
        }
        // A node is a transaction and whether it was reached by `between`.
        let mut best: Option<Vec<usize>> = None;
        for start in 0..count {
            let mut from: Vec<[Option<(usize, usize)>; 2]> = vec![[None; 2]; count];
            let mut queue = std::collections::VecDeque::from([(start, 0)]);
            'search: while let Some((at, special_before)) = queue.pop_front() {
                for (to, plain, special) in &out[at] {
                    let mut ways = Vec::new();
                    if *plain {
                        ways.push(0);
                    }
                    if *special && special_before == 0 {
                        ways.push(1);
                    }
                    for way in ways {
                        // Back by a plain one only, so that the first may be a
                        // special one; each such cycle has a plain one to end on.
                        if *to == start && way == 1 {
                            continue;
                        }
                        if *to == start {
                            let cycle = trace(&from, start, at, special_before);
                            if best.as_ref().is_none_or(|b| cycle.len() < b.len()) {
                                best = Some(cycle);
                            }
                            break 'search;
                        }
                        if from[*to][way].is_none() {
                            from[*to][way] = Some((at, special_before));
                            queue.push_back((*to, way));
                        }
                    }
                }
            }
        }
        best
    }
}

fn trace(
    from: &[[Option<(usize, usize)>; 2]],
    start: usize,
    mut at: usize,
    mut way: usize,
) -> Vec<usize> {
    let mut cycle = vec![at];
    while at != start {
        let Some((before, before_way)) = from[at][way] else {
            break;
        };
        (at, way) = (before, before_way);
        cycle.push(at);
    }
    cycle.reverse();
    cycle
}
