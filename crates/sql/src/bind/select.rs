//! Binding of SELECT, VALUES and compounds.

use super::Binder;
use super::distinct;
use super::expr::{Expr, ExprKind, Props, Windowing};
use super::logical::{Aggregation, Block, Body, Query, QueryColumn};
use super::names::{Naming, name_columns, naming_expr};
use super::order::{ResultName, result_names};
use super::recursion::RecursiveTable;
use super::scalar::{conjuncts, push_conjuncts};
use super::scope::{Clause, ColumnName};
use crate::ast;
use crate::ast::{ResultColumn, SelectCore, SortTerm};
use crate::error::{Error, Result};
use crate::parse::MAX_COLUMNS;
use crate::plan::physical::{CompoundOp, LimitClause, Origin, OutputColumn};
use crate::value::Collation;

/// Terms of a compound, SQLite's limit.
pub(super) const MAX_COMPOUND: usize = 500;

/// What ORDER BY of a compound goes by.
#[derive(Default)]
pub(super) struct CompoundOrder<'q> {
    /// The names and texts of each SELECT's columns.
    pub names: Vec<Vec<ResultName>>,
    /// Terms of which ALTER TABLE still looks for the SELECT whose columns they are.
    pub looked_for: Vec<&'q SortTerm>,
}

/// A bound core and what its ORDER BY may name.
struct Core {
    body: Body,
    columns: Vec<QueryColumn>,
}

