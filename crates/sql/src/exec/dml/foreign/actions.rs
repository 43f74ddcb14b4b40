//! What becomes of the children of a row that went or whose key changed: CASCADE, SET NULL,
//! SET DEFAULT, RESTRICT.
//!
//! An action changes rows, which may be parents themselves, and so on, as deep as rows refer
//! to one another and in circles. What is under way lies on a stack of its own, each frame
//! with the children that it found so far; the thread's stack does not grow with it. As in
//! SQLite, each row's actions run before the next row is looked at, and they are nested up
//! to a limit.

use std::sync::Arc;

use fulgurite_store::Key;

use super::probe::{Children, Place};
use super::{Foreign, touches};
use crate::ast::ForeignAction;
use crate::error::{Error, Result, code};
use crate::exec::context::Context;
use crate::exec::dml::deferred::Deferred;
use crate::exec::dml::sink::{Buffers, Outcome, Sink};
use crate::exec::dml::triggers::{DEPTH_MAX, Event, Triggers, too_deep};
use crate::exec::dml::{Written, read_row, update};
use crate::exec::expr::{Row, eval};
use crate::exec::range::rowid_of;
use crate::exec::txns::Txns;
use crate::func::hooks::Change;
use crate::plan::foreign::{ForeignKeys, Reference};
use crate::plan::trigger::Timed;
use crate::schema::ConflictAction;
use crate::value::{Value, not_distinct};

/// Children that are looked up at a time.
const CHILDREN_AT_ONCE: usize = 1_024;

/// An action that is to be done to the children of one row.
pub struct Frame {
    /// The parent's table, and which of its references.
    table: usize,
    reference: usize,
    depth: usize,
    deletes: bool,
    action: ForeignAction,
    /// The key that children have.
    old: Vec<Value>,
    /// The values of the key's columns that they get from the parent.
    new: Vec<Value>,
    /// Children that were looked up, and how many of them are done.
    rows: Vec<i64>,
    done: usize,
    /// How many it changed.
    changes: u64,
    /// How far the look-up came.
    place: Option<Place>,
}

/// What is to be done next.
struct Step {
    table: usize,
    reference: usize,
    depth: usize,
    deletes: bool,
    action: ForeignAction,
    new: Vec<Value>,
    rowid: i64,
}

impl Frame {
    fn reference<'k>(&self, keys: &'k ForeignKeys) -> Option<&'k Reference> {
        reference(keys, self.table, self.reference)
    }

    /// The next child; None where there is no more.
    fn next(
        &mut self,
        keys: &ForeignKeys,
        txn: &mut Txns,
        record: &mut Vec<u8>,
        cx: &mut Context<'_, '_>,
    ) -> Result<Option<i64>> {
        if self.done == self.rows.len() {
            let Some(reference) = self.reference(keys) else {
                return Ok(None);
            };
            cx.run.check_interrupt()?;
            self.rows.clear();
            self.done = 0;
            let children = Children::acted(keys, reference, &self.old);
            let rows = &mut self.rows;
            let mut note = |rowid| {
                rows.push(rowid);
                rows.len() < CHILDREN_AT_ONCE
            };
            let place = children.visit(txn, self.place.as_ref(), record, cx, &mut note);
            self.place = Some(place?);
            self.rows.sort_unstable();
        }
        let next = self.rows.get(self.done).copied();
        self.done += 1;
        Ok(next)
    }
}

fn reference(keys: &ForeignKeys, table: usize, reference: usize) -> Option<&Reference> {
    keys.tables.get(table)?.references.get(reference)
}

