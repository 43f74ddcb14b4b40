//! Common table expressions that are named more than once: planned and run once, as a
//! subquery that nothing is handed in to, whose rows are kept for all that read them.
//!
//! Where a condition chooses what is read of one, it is planned for that source alone
//! instead: what does not count is then neither read nor grouped.

use super::Planner;
use super::arms::is_union_all;
use super::physical::{Node, Op, Subquery};
use crate::bind::expr::{Expr, SubqueryId};
use crate::bind::logical::{Query, Source};
use crate::error::Result;

impl Planner<'_, '_> {
    /// The kept rows that a source, which is `query`, reads; None where it makes its own.
    /// The conditions are those on it alone.
    pub(super) fn common_rows(
        &mut self,
        source: &Source,
        query: &Query,
        conditions: &[Expr],
    ) -> Result<Option<Node>> {
        let Some(number) = source.common else {
            return Ok(None);
        };
        let commons = self.commons;
        let Some(common) = commons.get(number) else {
            return Ok(None);
        };
        let Some(shared) = &common.query else {
            return Ok(None);
        };
        if common.deterministic && self.chooses_rows(query, source.id, conditions) {
            return Ok(None);
        }
        let known = self.common.iter().find(|(of, _)| *of == number);
        let id = match known {
            Some((_, id)) => *id,
            None => {
                let id = self.plan_common(shared)?;
                self.common.push((number, id));
                id
            }
        };
        let root = self.subqueries.get(id).map(|subquery| &subquery.root);
        Ok(root.map(|root| Node {
            op: Op::CommonRows {
                name: source.alias.clone(),
                subquery: id,
            },
            width: root.width,
            rows: root.rows,
        }))
    }

    /// Whether conditions on a source become some of its query.
    fn chooses_rows(&self, query: &Query, source: usize, conditions: &[Expr]) -> bool {
        match is_union_all(query) {
            true => conditions.iter().any(|it| self.may_be_asked_within(it)),
            false => {
                let mut conditions = conditions.to_vec();
                !self.pushed(query, source, &mut conditions).is_empty()
            }
        }
    }

    fn plan_common(&mut self, query: &Query) -> Result<SubqueryId> {
        let recursions = std::mem::take(&mut self.recursions);
        let any_order = std::mem::take(&mut self.any_order);
        let (outer, pass) = self.begin_pass();
        let root = crate::stack::grow(|| self.query(query));
        self.pass = outer;
        self.any_order = any_order;
        self.recursions = recursions;
        self.subqueries.push(Subquery {
            root: root?,
            bindings: Vec::new(),
            cacheable: true,
            pass,
            asked: true,
        });
        Ok(self.subqueries.len() - 1)
    }
}
