//! Binding of joins: which rows they keep, their conditions, and the columns that USING
//! and NATURAL make one of.
//!
//! By such a column's plain name an inner or LEFT JOIN means the left one, a RIGHT JOIN
//! the right one, and a FULL JOIN the one that is not NULL ([`SharedColumn`]).

use std::ops::Range;
use std::sync::Arc;

use super::expr::{CompareOp, Expr, ExprKind};
use super::logical::{Block, Body, OuterJoin, OuterKind, Query, QueryColumn, Source, SourceKind};
use super::scalar::{compare, conjuncts};
use super::scope::{ColumnName, Found, ScopeColumns, ScopeTable};
use super::{Binder, Frame};
use crate::ast::{self, FromItem, JoinConstraint, Name};
use crate::error::{Error, Result};

/// An ON condition still to be bound.
#[derive(Debug)]
pub struct PendingOn {
    /// Where the sources of what it joins begin in the block, and where they end.
    first: usize,
    end: usize,
    condition: Arc<ast::Expr>,
}

/// A column by its table's place in the frame, and its place in that.
type Place = (usize, usize);

/// A column that USING or NATURAL made one of several, in a FROM with RIGHT or FULL JOIN.
#[derive(Debug)]
pub struct SharedColumn {
    name: String,
    /// The leftmost of its tables, in whose place it stands.
    first: usize,
    /// What its plain name means: the first of these that is not NULL.
    plain: Vec<Place>,
    /// What a later USING compares: the same.
    all: Vec<Place>,
    /// It stems from a join in parentheses.
    is_nested: bool,
}

impl SharedColumn {
    /// The same where so many tables come before.
    fn behind(&self, tables: usize) -> Self {
        let moved = |places: &[Place]| places.iter().map(|(t, c)| (t + tables, *c)).collect();
        Self {
            name: self.name.clone(),
            first: self.first + tables,
            plain: moved(&self.plain),
            all: moved(&self.all),
            is_nested: true,
        }
    }
}

impl Frame {
    /// The column of this name that was made one of several, the leftmost in this table.
    fn shared(&self, table: usize, name: &str) -> Option<&SharedColumn> {
        let is_it = |s: &&SharedColumn| s.first == table && s.name.eq_ignore_ascii_case(name);
        self.shared.iter().rev().find(is_it)
    }

    /// What the plain name of a table's column means, where it is not that column alone.
    pub fn plain(&self, table: usize, name: &str) -> Result<Option<Found>> {
        let shared = self.shared(table, name);
        shared.map(|s| self.first_of(&s.plain)).transpose()
    }

    /// The same where `*` stands for the column. Before a RIGHT or FULL JOIN it is looked
    /// up by its name.
    pub fn starred(&self, table: usize, name: &str) -> Result<Option<Found>> {
        let is_named = self.shared(table, name).is_some_and(|s| !s.is_nested);
        if table >= self.before_right || !is_named {
            return self.plain(table, name);
        }
        let column = ColumnName {
            schema: None,
            table: None,
            name: &Name::synthetic(name),
        };
        self.find(column, None)
    }

    /// The first of these columns that is not NULL. Affinity, collation and name are those
    /// of the first.
    fn first_of(&self, places: &[Place]) -> Result<Found> {
        let column = |(table, at): &Place| self.tables.get(*table).map(|t| t.column(*at));
        let mut columns = places.iter().filter_map(column);
        let first = columns
            .next()
            .ok_or_else(|| Error::misuse("a shared column of no table"))?;
        let mut args: Vec<Expr> = columns.map(|found| found.expr).collect();
        if args.is_empty() {
            return Ok(first);
        }
        args.insert(0, first.expr.clone());
        let mut expr = super::call::coalesce(args)?;
        expr.props.affinity = first.expr.props.affinity;
        expr.props.collation = first.expr.props.collation;
        let (_, output) = first.into_result();
        Ok(Found::named(expr, &output.name))
    }
}