impl Binder<'_> {
    /// Binds a query with its common table expressions.
    pub(super) fn query(&mut self, select: &ast::Select) -> Result<Query> {
        self.named_query(select, Naming::Shown)
    }

    /// The same, its columns called as `naming` says.
    pub(super) fn named_query(&mut self, select: &ast::Select, naming: Naming) -> Result<Query> {
        let mut query = self.with_ctes(&select.ctes, |this| {
            crate::stack::grow(|| this.query_body(select, naming))
        })?;
        if naming != Naming::Shown {
            name_columns(&mut query.columns);
        }
        Ok(query)
    }

    fn query_body(&mut self, select: &ast::Select, naming: Naming) -> Result<Query> {
        let limit = self.limit(select)?;
        if select.compounds.is_empty() {
            let (mut query, _) = self.in_frame(|this| {
                this.frame().naming = naming;
                let core = this.core(&select.first)?;
                let Core { mut body, columns } = core;
                let order_by = match &mut body {
                    Body::Block(block) => {
                        let order_by = this.order_by(&select.order_by, block, &columns)?;
                        this.finish_block(block)?;
                        block.windows = std::mem::take(&mut this.frame().windows);
                        this.drop_unread(block, &order_by);
                        order_by
                    }
                    _ => this.order_by_result(&select.order_by, &columns, &[])?,
                };
                Ok(Query {
                    body,
                    columns,
                    order_by,
                    limit: None,
                })
            })?;
            query.limit = limit;
            return Ok(query);
        }
        let mut order = CompoundOrder::default();
        if self.uses.is_some() {
            order.looked_for.extend(&select.order_by);
        }
        let mut left = self.compound(select, select.compounds.len(), naming, &mut order)?;
        left.order_by = self.order_by_result(&select.order_by, &left.columns, &order.names)?;
        left.limit = limit;
        Ok(left)
    }

    /// The first SELECT of a query and so many more of its compound, without ORDER BY
    /// and LIMIT.
    pub(super) fn compound(
        &mut self,
        select: &ast::Select,
        more: usize,
        naming: Naming,
        order: &mut CompoundOrder<'_>,
    ) -> Result<Query> {
        if select.compounds.len() >= MAX_COMPOUND {
            return Err(Error::sql("too many terms in compound SELECT"));
        }
        let mut left = self.compound_term(&select.first, naming, None, order)?;
        for compound in select.compounds.iter().take(more) {
            let right = self.compound_term(&compound.core, Naming::Shown, None, order)?;
            left = combine(compound.op, left, right)?;
        }
        Ok(left)
    }

    /// One SELECT of a compound; `order` collects its columns' names and texts
    /// for ORDER BY. A recursive one may name its own table.
    pub(super) fn compound_term(
        &mut self,
        core: &SelectCore,
        naming: Naming,
        recursive: Option<Box<RecursiveTable>>,
        order: &mut CompoundOrder<'_>,
    ) -> Result<Query> {
        let (query, _) = self.in_frame(|this| {
            this.frame().naming = naming;
            this.frame().recursive = recursive;
            let mut bound = this.core(core)?;
            if let Body::Block(block) = &mut bound.body {
                if !order.looked_for.is_empty() {
                    this.uses_of_order(core, &block.outputs, &mut order.looked_for);
                }
                this.finish_block(block)?;
                block.windows = std::mem::take(&mut this.frame().windows);
                this.drop_unread(block, &[]);
            }
            Ok(Query {
                body: bound.body,
                columns: bound.columns,
                order_by: Vec::new(),
                limit: None,
            })
        })?;
        order.names.push(result_names(core, &query.columns));
        Ok(query)
    }

    pub(super) fn limit(&mut self, select: &ast::Select) -> Result<Option<LimitClause>> {
        if select.limit.is_none() {
            return Ok(None);
        }
        // No column is in scope here.
        let hidden: Vec<bool> = self.frames.iter().map(|f| f.hidden).collect();
        self.frames.iter_mut().for_each(|f| f.hidden = true);
        let bound = self.in_frame(|this| {
            Ok(LimitClause {
                limit: select.limit.as_ref().map(|e| this.expr(e)).transpose()?,
                offset: select.offset.as_ref().map(|e| this.expr(e)).transpose()?,
            })
        });
        for (frame, hidden) in self.frames.iter_mut().zip(hidden) {
            frame.hidden = hidden;
        }
        Ok(Some(bound?.0))
    }

    fn core(&mut self, core: &SelectCore) -> Result<Core> {
        match core {
            SelectCore::Values(rows) => {
                self.frame().clause = Clause::Results;
                self.values(rows)
            }
            SelectCore::Select {
                distinct,
                columns,
                from,
                filter,
                group_by,
                having,
                windows,
            } => {
                let mut block = Block::default();
                self.from(from, &mut block)?;
                if let Some(windows) = windows {
                    self.named_windows(windows)?;
                }
                self.frame().clause = Clause::Results;
                let columns = self.result_columns(columns, &mut block)?;
                let frame = self.frame();
                frame.is_aggregate = !frame.aggregates.is_empty() || !group_by.is_empty();
                frame.clause = Clause::Filter;
                if having.is_some() && !frame.is_aggregate {
                    return Err(Error::sql("HAVING clause on a non-aggregate query"));
                }
                if let Some(filter) = filter {
                    push_conjuncts(self.expr(filter)?, &mut block.filter);
                }
                self.join_conditions(&mut block)?;
                self.frame().clause = Clause::Grouping;
                let keys = self.group_by(group_by, &block)?;
                if let Some(having) = having {
                    if group_by.is_empty() && self.frame().aggregates.is_empty() {
                        return Err(Error::sql("HAVING clause on a non-aggregate query")
                            .with_offset(having.offset)
                            .with_hint("a condition for rows goes into WHERE"));
                    }
                    self.frame().clause = Clause::Having;
                    block.having = conjuncts(self.expr(having)?);
                }
                if !group_by.is_empty() {
                    block.aggregation = Some(Aggregation {
                        keys,
                        calls: Vec::new(),
                    });
                }
                if *distinct {
                    block.distinct = Some(block.outputs.iter().map(Expr::collation).collect());
                }
                Ok(Core {
                    body: Body::Block(Box::new(block)),
                    columns,
                })
            }
        }
    }

    /// Takes the aggregates found while the block's clauses were bound, and drops a DISTINCT
    /// that they leave nothing to do.
    fn finish_block(&mut self, block: &mut Block) -> Result<()> {
        let calls = std::mem::take(&mut self.frame().aggregates);
        match &mut block.aggregation {
            Some(aggregation) => aggregation.calls = calls,
            None if !calls.is_empty() => {
                block.aggregation = Some(Aggregation {
                    keys: Vec::new(),
                    calls,
                })
            }
            None => {}
        }
        if distinct::is_needless(block) {
            block.distinct = None;
        }
        Ok(())
    }

    /// The rows that an INSERT takes from its own VALUES. One row is no query of its own,
    /// and has no aggregates.
    pub(super) fn inserted_rows(&mut self, select: &ast::Select) -> Result<Query> {
        let SelectCore::Values(rows) = &select.first else {
            return self.query(select);
        };
        if rows.len() > 1 || !select.compounds.is_empty() {
            return self.query(select);
        }
        let (core, _) =
            self.with_ctes(&select.ctes, |this| this.in_frame(|this| this.values(rows)))?;
        Ok(Query {
            body: core.body,
            columns: core.columns,
            order_by: Vec::new(),
            limit: None,
        })
    }

    fn values(&mut self, rows: &[Vec<ast::Expr>]) -> Result<Core> {
        let mut bound = Vec::with_capacity(rows.len());
        let mut windows = Vec::new();
        for row in rows {
            bound.push(self.exprs(row)?);
            // Each row is a SELECT of its own; of one alone that is its frame's.
            if rows.len() > 1 && !self.frame().windows.is_empty() {
                let of_row = std::mem::take(&mut self.frame().windows);
                windows.push((bound.len() - 1, of_row));
            }
        }
        let frame = self.frame();
        let has_windows = !frame.windows.is_empty();
        frame.is_aggregate = !frame.aggregates.is_empty();
        if frame.is_aggregate && rows.len() > 1 {
            return Err(Error::sql(frame.misuse(0)));
        }
        let is_aggregate = frame.is_aggregate;
        let width = rows.first().map_or(0, Vec::len);
        let columns: Vec<QueryColumn> = (0..width)
            .map(|i| {
                let output = OutputColumn::named(format!("column{}", i + 1));
                let props = Props {
                    constant: false,
                    ..Props::CONSTANT
                };
                let props = match bound.as_slice() {
                    [only] => only.get(i).map_or(props, |e| Props {
                        constant: false,
                        ..e.props
                    }),
                    _ => props,
                };
                QueryColumn { output, props }
            })
            .collect();
        if !windows.is_empty() {
            let body = rows_with_windows(bound, windows, &columns)?;
            return Ok(Core { body, columns });
        }
        let body = match bound.pop() {
            Some(outputs) if is_aggregate || has_windows => Body::Block(Box::new(Block {
                outputs,
                ..Block::default()
            })),
            last => {
                bound.extend(last);
                Body::Values(bound)
            }
        };
        Ok(Core { body, columns })
    }

    fn result_columns(
        &mut self,
        columns: &[ResultColumn],
        block: &mut Block,
    ) -> Result<Vec<QueryColumn>> {
        let mut out = Vec::with_capacity(columns.len());
        let mut aliases = Vec::new();
        for column in columns {
            match column {
                ResultColumn::Star => {
                    if self.frame().tables.is_empty() {
                        return Err(Error::sql("no tables specified"));
                    }
                    self.star(None, block, &mut out)?;
                }
                ResultColumn::TableStar(name) => {
                    if !self.frame().has_table(&name.text) {
                        return Err(Error::sql(format!("no such table: {}", name.text))
                            .with_offset(name.offset));
                    }
                    if let (Some(uses), Some(frame)) = (&mut self.uses, self.frames.last()) {
                        uses.star(frame, name);
                    }
                    self.star(Some(&name.text), block, &mut out)?;
                }
                ResultColumn::Expr { expr, alias, text } => {
                    let (bound, output) = self.result_column(expr, alias.as_ref(), text)?;
                    if let Some(alias) = alias {
                        aliases.push((alias.text.clone(), bound.clone()));
                    }
                    out.push(QueryColumn {
                        output,
                        props: bound.props,
                    });
                    block.outputs.push(bound);
                }
            }
            if out.len() > MAX_COLUMNS {
                return Err(Error::sql("too many columns in result set"));
            }
        }
        // The other clauses know the columns by these names, the columns each other not.
        self.frame().aliases = aliases;
        Ok(out)
    }

    /// One result expression and how it is called.
    pub(super) fn result_column(
        &mut self,
        expr: &ast::Expr,
        alias: Option<&ast::Name>,
        text: &str,
    ) -> Result<(Expr, OutputColumn)> {
        let naming = self.frame().naming;
        let named = ColumnName::of(naming_expr(expr, naming));
        let found = match &named {
            Some(name) => self.resolve(*name)?,
            None => None,
        };
        let written = named.filter(|_| naming == Naming::Written);
        let name = alias.or(written.map(|written| written.name));
        if ColumnName::of(expr).is_some()
            && let Some(found) = found
        {
            let (column, mut output) = found.into_result();
            if let Some(name) = name {
                output.name.clone_from(&name.text);
            }
            return Ok((self.noted(column), output));
        }
        let bound = self.expr(expr)?;
        let name = match (name, found) {
            (Some(name), _) => name.text.clone(),
            (None, Some(found)) => found.into_result().1.name,
            (None, None) => text.to_owned(),
        };
        let output = OutputColumn {
            name,
            typed_by: self.subquery_type(&bound),
            is_stored: false,
        };
        Ok((bound, output))
    }

    /// The declared type of what a subquery of an expression gives.
    fn subquery_type(&self, expr: &Expr) -> Option<Origin> {
        let ExprKind::ScalarSubquery { subquery, column } = &expr.kind else {
            return None;
        };
        let columns = &self.subqueries.get(*subquery)?.query.columns;
        columns.get(*column)?.output.typed_by.clone()
    }

    fn star(
        &mut self,
        only: Option<&str>,
        block: &mut Block,
        out: &mut Vec<QueryColumn>,
    ) -> Result<()> {
        let catalog = self.catalog;
        let frame = self.frame();
        for (at, table) in frame.tables.iter().enumerate() {
            if only.is_some_and(|name| !table.name.eq_ignore_ascii_case(name)) {
                continue;
            }
            for i in 0..table.width() {
                let name = table.column_name(i);
                if only.is_none() && table.merged.iter().any(|m| m.eq_ignore_ascii_case(name)) {
                    continue;
                }
                frame.check_star(at, name, catalog)?;
                let plain = match only {
                    None => frame.starred(at, name)?,
                    Some(_) => None,
                };
                let found = plain.unwrap_or_else(|| table.column(i));
                let (expr, output) = found.into_result();
                out.push(QueryColumn {
                    output,
                    props: expr.props,
                });
                block.outputs.push(expr);
            }
        }
        Ok(())
    }
}

