//! The orders in memory: what the log holds, and what is on its way there.

use crate::order::Order;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All orders by id. One that is not durable yet takes its id and is not shown.
#[derive(Debug, Default)]
pub struct Book {
    orders: Mutex<HashMap<String, Known>>,
}

#[derive(Debug)]
enum Known {
    Pending,
    Accepted(Order),
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an id; false if it was taken.
    pub fn claim(&self, id: &str) -> bool {
        match self.lock().entry(id.to_owned()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(Known::Pending);
                true
            }
        }
    }

    /// Gives back the id of an order that never got into the log.
    pub fn release(&self, id: &str) {
        self.lock().remove(id);
    }

    /// An order is durable.
    pub fn accept(&self, order: Order) {
        self.lock().insert(order.id.clone(), Known::Accepted(order));
    }

    /// The durable order with this id.
    pub fn get(&self, id: &str) -> Option<Order> {
        match self.lock().get(id) {
            Some(Known::Accepted(order)) => Some(order.clone()),
            _ => None,
        }
    }

    /// How many ids are taken.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
