//! What a prepared statement runs: its plan, made ready once.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::state::Base;
use crate::bind::expr::Expr;
use crate::exec::dml::Deferred;
use crate::exec::kind::Kind;
use crate::plan::any_value::is_for_any_value;
use crate::plan::foreign::ForeignKeys;
use crate::plan::physical::{Action, Op, Plan, TableWriter};
use crate::schema::ConflictAction;

/// See the module.
pub struct Program {
    /// The plan.
    pub plan: Arc<Plan>,
    /// How it is carried out.
    pub kind: Kind,
    /// The trees it reads or writes, for the locks of an autocommitted write.
    pub trees: Vec<Tree>,
    /// The stores of the databases that it uses, where there are others than the main one
    /// among them: what names mean in them is enough.
    pub stores: Vec<u64>,
    /// It may fail with some of its work done.
    pub may_tear: bool,
    /// What its triggers write.
    pub fires: Fires,
    /// Rows of the trees that the plan reads, when it was made; empty where it would be the
    /// same for any number of them.
    sizes: Vec<u64>,
}

/// What the trigger programs of a statement write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fires {
    /// It has none.
    Nothing,
    /// So few rows for one of its own that what they take need not be looked at meanwhile.
    Few,
    /// Any number.
    Any,
}

/// So many statements of triggers are few. (Each may fire others, some of them more than once.)
const STEPS_FEW: usize = 16;

impl Fires {
    fn of(plan: &Plan) -> Self {
        if plan.programs.is_empty() {
            return Self::Nothing;
        }
        let mut steps = plan.programs.iter().flat_map(|program| &program.steps);
        let writes_one = |step: &Plan| match &step.action {
            Action::Query(_) => true,
            _ => matches!(Kind::of(step), Kind::PointInsert(_) | Kind::PointWrite(_)),
        };
        match steps.clone().count() <= STEPS_FEW && steps.all(writes_one) {
            true => Self::Few,
            false => Self::Any,
        }
    }
}

/// So few rows are as good as none.
const FEW: u64 = 64;

/// Whether a plan made for so many rows is as good for another number of them.
pub(super) fn is_similar(rows: u64, other: u64) -> bool {
    let [rows, other] = [rows, other].map(|rows| rows.max(FEW));
    rows / 2 <= other && other / 2 <= rows
}

/// The stores of the databases in which a plan has trees or looks for names; none if that is
/// the main one alone.
fn stores(plan: &Plan, trees: &[Tree]) -> Vec<u64> {
    let changed = plan.place.iter().flat_map(|place| place.trees());
    let of_trees = trees.iter().chain(changed).map(Tree::store_number);
    let mut stores: Vec<u64> = of_trees.chain(plan.searched.iter().copied()).collect();
    stores.sort_unstable();
    stores.dedup();
    let is_beside = |store: &u64| plan.beside.iter().any(|(beside, _)| beside == store);
    match stores.iter().any(is_beside) {
        true => stores,
        false => Vec::new(),
    }
}

impl Program {
    /// Makes a plan ready.
    pub fn new(plan: Plan) -> Self {
        let kind = Kind::of(&plan);
        let mut trees = plan.writes.clone();
        for tree in plan.reads.iter().chain(&plan.guards) {
            if !trees.contains(tree) {
                trees.push(tree.clone());
            }
        }
        // One row is found by its key in a table of any size.
        let is_point = matches!(
            kind,
            Kind::PointRead(_) | Kind::PointInsert(_) | Kind::PointWrite(_)
        );
        let sizes = match is_point && plan.subqueries.is_empty() && plan.programs.is_empty() {
            true => Vec::new(),
            false => plan.reads.iter().map(Tree::estimate).collect(),
        };
        Self {
            stores: stores(&plan, &trees),
            sizes,
            may_tear: matches!(kind, Kind::Write(_))
                || plan.triggers_may_fail()
                || may_tear(&plan.action),
            fires: Fires::of(&plan),
            plan: Arc::new(plan),
            kind,
            trees,
        }
    }

