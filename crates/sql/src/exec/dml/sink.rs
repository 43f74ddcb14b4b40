//! Writing rows of one table: constraints, the row, its index entries.
//!
//! A *row* is rowid and all columns, as `TableWriter` has it.

use fulgurite_store::Key;

use super::batch::Records;
use super::deferred::Deferred;
use super::entry::{Entry, KeyMaker};
use super::foreign::Foreign;
use super::sequence;
use super::start::Encoded;
use super::triggers::Triggers;
use crate::error::{Error, Result};
use crate::exec::context::{Context, Run};
use crate::exec::covering::in_index;
use crate::exec::memory::{Memory, let_go, let_go_of_large};
use crate::exec::txns::Txns;
use crate::func::hooks::Change;
use crate::key;
use crate::plan::physical::TableWriter;
use crate::row::RowWriter;
use crate::schema::{ConflictAction, Table};
use crate::value::{Value, ValueRef};

/// Memory that a statement keeps for its writes.
#[derive(Default)]
pub struct Buffers {
    /// The row being written.
    pub row: Vec<Value>,
    /// The row it replaces.
    pub old: Vec<Value>,
    /// The row that an upsert did not insert.
    pub(super) excluded: Vec<Value>,
    /// An encoded row.
    pub record: Vec<u8>,
    /// The columns that an UPDATE assigns, where the row has large ones that were not read.
    pub(super) assigned: Vec<usize>,
    /// A batch of them.
    pub records: Records,
    /// The old row as triggers before it saw it, where there are such.
    pub(super) seen: Vec<Value>,
    pub(super) entries: Vec<Entry>,
    pub(super) old_entries: Vec<Entry>,
    pub(super) makers: Vec<KeyMaker>,
}

impl Buffers {
    /// The row that goes, as the triggers before saw it, if there were any.
    pub(super) fn gone(&self) -> &[Value] {
        match self.seen.is_empty() {
            true => &self.old,
            false => &self.seen,
        }
    }

    /// Whether the row being written has the same entry in an index as the old one.
    pub(super) fn has_again(&self, index: usize) -> bool {
        match (self.entries.get(index), self.old_entries.get(index)) {
            (Some(new), Some(old)) => old.present && new == old,
            _ => false,
        }
    }

    /// Between two runs: gives back what large rows took.
    pub fn let_go(&mut self) {
        let_go_of_large(&mut self.row);
        let_go_of_large(&mut self.old);
        let_go_of_large(&mut self.excluded);
        let_go_of_large(&mut self.seen);
        let_go(&mut self.record);
        self.records.let_go();
        for entry in self.entries.iter_mut().chain(&mut self.old_entries) {
            let_go(&mut entry.key);
            let_go(&mut entry.value);
        }
    }
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is there.
    Written,
    /// A constraint with IGNORE left it out.
    Skipped,
}

/// Which uniqueness a row breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Another row has the rowid.
    Rowid,
    /// Another row, the [holder](Sink::holder), has the key of this index.
    Index(usize),
}

/// See the module.
pub struct Sink<'a> {
    /// The transaction.
    pub txn: &'a mut Txns,
    /// The table and its constraints.
    pub target: &'a TableWriter,
    /// The statement's OR clause.
    pub conflict: Option<ConflictAction>,
    /// Memory.
    pub buffers: &'a mut Buffers,
    /// A row is half written: a failure now must undo more than that row.
    pub torn: bool,
    /// So must one while a row is under way that has taken others' places.
    pub replaced: bool,
    /// Large columns of the row being written were not read: they are empty in
    /// `buffers.row`, but for those that the statement assigns.
    pub is_large: bool,
    /// The row being written may be the one that is there, as it is.
    pub stays: bool,
    /// Entries of unique indexes, too, may be kept back for the transaction.
    pub defers_unique: bool,
    /// The row being written takes the place of the old one, which is there still, with the
    /// entries that both have.
    pub(super) overwrites: bool,
    pub(super) deferred: &'a mut Deferred,
    /// What foreign keys ask, where they ask anything.
    pub foreign: Option<Box<Foreign>>,
    /// Trigger programs, where the statement may run any.
    pub triggers: Option<Triggers<'a>>,
    /// The last constraint, in the order of checks, for which a row went that was in the way
    /// of the one at hand, where triggers or actions may have put another one there.
    pub(super) given_way: Option<usize>,
    is_claimed: bool,
    /// AUTOINCREMENT: what sqlite_sequence says, once it was asked.
    floor: Option<Option<i64>>,
    /// AUTOINCREMENT: the largest rowid that may be gone at the end.
    deleted: i64,
}

