//! The isolation scenarios of `docs/isolation.md`, after Martin Kleppmann's
//! Hermitage: on SQL, on SQL with an index on the column that predicates look
//! at, and on the key-value interface, at both levels. Every forbidden outcome
//! must be impossible under `serializable`; under `snapshot` exactly those that
//! the table allows come about.

mod key_value;
mod scenarios;
mod sql;

use fulgurite_store::Isolation;

/// Ids with their values, by id.
type Rows = Vec<(i64, i64)>;

/// Up to three sessions on the table `test` of (1, 10) and (2, 20). A session
/// that lost does nothing any more, and its commit says so.
trait Sessions {
    fn begin(&mut self, session: usize);
    fn all(&mut self, session: usize) -> Rows;
    fn read(&mut self, session: usize, id: i64) -> Option<i64>;
    /// Rows whose value is a multiple of `of`.
    fn multiples(&mut self, session: usize, of: i64) -> Rows;
    /// Rows of this value.
    fn holding(&mut self, session: usize, value: i64) -> Rows;
    fn insert(&mut self, session: usize, id: i64, value: i64);
    fn write(&mut self, session: usize, id: i64, value: i64);
    /// Adds to the values of all rows.
    fn add_to_all(&mut self, session: usize, by: i64);
    fn delete_holding(&mut self, session: usize, value: i64);
    /// Whether it committed; if not, it lost with the retryable conflict.
    fn commit(&mut self, session: usize) -> bool;
    fn rollback(&mut self, session: usize);
}

fn sessions(kind: &str, isolation: Isolation) -> Box<dyn Sessions> {
    match kind {
        "SQL" => Box::new(sql::Sql::new(isolation, false)),
        "SQL with an index" => Box::new(sql::Sql::new(isolation, true)),
        _ => Box::new(key_value::KeyValue::new(isolation)),
    }
}

const KINDS: [&str; 3] = ["SQL", "SQL with an index", "key-value"];

#[test]
fn serializable_prevents_everything() {
    for kind in KINDS {
        for scenario in scenarios::ALL {
            let happened = scenario.run(sessions(kind, Isolation::Serializable).as_mut());
            assert!(!happened, "{} happened on {kind}", scenario.name);
        }
    }
}

#[test]
fn snapshot_prevents_all_but_what_the_table_says() {
    for kind in KINDS {
        for scenario in scenarios::ALL {
            let happened = scenario.run(sessions(kind, Isolation::Snapshot).as_mut());
            assert_eq!(
                happened, scenario.under_snapshot,
                "{} on {kind}",
                scenario.name
            );
        }
    }
}

/// The table of the book lists these scenarios, with what these tests find.
#[test]
fn the_book_says_the_same() {
    let book = include_str!("../../../../docs/isolation.md");
    for scenario in scenarios::ALL {
        let row = book
            .lines()
            .find(|line| line.starts_with(&format!("| {} ", scenario.name)))
            .unwrap_or_else(|| panic!("{} is not in the table", scenario.name));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [.., serializable, snapshot, _] = cells.as_slice() else {
            panic!("{row} is no row of the table");
        };
        assert_eq!(*serializable, "prevented", "{row}");
        let expected = if scenario.under_snapshot {
            "happens"
        } else {
            "prevented"
        };
        assert_eq!(*snapshot, expected, "{row}");
    }
}
