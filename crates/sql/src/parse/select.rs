//! Lowering of queries.

use std::sync::Arc;

use sqlite3_parser::ast as raw;
use sqlite3_parser::dialect::TokenType as T;

use super::{Lowering, MAX_QUERY_DEPTH};
use crate::ast::{
    Compound, Cte, Expr, FromItem, Indexed, JoinConstraint, JoinSpec, Name, QualifiedName,
    ResultColumn, Select, SelectCore, SelectTable,
};
use crate::error::{Error, Result};
use crate::plan::physical::CompoundOp;

/// Tokens that end a list of result columns.
fn ends_columns(kind: T) -> bool {
    use T::*;
    matches!(
        kind,
        TK_WHERE
            | TK_GROUP
            | TK_HAVING
            | TK_ORDER
            | TK_LIMIT
            | TK_UNION
            | TK_EXCEPT
            | TK_INTERSECT
            | TK_WINDOW
    )
}

/// `SELECT * FROM table`, as `x IN table` means it.
pub(super) fn whole_table(name: QualifiedName) -> Select {
    whole(SelectTable::Table {
        name,
        alias: None,
        indexed: Indexed::Any,
    })
}

/// The same of any source.
pub(super) fn whole(table: SelectTable) -> Select {
    Select {
        ctes: Vec::new(),
        first: SelectCore::Select {
            distinct: false,
            columns: vec![ResultColumn::Star],
            from: vec![FromItem {
                join: JoinSpec::default(),
                table,
                constraint: None,
            }],
            filter: None,
            group_by: Vec::new(),
            having: None,
            windows: None,
        },
        compounds: Vec::new(),
        order_by: Vec::new(),
        limit: None,
        offset: None,
    }
}

/// A LIMIT or an OFFSET, which most queries have not.
type Bounding = Option<Box<Expr>>;

