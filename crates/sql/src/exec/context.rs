//! What a running statement carries through its operators and expressions.
//!
//! [`Run`] belongs to one statement and lives from its first step to its reset;
//! [`Context`] joins it with the bindings for the length of one call. Buffers of
//! expressions come from the run's pools, so that a statement in a steady state
//! allocates nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::exec::batch::{Batch, Vector};
use crate::exec::memory::Memory;
use crate::exec::subquery::SubqueryRun;
use crate::func;
use crate::value::Value;

/// State of one run of a statement.
pub struct Run {
    /// Values that joins and subquery calls hand down.
    pub registers: Vec<Value>,
    /// Subqueries of the plan; None while one is running.
    pub subqueries: Vec<Option<Box<SubqueryRun>>>,
    /// What functions may ask for.
    pub functions: func::Context,
    /// Set by an interrupt handle.
    pub interrupt: Arc<AtomicBool>,
    /// The connection's memory budget and where to spill.
    pub memory: Memory,
    /// How often each pass of the plan has begun.
    passes: Vec<u64>,
    /// The rows at hand of each recursion, by its number.
    recursive: Vec<Batch>,
    vectors: Vec<Vector>,
    rows: Vec<Vec<u32>>,
    batches: Vec<Batch>,
}

/// Buffers kept in each pool.
const POOL_MAX: usize = 32;

impl Run {
    /// A run without registers and subqueries.
    pub fn new(functions: func::Context, interrupt: Arc<AtomicBool>, memory: Memory) -> Self {
        Self {
            registers: Vec::new(),
            subqueries: Vec::new(),
            functions,
            interrupt,
            memory,
            passes: Vec::new(),
            recursive: Vec::new(),
            vectors: Vec::new(),
            rows: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// An empty vector.
    #[inline]
    pub fn vector(&mut self) -> Vector {
        self.vectors.pop().unwrap_or_default()
    }

    /// Takes a vector back.
    #[inline]
    pub fn recycle(&mut self, mut vector: Vector) {
        if self.vectors.len() < POOL_MAX {
            vector.clear();
            self.vectors.push(vector);
        }
    }

    /// An empty row list.
    #[inline]
    pub fn rows(&mut self) -> Vec<u32> {
        self.rows.pop().unwrap_or_default()
    }

    /// Takes a row list back.
    #[inline]
    pub fn recycle_rows(&mut self, mut rows: Vec<u32>) {
        if self.rows.len() < POOL_MAX {
            rows.clear();
            self.rows.push(rows);
        }
    }

    /// A batch of no columns.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.batches.pop().unwrap_or_default()
    }

    /// Takes a batch back.
    #[inline]
    pub fn recycle_batch(&mut self, batch: Batch) {
        if self.batches.len() < POOL_MAX {
            self.batches.push(batch);
        }
    }

    /// Begins a pass of the plan anew: what was kept for it holds no more.
    #[inline]
    pub fn begin_pass(&mut self, pass: usize) {
        if self.passes.len() <= pass {
            self.passes.resize(pass + 1, 0);
        }
        if let Some(begun) = self.passes.get_mut(pass) {
            *begun += 1;
        }
    }

    /// How often a pass has begun.
    #[inline]
    pub fn pass(&self, pass: usize) -> u64 {
        self.passes.get(pass).copied().unwrap_or(0)
    }

    /// The rows at hand of a recursion.
    #[inline]
    pub fn recursive_rows(&mut self, table: usize) -> &mut Batch {
        if self.recursive.len() <= table {
            self.recursive.resize_with(table + 1, Batch::default);
        }
        &mut self.recursive[table]
    }

    /// Stores a register.
    #[inline]
    pub fn set_register(&mut self, register: usize, value: crate::value::ValueRef<'_>) {
        if self.registers.len() <= register {
            self.registers.resize(register + 1, Value::Null);
        }
        if let Some(slot) = self.registers.get_mut(register) {
            slot.assign(value);
        }
    }

    /// The error of an interrupted statement, if it was.
    #[inline]
    pub fn check_interrupt(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        match &self.functions.hooks {
            None => Ok(()),
            Some(hooks) => hooks.goes_on(),
        }
    }
}

/// A run and the statement's bindings.
pub struct Context<'p, 'r> {
    /// Bound values.
    pub parameters: &'p [Value],
    /// The run.
    pub run: &'r mut Run,
}