/// Rows of VALUES of which some, by number, have window functions: those are queries of
/// their own.
fn rows_with_windows(
    rows: Vec<Vec<Expr>>,
    windows: Vec<(usize, Vec<Windowing>)>,
    columns: &[QueryColumn],
) -> Result<Body> {
    let mut windows = windows.into_iter().peekable();
    let mut parts: Vec<Body> = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        if let Some((_, windows)) = windows.next_if(|(of, _)| *of == at) {
            let outputs = row;
            parts.push(Body::Block(Box::new(Block {
                outputs,
                windows,
                ..Block::default()
            })));
        } else if let Some(Body::Values(rows)) = parts.last_mut() {
            rows.push(row);
        } else {
            parts.push(Body::Values(vec![row]));
        }
    }
    if parts.len() > MAX_COMPOUND {
        return Err(Error::sql("too many terms in compound SELECT"));
    }
    let query = |body: Body| {
        Box::new(Query {
            body,
            columns: columns.to_vec(),
            order_by: Vec::new(),
            limit: None,
        })
    };
    let all = parts.into_iter().reduce(|left, right| Body::Compound {
        op: CompoundOp::UnionAll,
        left: query(left),
        right: query(right),
        collations: vec![Collation::Binary; columns.len()],
    });
    all.ok_or_else(|| Error::misuse("VALUES without rows"))
}

