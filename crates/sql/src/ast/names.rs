//! The names of a statement that the schema keeps.

use std::sync::Arc;

use super::{
    Assignment, ColumnConstraint, CreateTable, Expr, ExprKind, ForeignKey, FromItem, Indexed,
    InsertSource, JoinConstraint, Literal, Name, Over, QualifiedName, ResultColumn, Select,
    SelectCore, SelectTable, SortTerm, Statement, TableBody, TableConstraintKind, TriggerEvent,
    Window,
};

/// What is called with each name, or text that may stand for one, and its place.
type Visit<'a> = &'a mut dyn FnMut(&str, &mut usize);

/// Visits the names of a CREATE TABLE, INDEX, VIEW or TRIGGER, always in the same order. Those of
/// constraints, which a tree of it doesn't hold, are not among them.
pub fn for_each_name(statement: &mut Statement, f: Visit<'_>) {
    match statement {
        Statement::CreateTable(create) => table(create, f),
        Statement::CreateIndex(create) => {
            qualified(&mut create.name, f);
            name(&mut create.table, f);
            terms(&mut create.columns, f);
            create.filter.iter_mut().for_each(|e| expr(e, f));
        }
        Statement::CreateView(create) => {
            qualified(&mut create.name, f);
            create.columns.iter_mut().for_each(|n| name(n, f));
            select(&mut create.select, f);
        }
        Statement::CreateTrigger(create) => {
            qualified(&mut create.name, f);
            if let TriggerEvent::Update(columns) = &mut create.event {
                columns.iter_mut().flatten().for_each(|n| name(n, f));
            }
            qualified(&mut create.table, f);
            create.when.iter_mut().for_each(|e| expr(e, f));
            create.steps.iter_mut().for_each(|s| step(s, f));
        }
        _ => {}
    }
}

/// A statement of a trigger.
fn step(statement: &mut Statement, f: Visit<'_>) {
    match statement {
        Statement::Select(query) => select(query, f),
        Statement::Insert(insert) => {
            qualified(&mut insert.table, f);
            insert.alias.iter_mut().for_each(|n| name(n, f));
            let columns = insert.columns.iter_mut().flatten();
            columns.for_each(|n| name(n, f));
            if let InsertSource::Select(query) = &mut insert.source {
                select(query, f);
            }
            for upsert in &mut insert.upserts {
                terms(&mut upsert.target, f);
                upsert.condition.iter_mut().for_each(|e| expr(e, f));
                if let Some((sets, filter)) = &mut upsert.update {
                    assignments(sets, f);
                    filter.iter_mut().for_each(|e| expr(e, f));
                }
            }
        }
        Statement::Update(update) => {
            qualified(&mut update.table, f);
            update.alias.iter_mut().for_each(|n| name(n, f));
            assignments(&mut update.sets, f);
            from(&mut update.from, f);
            update.filter.iter_mut().for_each(|e| expr(e, f));
        }
        Statement::Delete(delete) => {
            qualified(&mut delete.table, f);
            delete.alias.iter_mut().for_each(|n| name(n, f));
            delete.filter.iter_mut().for_each(|e| expr(e, f));
        }
        _ => {}
    }
}

fn assignments(sets: &mut [Assignment], f: Visit<'_>) {
    for (names, value) in sets {
        names.iter_mut().for_each(|n| name(n, f));
        expr(value, f);
    }
}

fn name(name: &mut Name, f: Visit<'_>) {
    f(&name.text, &mut name.offset);
}

fn qualified(of: &mut QualifiedName, f: Visit<'_>) {
    of.schema.iter_mut().for_each(|n| name(n, f));
    name(&mut of.name, f);
}

fn terms(list: &mut [SortTerm], f: Visit<'_>) {
    list.iter_mut().for_each(|term| expr(&mut term.expr, f));
}

