//! The columns of a query as a query has them that it is a source of.

use super::expr::{BinaryOp, Expr, ExprKind, Props};
use super::logical::{Body, Query, QueryColumn};
use crate::value::{Affinity, Value};

impl Query {
    /// Its columns as a query has them that it is a source of: those of a compound have
    /// the collations of its first SELECT, where its own comparisons and its order take
    /// the first that any brings, the declared types of the last one, and the affinities
    /// that fit all.
    pub fn columns_as_source(&self) -> Vec<QueryColumn> {
        let mut columns = self.columns.clone();
        for (at, column) in columns.iter_mut().enumerate() {
            column.props.affinity = self.affinity(at);
        }
        let (mut first, last) = match &self.body {
            Body::Compound { left, right, .. } => (&**left, &**right),
            Body::Recursion(recursion) => match recursion.members.last() {
                Some(last) => (&recursion.initial, last),
                None => return columns,
            },
            Body::Block(_) | Body::Values(_) => return columns,
        };
        while let Body::Compound { left, .. } = &first.body {
            first = left;
        }
        let outer = first.columns.iter().zip(&last.columns);
        for (column, (first, last)) in columns.iter_mut().zip(outer) {
            column.props.collation = first.props.collation;
            column.output.typed_by.clone_from(&last.output.typed_by);
            column.output.is_stored = last.output.is_stored;
        }
        columns
    }

    /// What is known of its columns where an expression calls it: of a compound the last
    /// SELECT decides, of VALUES the last row.
    pub fn operand_columns(&self) -> Vec<Props> {
        let mut last = self;
        while let Body::Compound { right, .. } = &last.body {
            last = right;
        }
        match &last.body {
            Body::Values(rows) => rows.last().map_or_else(Vec::new, |row| {
                let props = row.iter().map(|e| e.props);
                props.collect()
            }),
            _ => last.columns.iter().map(|c| c.props).collect(),
        }
    }

    /// Lets its columns go where only its rows count, so that nothing is read or computed for
    /// their sake, as in SQLite.
    pub fn show_nothing(&mut self) {
        if let Body::Block(block) = &mut self.body
            && block.distinct.is_none()
        {
            block.outputs = vec![Expr::literal(Value::Integer(1))];
            self.columns.truncate(1);
        }
    }

    /// The affinity of a column to a query that this one is a source of.
    pub fn affinity(&self, at: usize) -> Option<Affinity> {
        let several = match &self.body {
            Body::Block(_) => false,
            Body::Values(rows) => rows.len() > 1,
            Body::Compound { .. } => true,
            Body::Recursion(recursion) => return *recursion.affinities.get(at)?,
        };
        match several {
            true => affinity_of(&terms(self, at), None),
            false => self.columns.get(at)?.props.affinity,
        }
    }
}

/// The affinities of the columns of a recursive common table expression, which its members
/// read as those of `source`. They are settled one after the other: to the expressions of
/// one, those behind it have none yet.
pub fn recursive_affinities(
    initial: &Query,
    members: &[Query],
    source: usize,
) -> Vec<Option<Affinity>> {
    let mut known = Vec::with_capacity(initial.columns.len());
    for at in 0..initial.columns.len() {
        let mut all = terms(initial, at);
        members
            .iter()
            .for_each(|member| all.extend(terms(member, at)));
        let affinity = affinity_of(&all, Some((source, &known)));
        known.push(affinity);
    }
    known
}

/// The kinds of values an expression may have, as far as they count here.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    numbers: bool,
    texts: bool,
}

impl Kinds {
    const ANY: Kinds = Kinds {
        numbers: true,
        texts: true,
    };
    const NUMBERS: Kinds = Kinds {
        numbers: true,
        texts: false,
    };
    const TEXTS: Kinds = Kinds {
        numbers: false,
        texts: true,
    };

    /// Those of a column.
    fn of(affinity: Option<Affinity>) -> Kinds {
        match affinity {
            None | Some(Affinity::Blob) => Kinds::ANY,
            Some(Affinity::Text) => Kinds::TEXTS,
            Some(Affinity::Numeric | Affinity::Integer | Affinity::Real) => Kinds::NUMBERS,
        }
    }