impl Lowering<'_> {
    pub(super) fn select(&mut self, select: &raw::Select<'_>) -> Result<Select> {
        if self.queries >= MAX_QUERY_DEPTH {
            return Err(Error::sql(format!(
                "queries are within each other too deep (maximum depth {MAX_QUERY_DEPTH})"
            )));
        }
        self.queries += 1;
        let select = crate::stack::grow(|| self.select_inner(select));
        self.queries -= 1;
        select
    }

    fn select_inner(&mut self, select: &raw::Select<'_>) -> Result<Select> {
        let ctes = self.ctes(select.with.as_ref())?;
        let first = self.core(&select.body.select)?;
        let mut compounds = Vec::new();
        for compound in select.body.compounds.iter().flatten() {
            let op = match compound.operator {
                raw::CompoundOperator::Union => CompoundOp::Union,
                raw::CompoundOperator::UnionAll => CompoundOp::UnionAll,
                raw::CompoundOperator::Except => CompoundOp::Except,
                raw::CompoundOperator::Intersect => CompoundOp::Intersect,
            };
            compounds.push(Compound {
                op,
                core: self.core(&compound.select)?,
            });
        }
        let last = compounds.last().map_or(&first, |compound| &compound.core);
        if matches!(last, SelectCore::Values(_)) {
            let after = [
                (select.order_by.is_some(), "ORDER"),
                (select.limit.is_some(), "LIMIT"),
            ];
            if let Some((_, near)) = after.into_iter().find(|(is_there, _)| *is_there) {
                return Err(Error::sql(format!("near \"{near}\": syntax error"))
                    .with_hint("SELECT * FROM (VALUES …) may have ORDER BY and LIMIT"));
            }
        }
        let order_by = self.sort_terms(select.order_by.unwrap_or(&[]))?;
        let (limit, offset) = self.limit(select.limit)?;
        Ok(Select {
            ctes,
            first,
            compounds,
            order_by,
            limit,
            offset,
        })
    }

    pub(super) fn ctes(&mut self, with: Option<&raw::With<'_>>) -> Result<Vec<Arc<Cte>>> {
        let Some(with) = with else {
            return Ok(Vec::new());
        };
        let mut ctes: Vec<Arc<Cte>> = Vec::with_capacity(with.ctes.len());
        for cte in with.ctes {
            let name = self.name(cte.tbl_name.0);
            if ctes
                .iter()
                .any(|c| c.name.text.eq_ignore_ascii_case(&name.text))
            {
                return Err(
                    Error::sql(format!("duplicate WITH table name: {}", name.text))
                        .with_offset(name.offset),
                );
            }
            let columns = cte
                .columns
                .unwrap_or(&[])
                .iter()
                .map(|c| self.name(c.col_name.0))
                .collect();
            ctes.push(Arc::new(Cte {
                name,
                columns,
                repeated: matches!(cte.materialized, raw::Materialized::No),
                select: Box::new(self.select(cte.select)?),
            }));
        }
        Ok(ctes)
    }

    /// `LIMIT a OFFSET b` or `LIMIT b, a`; the tree doesn't tell which.
    fn limit(&mut self, limit: Option<&raw::Limit<'_>>) -> Result<(Bounding, Bounding)> {
        let Some(limit) = limit else {
            return Ok((None, None));
        };
        let start = self
            .tokens
            .find(&[T::TK_LIMIT])
            .map_or(self.tokens.position(), |i| i + 1);
        self.tokens.move_to(start);
        let first = self.boxed(&limit.expr)?;
        let Some(second) = limit.offset.as_ref() else {
            return Ok((Some(first), None));
        };
        let between = self
            .tokens
            .find_outside(start, |k| matches!(k, T::TK_OFFSET | T::TK_COMMA));
        let comma = self.tokens.kind(between) == Some(T::TK_COMMA);
        let second = self.boxed(second)?;
        Ok(if comma {
            (Some(second), Some(first))
        } else {
            (Some(first), Some(second))
        })
    }

    fn core(&mut self, core: &raw::OneSelect<'_>) -> Result<SelectCore> {
        match core {
            raw::OneSelect::Values(rows) => {
                let width = rows.first().map_or(0, |r| r.len());
                let mut out = Vec::with_capacity(rows.len());
                for row in rows {
                    if row.len() != width {
                        return Err(Error::sql("all VALUES must have the same number of terms"));
                    }
                    out.push(self.exprs(row)?);
                }
                Ok(SelectCore::Values(out))
            }
            raw::OneSelect::Select {
                distinctness,
                columns,
                from,
                where_clause,
                group_by,
                having,
                window_clause,
            } => {
                let columns = self.result_columns(columns, T::TK_SELECT)?;
                let from = from.as_ref().map_or(Ok(Vec::new()), |f| self.from(f))?;
                let filter = where_clause.map(|e| self.expr(e)).transpose()?;
                let group_by = self.exprs(group_by.unwrap_or(&[]))?;
                let having = having.map(|e| self.boxed(e)).transpose()?;
                let windows = window_clause.map(|w| self.windows(w)).transpose()?;
                let distinct = *distinctness == Some(raw::Distinctness::Distinct);
                Ok(SelectCore::Select {
                    distinct,
                    columns,
                    from,
                    filter,
                    group_by,
                    having,
                    windows,
                })
            }
        }
    }

    /// Result columns with their texts, behind the next `opening` keyword.
    pub(super) fn result_columns(
        &mut self,
        columns: &[raw::ResultColumn<'_>],
        opening: T,
    ) -> Result<Vec<ResultColumn>> {
        let mut start = self
            .tokens
            .find(&[opening])
            .map_or(self.tokens.position(), |i| i + 1);
        if matches!(self.tokens.kind(start), Some(T::TK_DISTINCT | T::TK_ALL)) {
            start += 1;
        }
        let mut out = Vec::with_capacity(columns.len());
        for column in columns {
            self.tokens.move_to(start);
            let mut end = self.tokens.find_outside(start, |k| {
                k == T::TK_COMMA || k == T::TK_FROM || ends_columns(k)
            });
            // `a IS DISTINCT FROM b` holds no FROM clause.
            while self.tokens.kind(end) == Some(T::TK_FROM)
                && end > start
                && self.tokens.kind(end - 1) == Some(T::TK_DISTINCT)
            {
                end = self.tokens.find_outside(end + 1, |k| {
                    k == T::TK_COMMA || k == T::TK_FROM || ends_columns(k)
                });
            }
            out.push(match column {
                raw::ResultColumn::Star => ResultColumn::Star,
                raw::ResultColumn::TableStar(name) => ResultColumn::TableStar(self.name(name.0)),
                raw::ResultColumn::Expr(expr, alias) => {
                    let expr = self.expr(expr)?;
                    let alias = self.alias(alias.as_ref());
                    let text = match &alias {
                        None => self.tokens.span(start, end.saturating_sub(1).max(start)),
                        Some(_) => "",
                    };
                    ResultColumn::Expr {
                        expr,
                        alias,
                        text: text.to_owned(),
                    }
                }
            });
            self.tokens.move_to(end);
            start = end + 1;
        }
        Ok(out)
    }

    pub(super) fn from(&mut self, from: &raw::FromClause<'_>) -> Result<Vec<FromItem>> {
        let Some(first) = from.select else {
            return Ok(Vec::new());
        };
        let mut items = vec![FromItem {
            join: JoinSpec::default(),
            table: self.table(first)?,
            constraint: None,
        }];
        for joined in from.joins.iter().flatten() {
            let join = match joined.operator {
                raw::JoinOperator::Comma | raw::JoinOperator::TypedJoin(None) => {
                    JoinSpec::default()
                }
                raw::JoinOperator::TypedJoin(Some(kind)) => JoinSpec {
                    left: kind.contains(raw::JoinType::LEFT),
                    right: kind.contains(raw::JoinType::RIGHT),
                    natural: kind.contains(raw::JoinType::NATURAL),
                    cross: kind.contains(raw::JoinType::CROSS),
                },
            };
            let table = self.table(&joined.table)?;
            let constraint = match &joined.constraint {
                None => None,
                Some(raw::JoinConstraint::On(expr)) => {
                    Some(JoinConstraint::On(Arc::new(self.expr(expr)?)))
                }
                Some(raw::JoinConstraint::Using(names)) => {
                    Some(JoinConstraint::Using(self.names(names)))
                }
            };
            items.push(FromItem {
                join,
                table,
                constraint,
            });
        }
        Ok(items)
    }

    pub(super) fn indexed(&mut self, indexed: Option<&raw::Indexed<'_>>) -> Indexed {
        match indexed {
            None => Indexed::Any,
            Some(raw::Indexed::NotIndexed) => Indexed::Not,
            Some(raw::Indexed::IndexedBy(name)) => Indexed::By(self.name(name.0)),
        }
    }

    fn table(&mut self, table: &raw::SelectTable<'_>) -> Result<SelectTable> {
        self.deeper(|this| {
            Ok(match table {
                raw::SelectTable::Table(name, alias, indexed) => {
                    let name = this.qualified(name);
                    let alias = this.alias(alias.as_ref());
                    SelectTable::Table {
                        name,
                        alias,
                        indexed: this.indexed(indexed.as_ref()),
                    }
                }
                raw::SelectTable::TableCall(name, args, alias) => {
                    let name = this.qualified(name);
                    SelectTable::Function {
                        name,
                        args: this.exprs(args.unwrap_or(&[]))?,
                        alias: this.alias(alias.as_ref()),
                    }
                }
                raw::SelectTable::Select(select, alias) => {
                    let select = Box::new(this.select(select)?);
                    SelectTable::Select(select, this.alias(alias.as_ref()))
                }
                raw::SelectTable::Sub(from, alias) => {
                    let items = this.from(from)?;
                    SelectTable::Joined(items, this.alias(alias.as_ref()))
                }
            })
        })
    }

    fn alias(&mut self, alias: Option<&raw::As<'_>>) -> Option<Name> {
        match alias? {
            raw::As::As(name) | raw::As::Elided(name) => Some(self.name(name.0)),
        }
    }

    pub(super) fn qualified(&mut self, name: &raw::QualifiedName<'_>) -> QualifiedName {
        let schema = name.db_name.as_ref().map(|n| self.name(n.0));
        self.databases.extend(schema.clone());
        QualifiedName {
            schema,
            name: self.name(name.name.0),
        }
    }
}