fn table(create: &mut CreateTable, f: Visit<'_>) {
    qualified(&mut create.name, f);
    let (columns, constraints) = match &mut create.body {
        TableBody::Select(query) => return select(query, f),
        TableBody::Columns {
            columns,
            constraints,
            ..
        } => (columns, constraints),
    };
    for column in columns {
        name(&mut column.name, f);
        for constraint in &mut column.constraints {
            match constraint {
                ColumnConstraint::Check { expr: e, .. }
                | ColumnConstraint::Generated { expr: e, .. }
                | ColumnConstraint::Default(e) => expr(e, f),
                ColumnConstraint::Collate(collation) => name(collation, f),
                ColumnConstraint::ForeignKey(key) => foreign_key(key, f),
                _ => {}
            }
        }
    }
    for constraint in constraints {
        match &mut constraint.kind {
            TableConstraintKind::PrimaryKey { columns, .. }
            | TableConstraintKind::Unique { columns, .. } => terms(columns, f),
            TableConstraintKind::Check(e, _) => expr(e, f),
            TableConstraintKind::ForeignKey(columns, key) => {
                columns.iter_mut().for_each(|n| name(n, f));
                foreign_key(key, f);
            }
        }
    }
}

fn foreign_key(key: &mut ForeignKey, f: Visit<'_>) {
    name(&mut key.parent, f);
    let columns = key.parent_columns.iter_mut().flatten();
    columns.for_each(|n| name(n, f));
}

fn select(query: &mut Select, f: Visit<'_>) {
    crate::stack::grow(|| {
        for cte in &mut query.ctes {
            let cte = Arc::make_mut(cte);
            name(&mut cte.name, f);
            cte.columns.iter_mut().for_each(|n| name(n, f));
            select(&mut cte.select, f);
        }
        core(&mut query.first, f);
        for compound in &mut query.compounds {
            core(&mut compound.core, f);
        }
        terms(&mut query.order_by, f);
        query.limit.iter_mut().for_each(|e| expr(e, f));
        query.offset.iter_mut().for_each(|e| expr(e, f));
    });
}

fn core(core: &mut SelectCore, f: Visit<'_>) {
    match core {
        SelectCore::Values(rows) => rows.iter_mut().flatten().for_each(|e| expr(e, f)),
        SelectCore::Select {
            columns,
            from: items,
            filter,
            group_by,
            having,
            windows,
            ..
        } => {
            for column in columns {
                match column {
                    ResultColumn::Expr { expr: e, alias, .. } => {
                        expr(e, f);
                        alias.iter_mut().for_each(|n| name(n, f));
                    }
                    ResultColumn::Star => {}
                    ResultColumn::TableStar(table) => name(table, f),
                }
            }
            from(items, f);
            filter.iter_mut().for_each(|e| expr(e, f));
            group_by.iter_mut().for_each(|e| expr(e, f));
            having.iter_mut().for_each(|e| expr(e, f));
            for defined in windows.iter_mut().flat_map(Arc::make_mut) {
                name(&mut defined.name, f);
                window(&mut defined.window, f);
            }
        }
    }
}

fn from(items: &mut [FromItem], f: Visit<'_>) {
    for item in items {
        source(&mut item.table, f);
        match &mut item.constraint {
            None => {}
            Some(JoinConstraint::On(e)) => expr(Arc::make_mut(e), f),
            Some(JoinConstraint::Using(names)) => names.iter_mut().for_each(|n| name(n, f)),
        }
    }
}

fn source(table: &mut SelectTable, f: Visit<'_>) {
    crate::stack::grow(|| match table {
        SelectTable::Table {
            name: of,
            alias,
            indexed,
        } => {
            qualified(of, f);
            alias.iter_mut().for_each(|n| name(n, f));
            if let Indexed::By(index) = indexed {
                name(index, f);
            }
        }
        SelectTable::Select(query, alias) => {
            select(query, f);
            alias.iter_mut().for_each(|n| name(n, f));
        }
        SelectTable::Joined(items, alias) => {
            from(items, f);
            alias.iter_mut().for_each(|n| name(n, f));
        }
        SelectTable::Function {
            name: of,
            args,
            alias,
        } => {
            qualified(of, f);
            args.iter_mut().for_each(|e| expr(e, f));
            alias.iter_mut().for_each(|n| name(n, f));
        }
    });
}

