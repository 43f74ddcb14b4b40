//! A hash join whose right side is larger than the budget (grace hash join).
//!
//! 1. The right side's rows go to parts on disk, chosen by their keys' hash.
//! 2. The left side's rows go to the matching parts.
//! 3. Part by part, the right rows are hashed in a quarter of the budget, and the
//!    part's left rows ask them. A part that does not fit is split by other bits of
//!    the hash; one that this does not make smaller, since its keys are equal, takes
//!    several rounds, in each of which all its left rows ask. Pairs with equal keys
//!    go to a sorter under the places of both rows.
//! 4. The sorted pairs are those that a join in memory would have tried, in the
//!    same order: the remaining condition is evaluated only now, so that rows,
//!    their order and errors are the same.
//!
//! Kinds that yield left rows without a partner put a mark behind each left row's
//! pairs, which says that there are no more of them. Kinds that yield right rows without
//! a partner keep all right rows once more, in their order, and mark those that find one.

use std::sync::Arc;

use super::{Spec, is_key, keys};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX, Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::{Operand, Row, condition};
use crate::exec::hash::{GroupTable, NONE, hash_rows};
use crate::exec::memory::{Held, Memory};
use crate::exec::ops::marks::Marks;
use crate::exec::ops::pairs::push_right;
use crate::exec::ops::{BoxOperator, Delayed};
use crate::exec::rows::{RowStore, decode_cell, encode_cell};
use crate::exec::sorter::Sorter;
use crate::plan::physical::JoinKind;
use crate::value::ValueRef;

/// Parts of each side, and of a part that is split.
const PARTS: usize = 16;
/// How often rows are split. The hash has bits for it beside those of the table.
const SPLITS_MAX: u32 = 4;
/// Memory for the open blocks of all parts, counted while they are filled.
const OPEN_BYTES: usize = PARTS * (16 << 10);
/// A round has at least this much memory, or a quarter of the budget, whatever
/// others hold.
const ROUND_BYTES_MIN: usize = 32 << 10;
/// Right place of a left row's mark: behind all pairs.
const MARK: u64 = u64::MAX;

/// A row's place in its input, then its keys, then its columns.
struct Parts {
    stores: Vec<RowStore>,
    /// Columns of the input; None: no row came yet.
    width: Option<usize>,
    rows: u64,
    held: Held,
}

/// See the module.
pub struct Spilled {
    memory: Memory,
    right: Parts,
    left: Parts,
    pairs: Option<Sorter>,
    /// The left row whose pairs are coming, and whether one of them was true.
    current: Option<u64>,
    matched: bool,
    row: Batch,
    /// What the left side ended with.
    failure: Delayed,
    /// All right rows, where those without a partner are wanted; once all pairs have been
    /// read, where the next ones are, and the place of the first of them.
    kept: Option<RowStore>,
    position: u64,
    place: u64,
    /// The right rows that have found a partner.
    marks: Marks,
}

/// The part of a key that was split so often before.
fn part_of(hash: u64, splits: u32) -> usize {
    // The table uses the low bits.
    (hash >> (60 - 4 * splits)) as usize % PARTS
}

impl Parts {
    fn new() -> Self {
        Self {
            stores: Vec::new(),
            width: None,
            rows: 0,
            held: Held::default(),
        }
    }

