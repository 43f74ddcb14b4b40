//! Point paths: one row by its rowid, without operators and batches.
//!
//! Any query of the form project(filter(lookup of one key)), each part but the
//! lookup optional, over any table and any expressions without subqueries.

use fulgurite_store::{Key, Txn};

use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition, eval};
use crate::exec::fetch::Fetch;
use crate::exec::point::PointRow;
use crate::exec::range::rowid_of;
use crate::plan::physical::{Node, Op, Plan};
use crate::value::{Value, ValueRef};

/// A result column of a point read.
enum Output {
    /// A column of the row as it is.
    Column(usize),
    /// Computed, into the slot of the same number.
    Computed(Expr),
}

/// See the module.
pub struct PointRead {
    fetch: Fetch,
    key: Expr,
    predicate: Option<Expr>,
    outputs: Vec<Output>,
    row: PointRow,
    computed: Vec<Value>,
}

impl PointRead {
    /// If the query is one.
    pub fn of_query(plan: &Plan, root: &Node) -> Option<Self> {
        let (outputs, below) = match &root.op {
            Op::Project { input, exprs } => (exprs.iter().map(output).collect(), input.as_ref()),
            _ => ((0..root.width).map(Output::Column).collect(), root),
        };
        Self::new(plan, below, outputs)
    }

    /// If the source of an UPDATE or DELETE is one.
    pub fn of_source(plan: &Plan, source: &Node) -> Option<Self> {
        Self::of_query(plan, source)
    }

    fn new(plan: &Plan, node: &Node, outputs: Vec<Output>) -> Option<Self> {
        if !plan.subqueries.is_empty() {
            return None;
        }
        let (predicate, lookup) = match &node.op {
            Op::Filter { input, predicate } => (Some(predicate.clone()), input.as_ref()),
            _ => (None, node),
        };
        let Op::RowidLookup {
            table,
            columns,
            keys,
            ..
        } = &lookup.op
        else {
            return None;
        };
        let [key] = keys.as_slice() else { return None };
        let computed = vec![Value::Null; outputs.len()];
        Some(Self {
            fetch: Fetch::new(table, columns),
            key: key.clone(),
            predicate,
            outputs,
            row: PointRow::default(),
            computed,
        })
    }

    /// The rowid asked for; None: nothing can be found.
    #[inline]
    pub fn rowid(&self, cx: &mut Context<'_, '_>) -> Result<Option<i64>> {
        Ok(rowid_of(eval(&self.key, Row::Empty, cx)?.as_ref()))
    }

    /// Copies the stored row out of the transaction; false: there is none.
    #[inline]
    pub fn get(&mut self, rowid: i64, txn: &mut Txn) -> Result<bool> {
        Ok(txn.get_into(
            &self.fetch.table().tree,
            Key::Int(rowid),
            &mut self.row.bytes,
        )?)
    }

    /// As [`get`](Self::get), for a row that is about to be changed or deleted.
    #[inline]
    pub fn get_to_change(&mut self, rowid: i64, txn: &mut Txn) -> Result<bool> {
        Ok(txn.get_to_change(
            &self.fetch.table().tree,
            Key::Int(rowid),
            &mut self.row.bytes,
        )?)
    }

    /// Decodes the row that was found; false: the predicate is against it.
    #[inline]
    pub fn accept(&mut self, rowid: i64, cx: &mut Context<'_, '_>) -> Result<bool> {
        self.row.decode(&self.fetch, rowid)?;
        match &self.predicate {
            None => Ok(true),
            Some(predicate) => Ok(condition(predicate, Row::Point(&self.row), cx)? == Some(true)),
        }
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

fn output(expr: &Expr) -> Output {
    match expr.kind {
        ExprKind::Input(column) => Output::Column(column),
        _ => Output::Computed(expr.clone()),
    }
}