fn expr(e: &mut Expr, f: Visit<'_>) {
    crate::stack::grow(|| expr_inner(e, f));
}

/// An arm for each form, long only by their number.
fn expr_inner(e: &mut Expr, f: Visit<'_>) {
    let all = |list: &mut [Expr], f: Visit<'_>| list.iter_mut().for_each(|e| expr(e, f));
    match &mut e.kind {
        ExprKind::Literal(Literal::Text(text)) => f(text, &mut e.offset),
        ExprKind::Literal(_) | ExprKind::Parameter(_) => {}
        ExprKind::Column(column) => name(column, f),
        ExprKind::Qualified {
            schema,
            table,
            column,
        } => {
            schema.iter_mut().for_each(|n| name(n, f));
            name(table, f);
            name(column, f);
        }
        ExprKind::Negate(operand)
        | ExprKind::Plus(operand)
        | ExprKind::BitNot(operand)
        | ExprKind::Not(operand)
        | ExprKind::Cast(operand, _)
        | ExprKind::IsNull { expr: operand, .. } => expr(operand, f),
        ExprKind::Binary(_, left, right) | ExprKind::Compare(_, left, right) => {
            expr(left, f);
            expr(right, f);
        }
        ExprKind::And(list) | ExprKind::Or(list) | ExprKind::RowValue(list) => all(list, f),
        ExprKind::Between {
            expr: operand,
            low,
            high,
            ..
        } => [operand, low, high].into_iter().for_each(|e| expr(e, f)),
        ExprKind::InList {
            expr: operand,
            list,
            ..
        } => {
            expr(operand, f);
            all(list, f);
        }
        ExprKind::InSelect {
            expr: operand,
            select: query,
            ..
        } => {
            expr(operand, f);
            select(query, f);
        }
        ExprKind::Exists(query) | ExprKind::Subquery(query) => select(query, f),
        ExprKind::Case {
            base,
            whens,
            otherwise,
        } => {
            base.iter_mut().for_each(|e| expr(e, f));
            for when in whens {
                expr(&mut when.when, f);
                expr(&mut when.then, f);
            }
            otherwise.iter_mut().for_each(|e| expr(e, f));
        }
        ExprKind::Collate(operand, collation) => {
            expr(operand, f);
            name(collation, f);
        }
        ExprKind::Like {
            expr: operand,
            pattern,
            escape,
            ..
        } => {
            expr(operand, f);
            expr(pattern, f);
            escape.iter_mut().for_each(|e| expr(e, f));
        }
        ExprKind::Function(call) => {
            name(&mut call.name, f);
            call.args.iter_mut().for_each(|args| all(args, f));
            call.filter.iter_mut().for_each(|e| expr(e, f));
            terms(&mut call.order_by, f);
            match &mut call.over {
                None => {}
                Some(Over::Name(of)) => name(of, f),
                Some(Over::Window(over)) => window(over, f),
            }
        }
        ExprKind::Raise(_, message) => message.iter_mut().for_each(|e| expr(e, f)),
    }
}

fn window(window: &mut Window, f: Visit<'_>) {
    window.base.iter_mut().for_each(|n| name(n, f));
    window.partition_by.iter_mut().for_each(|e| expr(e, f));
    terms(&mut window.order_by, f);
    if let Some(frame) = &mut window.frame {
        for bound in [&mut frame.start, &mut frame.end] {
            bound.offset_mut().into_iter().for_each(|e| expr(e, f));
        }
    }
}
