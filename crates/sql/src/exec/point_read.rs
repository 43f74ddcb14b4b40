//! Point paths: one row by its rowid or by all columns of a unique index, without
//! operators and batches.
//!
//! Any query of the form project(filter(generate(filter(lookup of one key)))), each part
//! but the lookup optional, over any table and any expressions without subqueries.

use std::sync::Arc;

use fulgurite_store::{Key, Result as StoreResult, Tree};

use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::covering::{Covering, in_index};
use crate::exec::expr::{Row, condition, eval};
use crate::exec::fetch::{Fetch, dangling};
use crate::exec::memory::{let_go, let_go_of_large};
use crate::exec::point::PointRow;
use crate::exec::range::{key_column, rowid_of};
use crate::exec::txns::Txns;
use crate::key;
use crate::plan::physical::{Node, Op, Plan, ScanColumn};
use crate::schema::{Column, Index, Table};
use crate::value::{Affinity, Value, ValueRef};

/// A result column of a point read.
enum Output {
    /// A column of the row as it is.
    Column(usize),
    /// Computed, into the slot of the same number.
    Computed(Expr),
}

/// What names the row.
enum Finder {
    Rowid(Expr),
    Unique {
        index: Arc<Index>,
        /// One for each column of the index.
        values: Vec<Expr>,
        /// It has all columns that are wanted.
        covering: Option<Covering>,
        key: Vec<u8>,
        entry: Vec<u8>,
    },
}

impl Finder {
    /// The entry that was found, where it has all that is wanted.
    #[inline]
    fn covered(&self) -> Option<(&Covering, &[u8], &[u8])> {
        match self {
            Finder::Rowid(_) => None,
            Finder::Unique {
                covering,
                key,
                entry,
                ..
            } => covering.as_ref().map(|it| (it, &**key, &**entry)),
        }
    }
}

/// See the module.
pub struct PointRead {
    fetch: Fetch,
    finder: Finder,
    /// Generated columns, behind those that are fetched, and what is asked before they are
    /// computed.
    generated: Vec<(Expr, Affinity)>,
    before: Option<Expr>,
    predicate: Option<Expr>,
    outputs: Vec<Output>,
    row: PointRow,
    computed: Vec<Value>,
}

impl PointRead {
    /// If the query is one.
    pub fn of_query(plan: &Plan, root: &Node) -> Option<Self> {
        Self::of_rows(plan, root, true)
    }

    fn of_rows(plan: &Plan, root: &Node, covered: bool) -> Option<Self> {
        let (outputs, below) = match &root.op {
            Op::Project { input, exprs } => (exprs.iter().map(output).collect(), input.as_ref()),
            _ => ((0..root.width).map(Output::Column).collect(), root),
        };
        Self::new(plan, below, outputs, covered)
    }

    /// The index that is looked into, if one is.
    pub fn unique_index(&self) -> Option<&Index> {
        match &self.finder {
            Finder::Unique { index, .. } => Some(index),
            Finder::Rowid(_) => None,
        }
    }

    /// If the source of an UPDATE or DELETE is one. The row will be changed, so that it is
    /// read whatever its index has.
    pub fn of_source(plan: &Plan, source: &Node) -> Option<Self> {
        Self::of_rows(plan, source, false)
    }

    fn new(plan: &Plan, node: &Node, outputs: Vec<Output>, covered: bool) -> Option<Self> {
        if !plan.subqueries.is_empty() {
            return None;
        }
        let (predicate, below) = filtered(node);
        let (generated, before, lookup) = match &below.op {
            Op::Generate { input, columns } => {
                let (before, lookup) = filtered(input);
                (columns.clone(), before, lookup)
            }
            _ => (Vec::new(), None, below),
        };
        let (table, columns, finder) = match &lookup.op {
            Op::RowidLookup {
                table,
                columns,
                keys,
                ..
            } => {
                let [key] = keys.as_slice() else { return None };
                if key.is_many() {
                    return None;
                }
                (table, columns, Finder::Rowid(key.clone()))
            }
            Op::IndexScan {
                table,
                index,
                columns,
                prefixes,
                null_matches,
                covering,
                ..
            } => {
                let [values] = prefixes.as_slice() else {
                    return None;
                };
                // NULL is no key that only one row may have.
                let whole = index.unique && values.len() == index.columns.len();
                if !whole || null_matches.contains(&true) || values.iter().any(Expr::is_many) {
                    return None;
                }
                let finder = Finder::Unique {
                    index: Arc::clone(index),
                    values: values.clone(),
                    covering: (*covering && covered).then(|| Covering::new(index, columns)),
                    key: Vec::new(),
                    entry: Vec::new(),
                };
                (table, columns, finder)
            }
            _ => return None,
        };
        // An index may have what no row has.
        if table.has_generated && columns.iter().any(|column| is_virtual(table, *column)) {
            return None;
        }
        let computed = vec![Value::Null; outputs.len()];
        Some(Self {
            fetch: Fetch::new(table, columns),
            finder,
            generated,
            before,
            predicate,
            outputs,
            row: PointRow::default(),
            computed,
        })
    }

    /// Copies the stored row out of the transaction, or what its index has of it; its rowid,
    /// if it is there.
    #[inline]
    pub fn find(&mut self, txn: &mut Txns, cx: &mut Context<'_, '_>) -> Result<Option<i64>> {
        self.find_by(Txns::get_start_into, txn, cx)
    }