    fn or(self, other: Kinds) -> Kinds {
        Kinds {
            numbers: self.numbers || other.numbers,
            texts: self.texts || other.texts,
        }
    }
}

/// The source that a recursion's members read their own table as, and the affinities of its
/// first columns.
type Recursive<'a> = Option<(usize, &'a [Option<Affinity>])>;

/// The column of its own table that an expression of a recursion's member is.
fn recursive_column(expr: &Expr, recursive: Recursive<'_>) -> Option<usize> {
    match &expr.kind {
        ExprKind::Column(column) if column.source == recursive?.0 => Some(column.column),
        _ => None,
    }
}

/// The affinity of a column of a compound: that of the first SELECT that has one, unless
/// another one may bring what it does not fit.
fn affinity_of(terms: &[&Expr], recursive: Recursive<'_>) -> Option<Affinity> {
    let brought = |e: &Expr| match recursive_column(e, recursive) {
        Some(column) => recursive?.1.get(column).copied().flatten(),
        None => e.props.affinity,
    };
    let own = terms.iter().position(|e| brought(e).is_some())?;
    let affinity = brought(terms.get(own)?)?;
    let others = terms.iter().enumerate().filter(|(i, _)| *i != own);
    let kinds = others.fold(Kinds::default(), |kinds, (_, e)| {
        let is_this = recursive_column(e, recursive) == recursive.map(|(_, known)| known.len());
        kinds.or(match recursive_column(e, recursive) {
            Some(_) if is_this => Kinds::of(Some(affinity)),
            Some(_) => Kinds::of(brought(e)),
            None => kinds_of(e),
        })
    });
    let fits = match affinity {
        Affinity::Blob => true,
        Affinity::Text => !kinds.numbers,
        Affinity::Numeric | Affinity::Integer | Affinity::Real => !kinds.texts,
    };
    let is_cast = matches!(terms.first()?.kind, ExprKind::Cast(..));
    Some(match affinity {
        _ if !fits => Affinity::Blob,
        Affinity::Integer | Affinity::Real if is_cast && terms.len() > 1 => Affinity::Numeric,
        affinity => affinity,
    })
}

/// What the SELECTs of a query, and the rows of VALUES, have at one place.
fn terms(query: &Query, at: usize) -> Vec<&Expr> {
    let mut selects = Vec::new();
    let mut body = &query.body;
    while let Body::Compound { left, right, .. } = body {
        selects.push(&right.body);
        body = &left.body;
    }
    selects.push(body);
    let mut terms = Vec::new();
    for select in selects.into_iter().rev() {
        match select {
            Body::Block(block) => terms.extend(block.outputs.get(at)),
            Body::Values(rows) => terms.extend(rows.iter().filter_map(|row| row.get(at))),
            Body::Compound { .. } | Body::Recursion(_) => {}
        }
    }
    terms
}

fn kinds_of(expr: &Expr) -> Kinds {
    match &expr.kind {
        ExprKind::Literal(Value::Integer(_) | Value::Real(_)) => Kinds::NUMBERS,
        ExprKind::Literal(Value::Text(_)) => Kinds::TEXTS,
        ExprKind::Literal(Value::Null | Value::Blob(_)) => Kinds::default(),
        ExprKind::Binary(BinaryOp::Concat, ..) => Kinds::TEXTS,
        ExprKind::Column(_)
        | ExprKind::Input(_)
        | ExprKind::Register(_)
        | ExprKind::Cast(..)
        | ExprKind::ScalarSubquery { .. } => Kinds::of(expr.props.affinity),
        ExprKind::Function { .. }
        | ExprKind::UserFunction { .. }
        | ExprKind::RefusedFunction { .. }
        | ExprKind::Aggregate(_)
        | ExprKind::Window(..)
        | ExprKind::Parameter(_) => Kinds::ANY,
        ExprKind::Case {
            arms, otherwise, ..
        } => {
            let results = arms.iter().map(|arm| &arm.then).chain(otherwise.as_deref());
            results.fold(Kinds::default(), |kinds, e| {
                kinds.or(crate::stack::grow(|| kinds_of(e)))
            })
        }
        ExprKind::WithRow { body, .. } => crate::stack::grow(|| kinds_of(body)),
        _ => Kinds::NUMBERS,
    }
}
