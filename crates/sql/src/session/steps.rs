//! From one version of a schema to another: which names a change concerned.
//!
//! A plan is of the version of each schema that it was compiled with. Where that has changed
//! since it is compiled anew, unless it is known what changed, and that its text names none
//! of it. What a text does not name it can depend on only through views, triggers and foreign
//! keys: where there are such, or were in what changed, nothing is known.

use crate::schema::{RowChanges, SEQUENCE, Schema, SchemaRow};

/// Steps that are remembered, and names of each.
const STEPS: usize = 32;
const NAMES: usize = 16;

/// A change of a schema.
struct Step {
    from: u64,
    to: u64,
    /// The names of what changed, in lower case; None where that is not all that matters.
    names: Option<Vec<String>>,
}

/// The newest changes of a schema, whoever made them.
#[derive(Default)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    /// A statement has made this version of a schema by changing these rows.
    pub fn changed(&mut self, schema: &Schema, rows: &RowChanges, to: u64) {
        let names = names_of(schema, rows);
        let from = schema.version();
        self.add(Step { from, to, names });
    }

    /// A transaction has committed what it made.
    pub fn committed(&mut self, from: u64, to: u64) {
        let names = Some(Vec::new());
        self.add(Step { from, to, names });
    }

    fn add(&mut self, step: Step) {
        if self.0.len() == STEPS {
            self.0.remove(0);
        }
        self.0.push(step);
    }

    fn to(&self, version: u64) -> Option<&Step> {
        self.0.iter().rfind(|step| step.to == version)
    }

    /// The versions that led to one, with what made each of the one before.
    fn before(&self, version: u64) -> Vec<&Step> {
        let mut steps: Vec<&Step> = Vec::new();
        while let Some(step) = self.to(steps.last().map_or(version, |step| step.from))
            && steps.len() < STEPS
        {
            steps.push(step);
        }
        steps
    }

    /// Whether a text, in lower case, names nothing of what differs between two versions.
    pub fn leave_alone(&self, from: u64, to: u64, text: &str) -> bool {
        let (mut back, mut on) = (self.before(from), self.before(to));
        // What both have behind them is no difference.
        while let (Some(one), Some(other)) = (back.last(), on.last())
            && one.to == other.to
        {
            back.pop();
            on.pop();
        }
        let start = |steps: &[&Step], version| steps.last().map_or(version, |step| step.from);
        if start(&back, from) != start(&on, to) {
            return false;
        }
        let mut all = back.iter().chain(&on);
        all.all(|step| {
            let names = step.names.as_ref();
            names.is_some_and(|names| !names.iter().any(|name| text.contains(name.as_str())))
        })
    }
}

fn names_of(schema: &Schema, rows: &RowChanges) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for (rowid, row) in rows {
        let before = schema.row(*rowid);
        for row in before.into_iter().chain(row) {
            if !is_known_by_name(row) {
                return None;
            }
            for name in [&row.name, &row.table] {
                let name = name.to_ascii_lowercase();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    (names.len() <= NAMES).then_some(names)
}

/// Whether who depends on an object names it, as it is written here.
fn is_known_by_name(row: &SchemaRow) -> bool {
    let is = |kind: &str| row.kind.eq_ignore_ascii_case(kind);
    let is_plain = |name: &String| !name.is_empty() && !name.contains(['"', '`', ']', '\'']);
    (is("table") || is("index"))
        && !row.has_references()
        && !row.name.eq_ignore_ascii_case(SEQUENCE)
        && is_plain(&row.name)
        && is_plain(&row.table)
}