impl Binder<'_> {
    /// Notes how the sources from `first` on are joined with those before them; `on` are
    /// the equalities of USING and NATURAL.
    pub(super) fn join_source(
        &mut self,
        item: &FromItem,
        first: usize,
        on: Vec<Expr>,
        block: &mut Block,
    ) {
        let kind = OuterKind::keeping(item.join.left, item.join.right);
        let end = block.sources.len();
        match (kind, block.sources.get_mut(first)) {
            (Some(kind), Some(source)) => {
                let before = match item.join.right {
                    true => std::mem::take(&mut block.filter),
                    false => Vec::new(),
                };
                source.outer = Some(OuterJoin { kind, on, before });
            }
            (_, source) => {
                block.filter.extend(on);
                if item.join.cross
                    && let Some(source) = source
                {
                    source.fixed = true;
                }
            }
        }
        if let Some(JoinConstraint::On(condition)) = &item.constraint {
            let condition = Arc::clone(condition);
            self.frame().pending.push(PendingOn {
                first,
                end,
                condition,
            });
        }
    }

    /// Binds the ON conditions of the frame, which SQLite looks at after WHERE, and the
    /// arguments of table-valued functions.
    /// Those of an outer join, and all where there is a RIGHT or FULL JOIN, may not read
    /// what stands behind them.
    pub(super) fn join_conditions(&mut self, block: &mut Block) -> Result<()> {
        let any_right = block.sources.iter().any(Source::keeps_right);
        for PendingOn {
            first,
            end,
            condition,
        } in std::mem::take(&mut self.frame().pending)
        {
            let on = conjuncts(self.expr(&condition)?);
            let is_outer = block.sources.get(first).is_some_and(|s| s.outer.is_some());
            if is_outer || any_right {
                let later: Vec<usize> = block.sources.iter().skip(end).map(|s| s.id).collect();
                if on.iter().any(|c| reads_source(c, &later)) {
                    let message = "ON clause references tables to its right";
                    return Err(Error::sql(message).with_offset(condition.offset));
                }
            }
            if is_outer {
                let joined = block.sources.get_mut(first).and_then(|s| s.outer.as_mut());
                joined
                    .into_iter()
                    .for_each(|outer| outer.on.extend_from_slice(&on));
                continue;
            }
            let mut behind = block.sources.iter_mut().skip(end);
            match behind
                .find(|s| s.keeps_right())
                .and_then(|s| s.outer.as_mut())
            {
                Some(right) => right.before.extend(on),
                None => block.filter.extend(on),
            }
        }
        self.call_arguments(block)
    }

    /// Equalities of USING and NATURAL between the new tables and those `before` them in
    /// the join.
    pub(super) fn join_columns(
        &mut self,
        item: &FromItem,
        before: Range<usize>,
        any_right: bool,
    ) -> Result<Vec<Expr>> {
        let names: Vec<Name> = match &item.constraint {
            Some(JoinConstraint::Using(names)) => names.clone(),
            _ if item.join.natural => self.common_columns(&before),
            _ => return Ok(Vec::new()),
        };
        let mut on = Vec::with_capacity(names.len());
        for name in names {
            on.push(self.join_column(item, &before, any_right, &name)?);
        }
        Ok(on)
    }

    fn join_column(
        &mut self,
        item: &FromItem,
        before: &Range<usize>,
        any_right: bool,
        name: &Name,
    ) -> Result<Expr> {
        let frame = self.frame();
        let place = |(at, table): (usize, &ScopeTable)| table.position(&name.text).map(|i| (at, i));
        let tables = || frame.tables.iter().enumerate();
        let left = tables().take(before.end).skip(before.start).find_map(place);
        let right = tables().skip(before.end).find_map(place);
        let (Some(left), Some(right)) = (left, right) else {
            let message = format!(
                "cannot join using column {} - column not present in both tables",
                name.text
            );
            return Err(Error::sql(message).with_offset(name.offset));
        };
        let meant = |of: Place| match frame.shared(of.0, &name.text) {
            Some(shared) => (shared.plain.clone(), shared.all.clone()),
            None => (vec![of], vec![of]),
        };
        let ((mut plain, mut all), (right, _)) = (meant(left), meant(right));
        if any_right {
            let source = frame.tables.get(left.0).map(|t| t.source);
            let is_other = |t: &ScopeTable| {
                let is_named = t.position(&name.text).is_some() && !t.yields(&name.text);
                is_named && Some(t.source) != source
            };
            let mut others = frame.tables.iter().take(before.end).skip(left.0 + 1);
            if others.any(is_other) {
                let message = format!("ambiguous reference to {} in USING()", name.text);
                return Err(Error::sql(message).with_offset(name.offset));
            }
        }
        if !item.join.natural {
            // NATURAL has no names in the text.
            self.note_merged(before, name);
        }
        let frame = self.frame();
        let compared = [&all, &right].map(|places| frame.first_of(places));
        let [one, other] = compared;
        let equal = compare(CompareOp::Equal, one?.expr, other?.expr);
        for table in frame.tables.iter_mut().skip(before.end) {
            if table.position(&name.text).is_some() {
                table.merged.push(name.text.clone());
            }
        }
        if any_right {
            all.extend_from_slice(&right);
            match (item.join.left, item.join.right) {
                (_, false) => {}
                (false, true) => plain = right,
                (true, true) => plain.extend(right),
            }
            frame.shared.push(SharedColumn {
                name: name.text.clone(),
                first: left.0,
                plain,
                all,
                is_nested: false,
            });
        }
        Ok(equal)
    }

    /// A name of USING, of the tables `before` the new ones and of these.
    fn note_merged(&mut self, before: &Range<usize>, name: &Name) {
        let (Some(uses), Some(frame)) = (&mut self.uses, self.frames.last()) else {
            return;
        };
        let (lefts, rights) = frame.tables.split_at(before.end.min(frame.tables.len()));
        let has_it = |t: &&ScopeTable| t.position(&name.text).is_some();
        let left = lefts.iter().skip(before.start).find(has_it);
        if let (Some(left), Some(right)) = (left, rights.iter().find(has_it)) {
            uses.merged(left, right, name);
        }
    }

    fn common_columns(&mut self, before: &Range<usize>) -> Vec<Name> {
        let tables = &self.frame().tables;
        let mut names: Vec<Name> = Vec::new();
        for table in tables.iter().skip(before.end) {
            for i in 0..table.width() {
                let name = table.column_name(i);
                let shared = tables
                    .iter()
                    .take(before.end)
                    .skip(before.start)
                    .any(|t| t.position(name).is_some());
                if shared && !names.iter().any(|n| n.text.eq_ignore_ascii_case(name)) {
                    names.push(Name::synthetic(name));
                }
            }
        }
        names
    }

    /// A parenthesized join beside an outer join: a subquery of all its columns,
    /// whose tables keep their names outside.
    pub(super) fn joined_source(
        &mut self,
        items: &[FromItem],
        alias: Option<&Name>,
        block: &mut Block,
    ) -> Result<()> {
        let (mut inner, frame) = self.in_frame(|this| {
            let mut inner = Block::default();
            this.from(items, &mut inner)?;
            this.join_conditions(&mut inner)?;
            Ok(inner)
        })?;
        let id = self.new_source()?;
        if alias.is_none() {
            let frame_of = self.frame();
            let base = frame_of.tables.len();
            let moved = frame.shared.iter().map(|shared| shared.behind(base));
            frame_of.shared.extend(moved);
        }
        let mut columns: Vec<QueryColumn> = Vec::new();
        for (at, table) in frame.tables.iter().enumerate() {
            let base = columns.len();
            for i in 0..table.width() {
                let name = table.column_name(i);
                // Under one name for all there is one column of those that were joined.
                let plain = match alias {
                    Some(_) if table.yields(name) => continue,
                    Some(_) => frame.plain(at, name)?,
                    None => None,
                };
                let found = plain.unwrap_or_else(|| table.column(i));
                let (expr, output) = found.into_result();
                columns.push(QueryColumn {
                    output,
                    props: expr.props,
                });
                inner.outputs.push(expr);
            }
            if alias.is_none() {
                let own = columns.get(base..).unwrap_or(&[]).to_vec();
                if let Some(uses) = &mut self.uses {
                    uses.joined(table, id, base);
                }
                self.frame().tables.push(ScopeTable {
                    name: table.name.clone(),
                    source: id,
                    columns: ScopeColumns::Query(own, base),
                    merged: table.merged.clone(),
                    database: table.database,
                });
            }
        }
        if let Some(alias) = alias {
            self.frame().tables.push(ScopeTable {
                name: alias.text.clone(),
                source: id,
                columns: ScopeColumns::Query(columns.clone(), 0),
                merged: Vec::new(),
                database: None,
            });
        }
        let query = Query {
            body: Body::Block(Box::new(inner)),
            columns,
            order_by: Vec::new(),
            limit: None,
        };
        let alias = alias.map_or_else(|| format!("join {id}"), |a| a.text.clone());
        let kind = SourceKind::Query(Arc::new(query));
        block.sources.push(Source::new(id, alias, kind));
        Ok(())
    }
}

/// Whether an expression reads a column of one of these sources.
pub(super) fn reads_source(expr: &Expr, sources: &[usize]) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Column(c) if sources.contains(&c.source));
    expr.kind
        .for_each_child(&mut |child| found = found || reads_source(child, sources));
    found
}