    /// Takes the rows of `kept`; the others, whose keys hold a NULL, only count.
    fn take(
        &mut self,
        batch: &Batch,
        keys: &[Operand<'_>],
        wanted: impl Fn(usize) -> bool,
        spec: &Spec,
        memory: &Memory,
    ) -> Result<()> {
        if self.stores.is_empty() {
            let width = 1 + keys.len() + batch.columns.len();
            let file = Arc::new(memory.temp_file()?);
            self.held.force(memory, OPEN_BYTES);
            self.stores = (0..PARTS)
                .map(|_| RowStore::in_file(width, memory, Arc::clone(&file)))
                .collect();
            self.width = Some(batch.columns.len());
        }
        let mut hashes = Vec::new();
        let collations = spec.comparisons.iter().map(|c| c.collation);
        hash_rows(keys.iter().zip(collations), batch.selection(), &mut hashes);
        let mut hashes = hashes.into_iter();
        batch.selection().try_each(|row| {
            let place = self.rows;
            self.rows += 1;
            let part = part_of(hashes.next().unwrap_or(0), 0);
            if !is_key(keys, row) || !wanted(part) {
                return Ok(());
            }
            let cells = std::iter::once(ValueRef::Integer(place as i64))
                .chain(keys.iter().map(|k| k.get(row)))
                .chain(batch.columns.iter().map(|c| c.get(row)));
            match self.stores.get_mut(part) {
                Some(store) => store.push(cells),
                None => Ok(()),
            }
        })
    }
}

impl Spilled {
    /// No rows yet.
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
            right: Parts::new(),
            left: Parts::new(),
            pairs: None,
            current: None,
            matched: false,
            row: Batch::default(),
            failure: Delayed::default(),
            kept: None,
            position: 0,
            place: 0,
            marks: Marks::default(),
        }
    }

    /// Takes rows of the right side, all those that came before included.
    pub fn take_right(&mut self, batch: &Batch, keys: &[Operand<'_>], spec: &Spec) -> Result<()> {
        if spec.kind.keeps_right() {
            let kept = match &mut self.kept {
                Some(kept) => kept,
                None => {
                    let file = Arc::new(self.memory.temp_file()?);
                    let width = batch.columns.len();
                    self.kept
                        .insert(RowStore::in_file(width, &self.memory, file))
                }
            };
            batch
                .selection()
                .try_each(|row| kept.push(batch.columns.iter().map(|c| c.get(row))))?;
        }
        self.right.take(batch, keys, |_| true, spec, &self.memory)
    }

    /// Reads the left side to its end and sorts the pairs.
    pub fn join(
        &mut self,
        left: &mut BoxOperator,
        spec: &Spec,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let mut pairs = Sorter::new(&self.memory, None);
        self.read_left(left, spec, &mut pairs, cx)?;
        self.left.held.release();
        self.right.held.release();
        let right = std::mem::take(&mut self.right.stores);
        let left = std::mem::take(&mut self.left.stores);
        let mut join = Join {
            spec,
            memory: &self.memory,
            held: Held::default(),
            pairs: &mut pairs,
        };
        // Before the pairs take what there is.
        join.held.force(&self.memory, join.round_bytes());
        for (right, left) in right.into_iter().zip(left) {
            join.part(right, left, 1, cx)?;
        }
        drop(join);
        pairs.finish()?;
        self.pairs = Some(pairs);
        Ok(())
    }

    /// An error of the left side itself is kept: its earlier rows come first.
    fn read_left(
        &mut self,
        left: &mut BoxOperator,
        spec: &Spec,
        pairs: &mut Sorter,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let mut batch = Batch::default();
        let marks = spec.kind.keeps_left();
        let mut cells = Vec::new();
        loop {
            cx.run.check_interrupt()?;
            let (exprs, how) = (&spec.left_keys, &spec.comparisons);
            let keys = match left.next(cx, usize::MAX, &mut batch) {
                Ok(false) => return Ok(()),
                Ok(true) => keys(exprs, how, &batch, batch.selection(), cx),
                Err(error) => Err(error),
            };
            let keys = match keys {
                Ok(keys) => keys,
                Err(error) => {
                    self.failure.keep(error);
                    return Ok(());
                }
            };
            if marks {
                let mut place = self.left.rows;
                batch.selection().try_each(|row| {
                    cells.clear();
                    let columns = batch.columns.iter();
                    columns.for_each(|c| encode_cell(c.get(row), &mut cells));
                    pairs.add(&pair_key(place, MARK), &cells)?;
                    place += 1;
                    Ok(())
                })?;
            }
            let right = &self.right.stores;
            let asked = |part: usize| right.get(part).is_some_and(|store| !store.is_empty());
            self.left.take(&batch, &keys, asked, spec, &self.memory)?;
        }
    }

    /// Appends the next rows to `out`, about `want`; false at the end.
    pub fn read(
        &mut self,
        spec: &Spec,
        want: usize,
        out: &mut Batch,
        cx: &mut Context<'_, '_>,
    ) -> Result<bool> {
        cx.run.check_interrupt()?;
        let width = self.left.width.unwrap_or(0) + self.right.width.unwrap_or(0);
        let mut tried = 0;
        while out.rows() < want.clamp(1, ROWS_MAX) {
            let Some(sorter) = &mut self.pairs else { break };
            let Some((key, mut cells)) = sorter.next_record()? else {
                break;
            };
            tried += 1;
            if tried % ROWS_MAX == 0 {
                cx.run.check_interrupt()?;
            }
            let (place, right) = split_pair_key(key);
            if self.current != Some(place) {
                self.current = Some(place);
                self.matched = false;
            }
            let alone = right == MARK;
            if self.matched && (alone || spec.kind.takes_one()) {
                continue;
            }
            self.row.reset(width);
            let left_width = self.left.width.unwrap_or(0);
            for (i, column) in self.row.columns.iter_mut().enumerate() {
                if alone && i >= left_width {
                    column.push_null();
                } else {
                    column.push(decode_cell(&mut cells)?)?;
                }
            }
            self.row.set_rows(1);
            if !alone {
                if let Some(test) = &spec.condition
                    && condition(test, Row::Batch(&self.row, 0), cx)? != Some(true)
                {
                    continue;
                }
                self.matched = true;
                if spec.kind.keeps_right() {
                    self.marks.set(right, &self.memory);
                }
                if spec.kind == JoinKind::Anti {
                    continue;
                }
            }
            for (to, from) in out.columns.iter_mut().zip(&self.row.columns) {
                to.push_from(from, 0)?;
            }
            out.set_rows(out.rows() + 1);
        }
        if out.rows() == 0 {
            self.failure.raise()?;
            self.read_alone(want, out, cx)?;
        }
        Ok(out.rows() > 0)
    }

    /// Appends right rows without a partner.
    fn read_alone(&mut self, want: usize, out: &mut Batch, cx: &mut Context<'_, '_>) -> Result<()> {
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        let mut rows = Vec::new();
        loop {
            cx.run.check_interrupt()?;
            if out.rows() > 0 || !kept.read(&mut self.position, want, &mut self.row)? {
                return Ok(());
            }
            rows.clear();
            let alone = |row: &u32| !self.marks.is_set(self.place + u64::from(*row));
            rows.extend((0..self.row.rows() as u32).filter(alone));
            self.place += self.row.rows() as u64;
            push_right(&self.row, &rows, out)?;
        }
    }
}

