//! How a plan is carried out, made ready once.

use crate::exec::dml::PointInsert;
use crate::exec::ops::{BoxOperator, build};
use crate::exec::point_read::PointRead;
use crate::plan::physical::{Action, Node, Plan};

/// See the module.
pub enum Kind {
    /// A query of one row by key.
    PointRead(Box<PointRead>),
    /// Any other query.
    Query(BoxOperator),
    /// INSERT of one row of values.
    PointInsert(Box<PointInsert>),
    /// UPDATE or DELETE of one row by key.
    PointWrite(Box<PointRead>),
    /// Any other INSERT, UPDATE or DELETE, with its source.
    Write(BoxOperator),
    /// What the session does itself.
    Other,
}

impl Kind {
    /// That of a plan.
    pub fn of(plan: &Plan) -> Self {
        match &plan.action {
            Action::Query(root) => match PointRead::of_query(plan, root) {
                // It finds its row while the session is locked.
                Some(point) if !plan.calls_user => Kind::PointRead(Box::new(point)),
                _ => Kind::Query(build(root)),
            },
            Action::Insert(insert) => match PointInsert::new(insert, plan.calls_user) {
                Some(point) if plan.subqueries.is_empty() => Kind::PointInsert(Box::new(point)),
                _ => Kind::Write(build(&insert.source)),
            },
            Action::Update(update) => write(plan, &update.source),
            Action::Delete(delete) => write(plan, &delete.source),
            Action::ViewChange(change) => Kind::Write(build(&change.source)),
            _ => Kind::Other,
        }
    }
}

fn write(plan: &Plan, source: &Node) -> Kind {
    match PointRead::of_source(plan, source) {
        Some(point) => Kind::PointWrite(Box::new(point)),
        None => Kind::Write(build(source)),
    }
}