    /// As [`find`](Self::find), for a row that is about to be changed or deleted.
    #[inline]
    pub fn find_to_change(
        &mut self,
        txn: &mut Txns,
        cx: &mut Context<'_, '_>,
    ) -> Result<Option<i64>> {
        self.find_by(Txns::get_start_to_change, txn, cx)
    }

    #[inline(always)]
    fn find_by(
        &mut self,
        get: impl Fn(&mut Txns, &Tree, Key<'_>, &mut Vec<u8>) -> StoreResult<Option<usize>>,
        txn: &mut Txns,
        cx: &mut Context<'_, '_>,
    ) -> Result<Option<i64>> {
        let rowid = match &mut self.finder {
            Finder::Rowid(key) => rowid_of(eval(key, Row::Empty, cx)?.as_ref()),
            Finder::Unique {
                index,
                values,
                key,
                entry,
                ..
            } => look_up(index, values, key, entry, txn, cx)?,
        };
        let Some(rowid) = rowid else {
            return Ok(None);
        };
        if let Some((covering, key, entry)) = self.finder.covered() {
            self.row.clear(self.fetch.width());
            covering.each(key, entry, |place, value| {
                self.row.set(place, value);
                Ok(())
            })?;
            return Ok(Some(rowid));
        }
        let tree = &self.fetch.table().tree;
        if let Some(length) = get(txn, tree, Key::Int(rowid), &mut self.row.bytes)? {
            let PointRow {
                bytes, properties, ..
            } = &mut self.row;
            self.row.is_large = (self.fetch).complete(txn, (rowid, length), bytes, properties)?;
            return Ok(Some(rowid));
        }
        match &self.finder {
            Finder::Rowid(_) => Ok(None),
            Finder::Unique { index, .. } => Err(dangling(&index.name, rowid)),
        }
    }

    /// Decodes the row that was found; false: the predicate is against it.
    #[inline]
    pub fn accept(&mut self, rowid: i64, cx: &mut Context<'_, '_>) -> Result<bool> {
        if self.finder.covered().is_none() {
            self.row.decode(&self.fetch, rowid)?;
        }
        if !self.generated.is_empty() && !self.generate(cx)? {
            return Ok(false);
        }
        match &self.predicate {
            None => Ok(true),
            Some(predicate) => Ok(condition(predicate, Row::Point(&self.row), cx)? == Some(true)),
        }
    }

    /// Computes generated columns; false: what is asked before is against the row.
    fn generate(&mut self, cx: &mut Context<'_, '_>) -> Result<bool> {
        if let Some(before) = &self.before
            && condition(before, Row::Point(&self.row), cx)? != Some(true)
        {
            return Ok(false);
        }
        for (expr, affinity) in &self.generated {
            let value = eval(expr, Row::Point(&self.row), cx)?.into_value();
            self.row.push(affinity.apply_owned(value));
        }
        Ok(true)
    }

    /// Computes what is not a mere column.
    #[inline]
    pub fn compute(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        for (output, slot) in self.outputs.iter().zip(&mut self.computed) {
            if let Output::Computed(expr) = output {
                slot.assign(eval(expr, Row::Point(&self.row), cx)?.as_ref());
            }
        }
        Ok(())
    }

    /// Between two runs: gives back what a large row took.
    pub fn let_go(&mut self) {
        self.row.let_go();
        let_go_of_large(&mut self.computed);
        if let Finder::Unique { key, entry, .. } = &mut self.finder {
            let_go(key);
            let_go(entry);
        }
    }

    /// A result column.
    #[inline]
    pub fn column(&self, i: usize) -> ValueRef<'_> {
        match self.outputs.get(i) {
            Some(Output::Column(column)) => self.row.get(*column),
            Some(Output::Computed(_)) => self.computed.get(i).map_or(ValueRef::Null, Value::as_ref),
            None => ValueRef::Null,
        }
    }
}

/// What a node filters by, and what yields the rows.
fn filtered(node: &Node) -> (Option<Expr>, &Node) {
    match &node.op {
        Op::Filter { input, predicate } => (Some(predicate.clone()), input.as_ref()),
        _ => (None, node),
    }
}

fn is_virtual(table: &Table, column: ScanColumn) -> bool {
    let ScanColumn::Column(at) = column else {
        return false;
    };
    table.columns.get(at).is_some_and(Column::is_virtual)
}

/// The rowid that a unique index has for the values.
fn look_up(
    index: &Index,
    values: &[Expr],
    key: &mut Vec<u8>,
    entry: &mut Vec<u8>,
    txn: &mut Txns,
    cx: &mut Context<'_, '_>,
) -> Result<Option<i64>> {
    key.clear();
    for (expr, column) in values.iter().zip(&index.columns) {
        let value = eval(expr, Row::Empty, cx)?;
        if value.as_ref().is_null() {
            return Ok(None);
        }
        let affinity = column.affinity.unwrap_or(Affinity::Blob);
        let value = affinity.apply_comparison(value.as_ref());
        key::encode(key, value.as_ref(), key_column(column));
    }
    if !txn.get_into(&index.tree, Key::Bytes(key), entry)? {
        return Ok(None);
    }
    let rowid = key::decode_rowid(&mut entry.as_slice());
    rowid
        .map(Some)
        .map_err(|error| in_index(error, &index.name))
}

fn output(expr: &Expr) -> Output {
    match expr.kind {
        ExprKind::Input(column) => Output::Column(column),
        _ => Output::Computed(expr.clone()),
    }
}