impl Foreign {
    /// A row went (`new`: None), or changed in these columns: its actions are to be done.
    fn push(
        &mut self,
        old: &[Value],
        new: Option<&[Value]>,
        changed: Option<&[usize]>,
    ) -> Result<()> {
        let keys = Arc::clone(&self.keys);
        let Some(table) = keys.tables.get(self.table) else {
            return Ok(());
        };
        // The first one comes to lie on top.
        for (number, reference) in table.references.iter().enumerate().rev() {
            let action = match new {
                None => reference.on_delete,
                Some(_) => reference.on_update,
            };
            let is_due = match action {
                ForeignAction::NoAction => false,
                ForeignAction::Restrict => !self.counters.postpones,
                _ => true,
            };
            if !is_due || !touches(changed, reference.parts.iter().map(|part| part.parent)) {
                continue;
            }
            if self.depth >= DEPTH_MAX {
                return Err(too_deep());
            }
            let value = |row: &[Value], at: usize| row.get(at + 1).cloned().unwrap_or(Value::Null);
            let mut parts = reference.parts.iter();
            let stays = new.is_some_and(|new| {
                parts.all(|part| {
                    let (old, new) = (value(old, part.parent), value(new, part.parent));
                    not_distinct(old.as_ref(), new.as_ref(), part.collation)
                })
            });
            if stays {
                continue;
            }
            let key = |row: &[Value]| {
                let parts = reference.parts.iter();
                parts.map(|part| value(row, part.parent)).collect()
            };
            self.frames.push(Frame {
                table: self.table,
                reference: number,
                depth: self.depth + 1,
                deletes: new.is_none(),
                action,
                old: key(old),
                new: new.map_or_else(Vec::new, key),
                rows: Vec::new(),
                done: 0,
                changes: 0,
                place: None,
            });
        }
        Ok(())
    }

    /// The next thing to be done, but for the first `base`.
    fn next(
        &mut self,
        base: usize,
        txn: &mut Txns,
        cx: &mut Context<'_, '_>,
    ) -> Result<Option<Step>> {
        let keys = Arc::clone(&self.keys);
        while self.frames.len() > base
            && let Some(frame) = self.frames.last_mut()
        {
            match frame.next(&keys, txn, &mut self.record, cx)? {
                Some(rowid) => {
                    return Ok(Some(Step {
                        table: frame.table,
                        reference: frame.reference,
                        depth: frame.depth,
                        deletes: frame.deletes,
                        action: frame.action,
                        new: frame.new.clone(),
                        rowid,
                    }));
                }
                // Once an action is done with, its changes count, whatever comes of the
                // statement: SQLite has them in total_changes().
                None => self.changes += self.frames.pop().map_or(0, |frame| frame.changes),
            };
        }
        Ok(None)
    }

    fn note_changed_child(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.changes += 1;
        }
    }

    /// Memory for rows of a table.
    fn buffers(&mut self, table: usize) -> &mut Buffers {
        if self.buffers.len() <= table {
            self.buffers.resize_with(table + 1, Buffers::default);
        }
        &mut self.buffers[table]
    }
}