impl<'a> Sink<'a> {
    /// For one statement.
    #[inline]
    pub fn new(
        txn: &'a mut Txns,
        target: &'a TableWriter,
        conflict: Option<ConflictAction>,
        buffers: &'a mut Buffers,
        deferred: &'a mut Deferred,
    ) -> Self {
        if buffers.makers.len() != target.indexes.len() {
            buffers.makers = target.indexes.iter().map(KeyMaker::new).collect();
            buffers
                .entries
                .resize_with(target.indexes.len(), Entry::default);
            buffers
                .old_entries
                .resize_with(target.indexes.len(), Entry::default);
        }
        Self {
            txn,
            target,
            conflict,
            buffers,
            torn: false,
            replaced: false,
            is_large: false,
            stays: false,
            defers_unique: false,
            overwrites: false,
            deferred,
            foreign: None,
            triggers: None,
            given_way: None,
            is_claimed: false,
            floor: None,
            deleted: 0,
        }
    }

    /// A rowid for a new row.
    #[inline]
    pub fn allocate_rowid(&mut self) -> Result<i64> {
        let table = self.table();
        if table.sequence.is_none() {
            return Ok(self.txn.allocate_rowid(&table.tree)?);
        }
        // What this statement itself made go away counts too.
        match self.sequence()?.max(Some(self.deleted)) {
            Some(i64::MAX) => Err(sequence::used_up(table)),
            floor => Ok(self.txn.allocate_rowid_above(&table.tree, floor)?),
        }
    }

    /// A new row is to have this rowid, whatever becomes of it: AUTOINCREMENT
    /// counts rows that a constraint then leaves out, as SQLite does.
    #[inline]
    pub fn note_given(&mut self, rowid: i64) -> Result<()> {
        if self.table().sequence.is_some() {
            let floor = self.sequence()?;
            self.floor = Some(floor.max((rowid > 0).then_some(rowid)));
            self.note_deleted(rowid);
        }
        Ok(())
    }

    /// What sqlite_sequence says about the table.
    fn sequence(&mut self) -> Result<Option<i64>> {
        if let (None, Some(stored)) = (self.floor, &self.table().sequence) {
            self.floor = Some(sequence::floor(self.txn, stored, self.table())?);
        }
        Ok(self.floor.flatten())
    }

    /// Others may have been given rowids meanwhile.
    pub(super) fn forget_sequence(&mut self) {
        self.floor = None;
    }

    /// A row went away.
    #[inline]
    pub fn note_deleted(&mut self, rowid: i64) {
        self.deleted = self.deleted.max(rowid);
    }

    /// Before rows, so many. `deletes`: they go.
    #[inline(always)]
    pub fn expect(&mut self, rows: usize, deletes: bool, memory: &Memory) -> Result<()> {
        // Foreign keys and triggers look into indexes before the statement ends.
        let foreign = self.foreign.as_ref();
        if self.triggers.is_some() || foreign.is_some_and(|it| it.needs_own_indexes()) {
            return Ok(());
        }
        if self.deferred.expect(rows) {
            let unique =
                !self.deferred.lasts() && (deletes || self.target.only_aborts(self.conflict));
            self.deferred.begin(self.target, unique, memory);
            if self.defers_unique {
                self.deferred.begin_unique(self.txn, self.target, memory)?;
            }
        }
        Ok(())
    }