/// Joining the parts of both sides.
struct Join<'j> {
    spec: &'j Spec,
    memory: &'j Memory,
    /// What a round holds, and the open blocks of parts that are split.
    held: Held,
    pairs: &'j mut Sorter,
}

impl Join<'_> {
    fn round_bytes(&self) -> usize {
        ROUND_BYTES_MIN.max(self.memory.limit() / 4)
    }

    /// Joins a part, whose rows were split so often before.
    fn part(
        &mut self,
        mut right: RowStore,
        mut left: RowStore,
        splits: u32,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        if right.is_empty() || left.is_empty() {
            return Ok(());
        }
        let mut position = 0;
        let mut round = Round::new(self.spec);
        let mut more = round.load(&mut right, &mut position, self.round_bytes(), cx)?;
        if more && splits < SPLITS_MAX {
            drop(round);
            let rights = self.split(&mut right, splits, cx)?;
            let lefts = self.split(&mut left, splits, cx)?;
            let rows = right.len();
            drop((right, left));
            for (right, left) in rights.into_iter().zip(lefts) {
                let is_smaller = right.len() < rows;
                let splits = if is_smaller { splits + 1 } else { SPLITS_MAX };
                self.part(right, left, splits, cx)?;
            }
            return Ok(());
        }
        loop {
            round.ask(&mut left, self.spec, self.pairs, cx)?;
            if !more {
                return Ok(());
            }
            // Anew: what the last one grew to would count for this one.
            round = Round::new(self.spec);
            more = round.load(&mut right, &mut position, self.round_bytes(), cx)?;
        }
    }

    /// The rows of a part by the next bits of their keys' hashes.
    fn split(
        &mut self,
        rows: &mut RowStore,
        splits: u32,
        cx: &mut Context<'_, '_>,
    ) -> Result<Vec<RowStore>> {
        let open = self.round_bytes() + splits as usize * 2 * OPEN_BYTES;
        self.held.force(self.memory, open);
        let mut stores: Vec<_> = (0..PARTS).map(|_| rows.sibling()).collect();
        let (mut position, mut batch) = (0, Batch::default());
        let mut hashes = Vec::new();
        while rows.read(&mut position, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            let (_, (keys, _)) = parts(&batch, self.spec.comparisons.len());
            let collations = self.spec.comparisons.iter().map(|c| c.collation);
            let all = Selection::All(batch.rows());
            hash_rows(keys.iter().zip(collations), all, &mut hashes);
            for (row, hash) in hashes.iter().enumerate() {
                if let Some(store) = stores.get_mut(part_of(*hash, splits)) {
                    store.push(batch.columns.iter().map(|column| column.get(row)))?;
                }
            }
        }
        Ok(stores)
    }
}