fn combine(op: CompoundOp, left: Query, right: Query) -> Result<Query> {
    let rows = |query: &Query| matches!(query.body, Body::Values(_));
    if left.columns.len() != right.columns.len() && rows(&left) && rows(&right) {
        return Err(Error::sql("all VALUES must have the same number of terms"));
    }
    let (columns, collations) = combined(op, &left.columns, &right.columns)?;
    let body = Body::Compound {
        op,
        left: Box::new(left),
        right: Box::new(right),
        collations,
    };
    Ok(Query {
        body,
        columns,
        order_by: Vec::new(),
        limit: None,
    })
}

/// The columns of a compound of two, and how its texts compare.
pub(super) fn combined(
    op: CompoundOp,
    left: &[QueryColumn],
    right: &[QueryColumn],
) -> Result<(Vec<QueryColumn>, Vec<Collation>)> {
    if left.len() != right.len() {
        let name = match op {
            CompoundOp::UnionAll => "UNION ALL",
            CompoundOp::Union => "UNION",
            CompoundOp::Intersect => "INTERSECT",
            CompoundOp::Except => "EXCEPT",
        };
        let message = format!(
            "SELECTs to the left and right of {name} do not have the same number of result columns"
        );
        return Err(Error::sql(message));
    }
    let mut collations = Vec::with_capacity(left.len());
    let columns = left.iter().zip(right).map(|(l, r)| {
        // The first that has one decides, a column as well as COLLATE.
        let collation = l.props.collation.or(r.props.collation);
        collations.push(collation.unwrap_or_default());
        // To an expression the last SELECT's affinity is that of all.
        let mut props = Props {
            affinity: r.props.affinity,
            collation,
            constant: false,
            ..l.props
        };
        props.explicit_collation = false;
        props.deterministic &= r.props.deterministic;
        props.fallible |= r.props.fallible;
        QueryColumn {
            output: l.output.clone(),
            props,
        }
    });
    let columns = columns.collect();
    Ok((columns, collations))
}