    /// Whether there are entries that were kept back.
    pub(super) fn keeps_entries_back(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// After the last row that stays: makes the index entries that were kept back.
    pub fn make_deferred(&mut self, run: &Run) -> Result<()> {
        self.torn = true;
        self.deferred.make(self.txn, || run.check_interrupt())?;
        self.torn = false;
        Ok(())
    }

    /// After the last row: writes down which rowids are not to be given again.
    pub fn end(&mut self) -> Result<()> {
        match &self.table().sequence {
            Some(stored) if self.deleted > 0 => {
                // Where rows were left out alone, nothing is written yet.
                self.torn = self.is_claimed;
                if sequence::is_lost(self.txn, stored, self.table(), self.deleted)? {
                    if !self.is_claimed {
                        self.txn.claim(stored)?;
                    }
                    self.torn = true;
                    sequence::keep(self.txn, stored, self.table(), self.deleted)?;
                }
                self.torn = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The table.
    pub fn table(&self) -> &'a Table {
        &self.target.table
    }

    pub(super) fn action(&self, own: ConflictAction) -> ConflictAction {
        self.conflict.unwrap_or(own)
    }

    /// May some violation delete rows that are in the way?
    pub fn may_replace(&self) -> bool {
        self.table().may_replace(self.conflict)
    }

    /// Sets a column of the row being written, with the column's affinity.
    #[inline]
    pub fn set_column(&mut self, column: usize, value: ValueRef<'_>) {
        let Some(spec) = self.target.table.columns.get(column) else {
            return;
        };
        if let Some(slot) = self.buffers.row.get_mut(column + 1) {
            // What stays as it is, mostly, need not be put together anew.
            match spec.affinity.keeps(value) {
                true => slot.assign(value),
                false => slot.assign(spec.affinity.apply(value).as_ref()),
            }
        }
    }

    /// Tells the connection's hook of a row that changed, if it has a rowid, once what came
    /// to that may be told.
    #[inline]
    pub fn tell(&mut self, change: Change, rowid: i64, cx: &mut Context<'_, '_>) -> Result<()> {
        let Some(hooks) = cx.run.functions.hooks.as_ref().filter(|it| it.tells_rows()) else {
            return Ok(());
        };
        if self.table().without_rowid {
            return Ok(());
        }
        let outer = std::mem::replace(&mut self.torn, true);
        self.txn.main.confirm()?;
        let table = &self.target.table;
        hooks.changed(change, table.tree.store_number(), &table.name, rowid)?;
        self.torn = outer;
        Ok(())
    }

    /// Makes room for a row.
    pub fn start_row(&mut self) {
        self.replaced = false;
        self.is_large = false;
        self.stays = false;
        self.given_way = None;
        self.buffers
            .row
            .resize(self.target.table.columns.len() + 1, Value::Null);
    }

    /// Sets the rowid of the row being written, and the column that shows it.
    #[inline]
    pub fn set_rowid(&mut self, rowid: i64) {
        if let Some(slot) = self.buffers.row.first_mut() {
            *slot = Value::Integer(rowid);
        }
        if let Some(alias) = self.target.table.rowid_alias
            && let Some(slot) = self.buffers.row.get_mut(alias + 1)
        {
            *slot = Value::Integer(rowid);
        }
    }

    /// The rowid of the row being written.
    pub fn rowid(&self) -> i64 {
        match self.buffers.row.first() {
            Some(Value::Integer(i)) => *i,
            _ => 0,
        }
    }

    /// The row being written as bytes, into `buffers.record`.
    pub fn encode(&mut self) -> Result<()> {
        self.buffers.record.clear();
        let alias = self.target.table.rowid_alias.unwrap_or(usize::MAX);
        let columns = self.buffers.row.get(1..).unwrap_or(&[]);
        if !self.target.generated.is_empty() {
            let table = &self.target.table;
            let stored = columns.iter().zip(&table.columns).enumerate();
            let values = stored.map(|(i, (v, column))| match i == alias || column.is_virtual() {
                true => ValueRef::Null,
                false => v.as_ref(),
            });
            return RowWriter::encode(&mut self.buffers.record, values);
        }
        let values = columns.iter().enumerate().map(|(i, v)| {
            if i == alias {
                ValueRef::Null
            } else {
                v.as_ref()
            }
        });
        RowWriter::encode(&mut self.buffers.record, values)
    }

    /// Takes what locks a row needs that the transaction has not, before any of it is
    /// written: where that fails, nothing is torn. `all`: also those of what an UPDATE of
    /// other columns leaves as it is.
    pub(super) fn claim(&mut self, all: bool) -> Result<()> {
        if !self.is_claimed {
            self.txn.claim(&self.target.table.tree)?;
            for writer in self
                .target
                .indexes
                .iter()
                .filter(|writer| all || writer.affected)
            {
                self.txn.claim(&writer.index.tree)?;
            }
            // All AUTOINCREMENT tables share it, and a row that stays does not concern it.
            if let Some(sequence) = self.target.table.sequence.as_ref().filter(|_| all) {
                self.txn.claim(sequence)?;
            }
            self.is_claimed = true;
        }
        Ok(())
    }

    /// Writes a new row whose entries are made and whose record is encoded.
    /// `fresh`: the rowid was allocated for it. On a conflict nothing is left.
    pub fn insert_row(&mut self, rowid: i64, fresh: bool) -> Result<Option<Conflict>> {
        self.claim(true)?;
        let tree = &self.target.table.tree;
        self.torn = true;
        let overwrites = std::mem::take(&mut self.overwrites);
        let overwrites_all = self.replaces_rowid()
            && self.foreign.is_none()
            && self.delete_fires().is_none()
            && self.target.indexes.is_empty()
            && self.target.rowid_after.is_none();
        // Nobody has a rowid that was allocated, so that it can wait for the entries: what
        // they are refused for leaves no row to take back.
        let comes_last = fresh && !overwrites;
        if overwrites || overwrites_all && !fresh {
            self.txn
                .rewrite(tree, Key::Int(rowid), &self.buffers.record)?;
        } else if !comes_last
            && !self
                .txn
                .insert(tree, Key::Int(rowid), &self.buffers.record)?
        {
            self.torn = false;
            let before = match self.target.rowid_after {
                Some(indexes) => indexes,
                None if self.rowid_last() => usize::MAX,
                None => 0,
            };
            let other = self.index_conflict(before, true, false)?;
            return Ok(other.or(Some(Conflict::Rowid)));
        }
        // Those that may be refused come first: no other has to be taken back then.
        for exclusive in [true, false] {
            if let Some(taken) = self.insert_entries(exclusive, overwrites)? {
                let was_made = |i, entry: &Entry| entry.exclusive && i < taken;
                self.take_back_entries(was_made, overwrites)?;
                if !comes_last {
                    self.txn.delete(tree, Key::Int(rowid))?;
                }
                self.torn = false;
                return Ok(Some(Conflict::Index(taken)));
            }
        }
        if comes_last {
            self.txn.put(tree, Key::Int(rowid), &self.buffers.record)?;
        }
        self.torn = false;
        Ok(None)
    }

    /// The rowid that holds the new entry's key in a unique index. Who leaves its own row out
    /// for that does not ask.
    pub(super) fn holder(&mut self, index: usize) -> Result<i64> {
        let (Some(writer), Some(entry)) = (
            self.target.indexes.get(index),
            self.buffers.entries.get(index),
        ) else {
            return Ok(0);
        };
        let mut value = Vec::new();
        if !self
            .txn
            .get_into(&writer.index.tree, Key::Bytes(&entry.key), &mut value)?
        {
            return Err(Error::corrupt("an index entry vanished"));
        }
        let holder = key::decode_rowid(&mut value.as_slice());
        holder.map_err(|error| in_index(error, &writer.index.name))
    }

    /// Deletes the row in `buffers.old` with its entries.
    pub fn delete_old(&mut self, rowid: i64, cx: &mut Context<'_, '_>) -> Result<()> {
        self.before_change(None, cx)?;
        self.make_old_entries(rowid, true, cx)?;
        self.claim(true)?;
        self.torn = true;
        for (writer, entry) in self.target.indexes.iter().zip(&self.buffers.old_entries) {
            if entry.present {
                self.deferred.delete(self.txn, &writer.index, entry)?;
            }
        }
        self.txn.delete(&self.target.table.tree, Key::Int(rowid))?;
        self.note_deleted(rowid);
        self.torn = false;
        self.note_actions(None)
    }

    /// The first conflict of the row being written with rows other than `old`.
    pub fn find_conflict(&mut self, old: i64, all: bool) -> Result<Option<Conflict>> {
        let rowid = self.rowid();
        let taken = rowid != old
            && self
                .txn
                .is_taken(&self.target.table.tree, Key::Int(rowid))?;
        if taken && !self.rowid_last() {
            return Ok(Some(Conflict::Rowid));
        }
        let other = self.index_conflict(usize::MAX, all, true)?;
        Ok(other.or(taken.then_some(Conflict::Rowid)))
    }

    /// A rowid that replaces on its own account is checked after the indexes.
    pub(super) fn rowid_last(&self) -> bool {
        self.conflict.is_none() && self.target.table.rowid_conflict == ConflictAction::Replace
    }

    /// The first unique index, of the first `among`, in which another row has the key of
    /// the row being written; `changed`: the entries of the row in `buffers.old` are its
    /// own.
    fn index_conflict(
        &mut self,
        among: usize,
        all: bool,
        changed: bool,
    ) -> Result<Option<Conflict>> {
        for index in 0..among.min(self.target.indexes.len()) {
            if self.has_taken_key(index, all, changed)? {
                return Ok(Some(Conflict::Index(index)));
            }
        }
        Ok(None)
    }

    /// Whether another row has the key of the row being written in this index, if that is a
    /// unique one; the rest as in [`Self::index_conflict`].
    pub(super) fn has_taken_key(&mut self, index: usize, all: bool, changed: bool) -> Result<bool> {
        let (Some(writer), Some(new), Some(before)) = (
            self.target.indexes.get(index),
            self.buffers.entries.get(index),
            self.buffers.old_entries.get(index),
        ) else {
            return Ok(false);
        };
        let is_asked =
            writer.index.unique && (all || writer.affected) && !self.deferred.defers(&writer.index);
        let own = changed && before.present && before.exclusive && before.key == new.key;
        Ok(is_asked
            && new.present
            && new.exclusive
            && !own
            && self
                .txn
                .is_taken(&writer.index.tree, Key::Bytes(&new.key))?)
    }

    /// Encodes the row being written and puts it in the place of the row in `buffers.old`.
    pub fn replace_old(&mut self, old: i64, all: bool) -> Result<()> {
        let rowid = self.rowid();
        self.claim(all || rowid != old)?;
        let encoded = match self.is_large {
            true => self.encode_large()?,
            false => {
                self.encode()?;
                Encoded::Whole
            }
        };
        self.torn = true;
        for (i, writer) in self.target.indexes.iter().enumerate() {
            if !(all || writer.affected) {
                continue;
            }
            let (Some(new), Some(before)) =
                (self.buffers.entries.get(i), self.buffers.old_entries.get(i))
            else {
                continue;
            };
            if new == before {
                continue;
            }
            let stays = before.present && new.present && new.key == before.key;
            if before.present && !stays {
                self.deferred.delete(self.txn, &writer.index, before)?;
            }
            if new.present {
                let exclusive = new.exclusive && !stays;
                self.deferred.put(self.txn, &writer.index, new, exclusive)?;
            }
        }
        if rowid != old {
            self.txn.delete(&self.target.table.tree, Key::Int(old))?;
            self.note_deleted(old);
        }
        let (tree, key, record) = (
            &self.target.table.tree,
            Key::Int(rowid),
            &self.buffers.record,
        );
        match encoded {
            Encoded::Whole if self.stays => self.txn.rewrite(tree, key, record)?,
            Encoded::Whole => self.txn.put(tree, key, record)?,
            Encoded::Start(until) if self.stays => {
                self.txn.rewrite_start(tree, key, until, record)?
            }
            Encoded::Start(until) => self.txn.put_start(tree, key, until, record)?,
        };
        self.torn = false;
        Ok(())
    }
}