/// A part of the right side in memory, or as much of it as there is room for.
struct Round {
    /// Columns of a key.
    keys: usize,
    table: GroupTable,
    rows: Batch,
    places: Vec<i64>,
    heads: Vec<(u32, u32)>,
    chain: Vec<u32>,
    groups: Vec<u32>,
    batch: Batch,
}

impl Round {
    fn new(spec: &Spec) -> Self {
        let collations = spec.comparisons.iter().map(|c| c.collation).collect();
        Self {
            keys: spec.comparisons.len(),
            table: GroupTable::new(collations),
            rows: Batch::default(),
            places: Vec::new(),
            heads: Vec::new(),
            chain: Vec::new(),
            groups: Vec::new(),
            batch: Batch::default(),
        }
    }

    /// Loads right rows from `position` on, about so many bytes of them; true: more
    /// are left.
    fn load(
        &mut self,
        right: &mut RowStore,
        position: &mut u64,
        bytes_max: usize,
        cx: &mut Context<'_, '_>,
    ) -> Result<bool> {
        while right.read(position, usize::MAX, &mut self.batch)? {
            cx.run.check_interrupt()?;
            let (place, (key, columns)) = parts(&self.batch, self.keys);
            let all = Selection::All(self.batch.rows());
            self.table.insert(&key, all, &mut self.groups)?;
            chain(&self.groups, &mut self.heads, &mut self.chain);
            if self.rows.columns.len() != columns.len() {
                self.rows.reset(columns.len());
            }
            self.places.extend_from_slice(place);
            for row in 0..self.batch.rows() {
                for (to, from) in self.rows.columns.iter_mut().zip(columns) {
                    to.push_from(from, row)?;
                }
            }
            let bytes = self.table.memory() + self.rows.memory() + self.chain.capacity() * 20;
            if bytes > bytes_max {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets the left rows of the part ask.
    fn ask(
        &mut self,
        left: &mut RowStore,
        spec: &Spec,
        pairs: &mut Sorter,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        // Without a condition the first partner decides.
        let first_only = spec.kind.takes_one() && spec.condition.is_none();
        let (mut position, mut batch) = (0, Batch::default());
        let (mut front, mut cells) = (Vec::new(), Vec::new());
        while left.read(&mut position, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            let (places, (key, columns)) = parts(&batch, spec.comparisons.len());
            let all = Selection::All(batch.rows());
            self.table.find(&key, all, &mut self.groups);
            for (row, (place, group)) in places.iter().zip(&self.groups).enumerate() {
                let mut candidate = self.heads.get(*group as usize).map_or(NONE, |h| h.0);
                if candidate == NONE {
                    continue;
                }
                front.clear();
                columns
                    .iter()
                    .for_each(|c| encode_cell(c.get(row), &mut front));
                while candidate != NONE {
                    let right = candidate as usize;
                    candidate = self.chain.get(right).copied().unwrap_or(NONE);
                    cells.clear();
                    cells.extend_from_slice(&front);
                    for column in &self.rows.columns {
                        encode_cell(column.get(right), &mut cells);
                    }
                    let right = self.places.get(right).copied().unwrap_or(0);
                    pairs.add(&pair_key(*place as u64, right as u64), &cells)?;
                    if first_only {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Places, keys and columns of a batch of a part.
fn parts(batch: &Batch, keys: usize) -> (&[i64], (Vec<Operand<'_>>, &[Vector])) {
    let (place, rest) = batch
        .columns
        .split_first()
        .map_or((&[][..], &[][..]), |s| (s.0.words(), s.1));
    let (keys, columns) = rest.split_at_checked(keys).unwrap_or((rest, &[]));
    (place, (keys.iter().map(Operand::Column).collect(), columns))
}

/// Puts new rows, whose groups these are, behind those of equal keys. Those of no group
/// are in no chain.
pub fn chain(groups: &[u32], heads: &mut Vec<(u32, u32)>, chain: &mut Vec<u32>) {
    for group in groups {
        let row = chain.len() as u32;
        chain.push(NONE);
        match heads.get_mut(*group as usize) {
            Some((_, last)) => {
                if let Some(link) = chain.get_mut(*last as usize) {
                    *link = row;
                }
                *last = row;
            }
            None if *group == NONE => {}
            None => heads.push((row, row)),
        }
    }
}

fn pair_key(left: u64, right: u64) -> [u8; 16] {
    (u128::from(left) << 64 | u128::from(right)).to_be_bytes()
}

fn split_pair_key(key: &[u8]) -> (u64, u64) {
    let key = u128::from_be_bytes(key.try_into().unwrap_or_default());
    ((key >> 64) as u64, key as u64)
}
