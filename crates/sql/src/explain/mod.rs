//! EXPLAIN: a plan as a tree of readable lines.
//!
//! Both EXPLAIN and EXPLAIN QUERY PLAN give the plan that would run, in the
//! columns of SQLite's EXPLAIN QUERY PLAN: each line's id, its parent's id, and
//! what the operator does, indented for those who print the last column alone.

mod expr;
mod text;
mod window;

use crate::bind::expr::Expr;
use crate::plan::physical::{Action, Node, Op, SchemaChange, Subquery};
use crate::value::Value;

pub use expr::expr_text;

/// Names of the result columns.
pub const COLUMNS: [&str; 4] = ["id", "parent", "notused", "detail"];

/// The lines as constant rows.
pub fn rows(action: &Action, subqueries: &[Subquery]) -> Node {
    let lines = lines(action, subqueries);
    let integer = |n: usize| Expr::literal(Value::Integer(i64::try_from(n).unwrap_or(i64::MAX)));
    let row = |line: &Line| {
        let detail = format!("{}{}", "  ".repeat(line.depth), line.text);
        vec![
            integer(line.id),
            integer(line.parent),
            integer(0),
            Expr::literal(Value::Text(detail.into_bytes())),
        ]
    };
    let rows = lines.iter().map(row).collect();
    Node {
        op: Op::Values(rows),
        width: COLUMNS.len(),
        rows: lines.len() as f64,
    }
}

/// The plan as text, a line an operator.
pub fn plan_text(action: &Action, subqueries: &[Subquery]) -> String {
    let mut out = String::new();
    for line in lines(action, subqueries) {
        out.push_str(&"  ".repeat(line.depth));
        out.push_str(&line.text);
        out.push('\n');
    }
    out
}

struct Line {
    id: usize,
    parent: usize,
    depth: usize,
    text: String,
}

#[derive(Default)]
struct Printer {
    lines: Vec<Line>,
    path: Vec<usize>,
}

impl Printer {
    fn line(&mut self, text: String) {
        let id = self.lines.len() + 1;
        let parent = self.path.last().copied().unwrap_or(0);
        self.lines.push(Line {
            id,
            parent,
            depth: self.path.len(),
            text,
        });
    }

    fn above(&mut self, text: String, source: &Node) {
        self.line(text);
        self.path.push(self.lines.len());
        self.node(source);
        self.path.pop();
    }

    fn node(&mut self, node: &Node) {
        crate::stack::grow(|| {
            self.line(text::operator(&node.op));
            self.path.push(self.lines.len());
            for child in node.op.inputs() {
                self.node(child);
            }
            self.path.pop();
        });
    }
}

fn lines(action: &Action, subqueries: &[Subquery]) -> Vec<Line> {
    let mut printer = Printer::default();
    match action {
        Action::Query(node) => printer.node(node),
        Action::Insert(insert) => printer.above(
            format!("INSERT INTO {}", insert.target.table.name),
            &insert.source,
        ),
        Action::Update(update) => printer.above(
            format!("UPDATE {}", update.target.table.name),
            &update.source,
        ),
        Action::Delete(delete) => printer.above(
            format!("DELETE FROM {}", delete.target.table.name),
            &delete.source,
        ),
        Action::ViewChange(change) => {
            printer.above(format!("TRIGGERS OF {}", change.view), &change.source);
        }
        Action::Schema(change) => match &**change {
            SchemaChange::CreateTable {
                name, source: None, ..
            } => printer.line(format!("CREATE TABLE {name}")),
            SchemaChange::CreateTable {
                name,
                source: Some((source, _)),
                ..
            } => {
                printer.above(format!("CREATE TABLE {name}"), source);
            }
            SchemaChange::CreateIndex { name, source, .. } => {
                printer.above(format!("CREATE INDEX {name}"), source)
            }
            SchemaChange::Reindex(_) => printer.line("REINDEX".to_owned()),
            SchemaChange::DropTable(table, _) => printer.line(format!("DROP TABLE {}", table.name)),
            SchemaChange::DropIndex(index) => printer.line(format!("DROP INDEX {}", index.name)),
            SchemaChange::DropMalformed { kind, name, .. } => {
                printer.line(format!("DROP {} {name}", kind.to_ascii_uppercase()));
            }
            SchemaChange::CreateView { name, .. } => printer.line(format!("CREATE VIEW {name}")),
            SchemaChange::DropView(name) => printer.line(format!("DROP VIEW {name}")),
            SchemaChange::CreateTrigger { name, .. } => {
                printer.line(format!("CREATE TRIGGER {name}"));
            }
            SchemaChange::DropTrigger(name) => printer.line(format!("DROP TRIGGER {name}")),
            SchemaChange::Rewrite(..)
            | SchemaChange::RenameTable { .. }
            | SchemaChange::RenameColumn(_)
            | SchemaChange::DropColumn { .. } => printer.line("ALTER TABLE".to_owned()),
        },
        Action::Transaction(_) => printer.line("TRANSACTION".to_owned()),
        Action::Attachment(texts) => printer.line(
            match texts.len() {
                1 => "DETACH",
                _ => "ATTACH",
            }
            .to_owned(),
        ),
        Action::Pragma(pragma) => printer.line(format!("PRAGMA {}", pragma.name)),
        Action::Analyze(_) => printer.line("ANALYZE".to_owned()),
        Action::Vacuum(_, None) => printer.line("VACUUM".to_owned()),
        Action::Vacuum(_, Some(file)) => printer.above("VACUUM INTO".to_owned(), file),
        Action::Nothing => {}
    }
    let asked = subqueries.iter().enumerate().filter(|(_, it)| it.asked);
    for (i, subquery) in asked {
        let kind = if subquery.bindings.is_empty() {
            "SUBQUERY"
        } else {
            "CORRELATED SUBQUERY"
        };
        printer.above(format!("{kind} {i}"), &subquery.root);
    }
    printer.lines
}