    /// Whether it uses databases beside the main one.
    #[inline]
    pub fn uses_others(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Whether the index entries that its transaction keeps back are nothing to it: it looks
    /// into no index where there are such, and has none made before it may be undone.
    #[inline]
    pub fn leaves(&self, deferred: &Deferred) -> bool {
        match &self.kind {
            Kind::PointRead(point) => {
                let index = point.unique_index();
                return index.is_none_or(|index| !deferred.defers(index));
            }
            // What functions of the program do must not be done twice.
            _ if self.plan.calls_user => return false,
            Kind::PointInsert(_) | Kind::PointWrite(_) => {}
            Kind::Write(_) if self.inserts_values() => {}
            _ => return false,
        }
        if !self.plan.programs.is_empty() {
            return false;
        }
        let foreign = self.foreign_keys();
        !deferred.is_being_made()
            && foreign.is_none_or(|keys| !deferred.any_kept(|index| keys.concerns(&index.tree)))
            && (!deferred.has_unique() || self.only_inserts())
    }

    /// How much of what an IMMEDIATE transaction builds on has to be acknowledged before it
    /// runs. Functions and collations of the program are told of rows meanwhile.
    pub fn base(&self) -> Base {
        let tells = self.plan.calls_user && !self.confirms_calls();
        match tells || !self.plan.pragmas.is_empty() {
            true => Base::Acknowledged,
            false => Base::Published,
        }
    }

    /// Whether functions or collations of the program may be told what is in the database.
    pub fn tells_functions(&self) -> bool {
        let is_new = matches!(self.kind, Kind::PointInsert(_));
        self.plan.calls_user && !(is_new && self.confirms_calls())
    }

    /// Whether functions are called for one row alone: for the values of a new one, before
    /// anything is looked at, or for one that is found, once that is confirmed.
    fn confirms_calls(&self) -> bool {
        let returns = match &self.plan.action {
            Action::Insert(insert) => insert.returning.is_some() || !insert.upserts.is_empty(),
            Action::Update(update) => update.returning.is_some(),
            Action::Delete(delete) => delete.returning.is_some(),
            _ => true,
        };
        matches!(self.kind, Kind::PointInsert(_) | Kind::PointWrite(_))
            && !returns
            && !self.plan.schema_calls_user
            && self.plan.subqueries.is_empty()
            && self.plan.programs.is_empty()
    }

    /// What foreign keys ask of it.
    #[inline]
    pub fn foreign_keys(&self) -> Option<&Arc<ForeignKeys>> {
        foreign_keys(&self.plan.action)
    }

    /// Whether it inserts rows that it reads nowhere.
    fn inserts_values(&self) -> bool {
        self.rows_of_values(0).is_some()
    }

    /// How many rows it inserts where so many values are bound, if it reads them nowhere.
    pub fn rows_of_values(&self, bound: usize) -> Option<usize> {
        match &self.plan.action {
            Action::Insert(insert) if self.plan.subqueries.is_empty() => match &insert.source.op {
                Op::Values(rows) => Some(rows.len()),
                Op::RepeatedRow { parameters, .. } => Some(bound / (*parameters).max(1)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it inserts rows that it reads nowhere and does nothing else, whatever is in
    /// the way: one that is left out then, or any number, of which all are.
    pub fn only_inserts(&self) -> bool {
        let Action::Insert(insert) = &self.plan.action else {
            return false;
        };
        let one = !self.may_tear && matches!(self.kind, Kind::PointInsert(_));
        let has_aim = match one {
            true => insert.conflict != Some(ConflictAction::Replace),
            false => self.inserts_values() && insert.target.only_aborts(insert.conflict),
        };
        has_aim && insert.upserts.is_empty()
    }

    /// Whether a plan for certain values of its parameters would be no better.
    pub fn suits_any_value(&self) -> bool {
        let is_point = matches!(
            self.kind,
            Kind::PointRead(_) | Kind::PointInsert(_) | Kind::PointWrite(_)
        );
        is_point || is_for_any_value(&self.plan)
    }

    /// Whether the trees that it reads have about as many rows as when it was made.
    #[inline]
    pub fn fits_sizes(&self) -> bool {
        let mut sizes = self.plan.reads.iter().zip(&self.sizes);
        sizes.all(|(tree, rows)| is_similar(tree.estimate(), *rows))
    }
}

fn foreign_keys(action: &Action) -> Option<&Arc<ForeignKeys>> {
    let target = match action {
        Action::Insert(insert) => &insert.target,
        Action::Update(update) => &update.target,
        Action::Delete(delete) => &delete.target,
        _ => return None,
    };
    target.foreign.as_ref()
}

/// Whether the action does more to a row than check it and write it, and may fail at that.
/// INSERT OR REPLACE may not: once it has deleted what is in the way, nothing is left that
/// could be violated. Nor may most of what is returned, nor an INSERT of a child, which is
/// taken out again where it has no parent.
fn may_tear(action: &Action) -> bool {
    let replaces = |target: &TableWriter, conflict| target.table.may_replace(conflict);
    let returning_fails = |returning: &Option<Vec<Expr>>| {
        let mut exprs = returning.iter().flatten();
        exprs.any(|expr| expr.props.fallible)
    };
    if let Some(keys) = foreign_keys(action).filter(|keys| keys.may_violate) {
        let has_upserts = matches!(action, Action::Insert(insert) if !insert.upserts.is_empty());
        if !keys.inserts_one || has_upserts {
            return true;
        }
    }
    match action {
        Action::Insert(insert) => {
            let or_replace = insert.conflict == Some(ConflictAction::Replace);
            let only_replaces = or_replace && insert.upserts.is_empty();
            returning_fails(&insert.returning)
                || !only_replaces && replaces(&insert.target, insert.conflict)
        }
        Action::Update(update) => {
            returning_fails(&update.returning) || replaces(&update.target, update.conflict)
        }
        Action::Delete(delete) => returning_fails(&delete.returning),
        _ => true,
    }
}