impl Sink<'_> {
    /// The row in `buffers.old` went, or became the row being written by a change of these
    /// columns.
    #[inline]
    pub(in crate::exec::dml) fn note_actions(&mut self, changed: Option<&[usize]>) -> Result<()> {
        match &mut self.foreign {
            Some(foreign) => {
                let new = changed.map(|_| self.buffers.row.as_slice());
                foreign.push(&self.buffers.old, new, changed)
            }
            None => Ok(()),
        }
    }

    /// Does what the foreign keys ask for after a row of the statement.
    #[inline]
    pub(in crate::exec::dml) fn run_actions(&mut self, cx: &mut Context<'_, '_>) -> Written<()> {
        match self
            .foreign
            .as_ref()
            .is_some_and(|it| !it.frames.is_empty())
        {
            true => self.run_all_actions(0, cx),
            false => Ok(()),
        }
    }

    /// Does all but the first `base` of what is to be done.
    fn run_all_actions(&mut self, base: usize, cx: &mut Context<'_, '_>) -> Written<()> {
        self.torn = true;
        while let Some(foreign) = &mut self.foreign
            && let Some(step) = foreign.next(base, self.txn, cx)?
        {
            if step.action == ForeignAction::Restrict {
                let message = "FOREIGN KEY constraint failed";
                return Err(Error::new(code::CONSTRAINT_TRIGGER, message).into());
            }
            self.run_action(&step, cx)?;
        }
        self.torn = false;
        Ok(())
    }

    /// Does to one child what its parent's change asks for.
    fn run_action(&mut self, step: &Step, cx: &mut Context<'_, '_>) -> Written<()> {
        let Some(mut foreign) = self.foreign.take() else {
            return Ok(());
        };
        let keys = Arc::clone(&foreign.keys);
        let reference = reference(&keys, step.table, step.reference);
        let child = reference.map_or(usize::MAX, |reference| reference.child);
        let writer = keys.tables.get(child).and_then(|t| t.writer.as_ref());
        let (Some(reference), Some(writer)) = (reference, writer) else {
            self.foreign = Some(foreign);
            return Err(Error::misuse("a foreign key's action has no plan").into());
        };
        let mut buffers = std::mem::take(foreign.buffers(child));
        let (mut own, abort) = (Deferred::default(), Some(ConflictAction::Abort));
        let before = (foreign.table, foreign.depth);
        (foreign.table, foreign.depth) = (child, step.depth);
        let mut sink = Sink::new(self.txn, writer, abort, &mut buffers, &mut own);
        sink.foreign = Some(foreign);
        sink.triggers = self.triggers.as_mut().map(Triggers::reborrow);
        let mut done = sink.change_child(reference, step, cx);
        if done.is_ok() {
            done = sink.end().map_err(Into::into);
        }
        self.foreign = sink.foreign.take();
        if let Some(foreign) = &mut self.foreign {
            (foreign.table, foreign.depth) = before;
            *foreign.buffers(child) = buffers;
        }
        done
    }

    fn change_child(
        &mut self,
        reference: &Reference,
        step: &Step,
        cx: &mut Context<'_, '_>,
    ) -> Written<()> {
        if !self.read_old(step.rowid, cx)? {
            return Ok(());
        }
        let fires = match step.deletes {
            true => &reference.delete_fires,
            false => &reference.update_fires,
        };
        if step.deletes && step.action == ForeignAction::Cascade {
            if self.fire_before(fires, Event::Delete, cx)? == Outcome::Skipped {
                return Ok(());
            }
            let base = self.note_changed_child();
            self.delete_old(step.rowid, cx)?;
            self.tell(Change::Delete, step.rowid, cx)?;
            return self.fire_after(fires, Event::Delete, base, cx);
        }
        self.start_row();
        self.buffers.row.clone_from(&self.buffers.old);
        let mut rowid = step.rowid;
        for (at, part) in reference.parts.iter().enumerate() {
            let value = match step.action {
                ForeignAction::Cascade => step.new.get(at).cloned(),
                ForeignAction::SetDefault => match self.target.defaults.get(part.child) {
                    Some(Some(default)) => Some(eval(default, Row::Empty, cx)?.into_value()),
                    _ => None,
                },
                _ => None,
            };
            let value = value.unwrap_or(Value::Null);
            if self.table().rowid_alias == Some(part.child) {
                rowid = rowid_of(value.as_ref()).ok_or_else(Error::mismatch)?;
            } else {
                self.set_column(part.child, value.as_ref());
            }
        }
        self.set_rowid(rowid);
        self.generate(cx)?;
        let columns: Vec<usize> = reference.parts.iter().map(|part| part.child).collect();
        let is_assigned = |at: usize| columns.contains(&at);
        if self.fire_before_update(fires, is_assigned, cx)? == Outcome::Skipped {
            return Ok(());
        }
        let base = self.note_changed_child();
        let moved = rowid != step.rowid;
        let indexed = !self.target.indexes.is_empty();
        match update::write(step.rowid, moved, indexed, &reference.touched, self, cx)? {
            Outcome::Written => {
                self.tell(Change::Update, rowid, cx)?;
                self.fire_after(fires, Event::Update, base, cx)
            }
            Outcome::Skipped => Ok(()),
        }
    }

    /// An action changes its child; how much was to be done before.
    fn note_changed_child(&mut self) -> usize {
        let Some(foreign) = &mut self.foreign else {
            return 0;
        };
        foreign.note_changed_child();
        foreign.frames.len()
    }

    /// Fires what comes after a child was changed, and before that does what its own change
    /// asks for.
    fn fire_after(
        &mut self,
        fires: &Timed,
        event: Event,
        base: usize,
        cx: &mut Context<'_, '_>,
    ) -> Written<()> {
        if fires.after.is_empty() {
            return Ok(());
        }
        crate::stack::grow(|| self.run_all_actions(base, cx))?;
        self.fire(&fires.after, event, cx)?;
        Ok(())
    }

    /// Reads the row of a rowid into `buffers.old`; false: there is none.
    pub(in crate::exec::dml) fn read_old(
        &mut self,
        rowid: i64,
        cx: &mut Context<'_, '_>,
    ) -> Result<bool> {
        let mut record = std::mem::take(&mut self.buffers.record);
        let tree = &self.target.table.tree;
        let found = self.txn.get_into(tree, Key::Int(rowid), &mut record);
        let read = found.map_err(Error::from).and_then(|found| {
            if found {
                let (row, old) = ((rowid, record.as_slice()), &mut self.buffers.old);
                read_row(&self.target.table, &self.target.generated, row, old, cx)?;
            }
            Ok(found)
        });
        self.buffers.record = record;
        read
    }
}
