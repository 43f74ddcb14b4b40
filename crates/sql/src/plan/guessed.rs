//! About how many rows a query in FROM has, before it is planned.
//!
//! What it is joined by is chosen first: what is looked up for each of its rows costs as much
//! as they are, and a table that is read and hashed for their sake costs what it costs. So
//! where nothing tells, few are guessed of what is small as a rule: then too many lookups
//! take a few times what the other way would have, and not any number of times.

use super::Planner;
use super::block::rows_at_most;
use super::join::ROWS_UNKNOWN;
use super::weigh::selectivity;
use crate::bind::logical::{Block, Body, Query, Recursion, SourceKind};

/// Of the rows of a table that a recursion walks over, one in so many is guessed to be
/// reached: it may be a way up a tree, or a part of it.
const REACHED: f64 = 32.0;
/// The rows of a recursion that reads no table, such as the days of some months.
const COUNTED: f64 = 100.0;
/// Queries that are looked at for one guess: those that are there twice stand for any number
/// of others.
const LOOKS: u32 = 64;

impl Planner<'_, '_> {
    /// About how many rows a query has.
    pub(super) fn rows_of_query(&mut self, query: &Query) -> f64 {
        let mut looks = LOOKS;
        self.rows_within(query, &mut looks)
    }

    fn rows_within(&mut self, query: &Query, looks: &mut u32) -> f64 {
        let mut rows = 0.0;
        let mut body = &query.body;
        loop {
            let Some(left) = looks.checked_sub(1) else {
                return ROWS_UNKNOWN;
            };
            *looks = left;
            let Body::Compound { left, right, .. } = body else {
                break;
            };
            rows += crate::stack::grow(|| self.rows_within(right, looks));
            body = &left.body;
        }
        rows += match body {
            Body::Values(values) => values.len() as f64,
            Body::Recursion(recursion) => self.rows_of_recursion(recursion),
            Body::Block(block) => self.rows_of_block(block, looks),
            Body::Compound { .. } => 0.0,
        };
        let at_most = query.limit.as_ref().map_or(f64::INFINITY, rows_at_most);
        rows.min(ROWS_UNKNOWN).min(at_most).max(1.0)
    }

    fn rows_of_block(&mut self, block: &Block, looks: &mut u32) -> f64 {
        let aggregation = block.aggregation.as_ref();
        if aggregation.is_some_and(|it| it.keys.is_empty()) {
            return 1.0;
        }
        let rows = match block.sources.as_slice() {
            [] => 1.0,
            [source] => match &source.kind {
                SourceKind::Query(query) => crate::stack::grow(|| self.rows_within(query, looks)),
                _ => self.source_rows(source),
            },
            _ => return ROWS_UNKNOWN,
        };
        let left: f64 = block.filter.iter().map(selectivity).product();
        rows * left
    }

    /// About how many rows a recursion has.
    pub(super) fn rows_of_recursion(&mut self, recursion: &Recursion) -> f64 {
        let mut rows = 1.0_f64;
        for member in &recursion.members {
            let Body::Block(block) = &member.body else {
                return ROWS_UNKNOWN;
            };
            let mut most: Option<f64> = None;
            for source in &block.sources {
                if matches!(source.kind, SourceKind::Table(_)) {
                    let of_table = self.source_rows(source);
                    most = Some(most.map_or(of_table, |most| most.max(of_table)));
                }
            }
            rows = rows.max(most.map_or(COUNTED, |most| most / REACHED));
        }
        rows.min(ROWS_UNKNOWN)
    }
}
