//! Rows, entries of indexes and rows of sqlite_schema that no writer made, in trees that are
//! sound. They were met by making such up (`crates/sim/src/fuzz/forged`); each story here is
//! one that ended wrong.

mod support;

use fulgurite_sql::row::{RowReader, RowWriter};
use fulgurite_sql::session::backup::Backup;
use fulgurite_sql::session::{Engine, Session};
use fulgurite_sql::{Value, ValueRef};
use fulgurite_store::{Key, Options, Store, Tree, TreeId};
use std::time::Duration;
use support::{must, run};

struct Database {
    store: Store,
    engine: Engine,
    session: Session,
}

impl Database {
    fn new(sql: &str) -> Self {
        let store = Store::in_memory(Options::default()).unwrap();
        let engine = Engine::open(store.clone()).unwrap();
        let session = engine.session();
        must(&session, sql);
        Self {
            store,
            engine,
            session,
        }
    }

    fn root(&self, name: &str) -> i64 {
        let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'");
        must(&self.session, &sql)[0].parse().unwrap()
    }

    fn tree(&self, name: &str) -> Tree {
        let id = u32::try_from(self.root(name)).unwrap();
        self.store.tree(TreeId(id)).unwrap()
    }

    fn put(&self, tree: &Tree, key: Key<'_>, value: &[u8]) {
        let mut txn = self.store.txn();
        txn.begin_immediate().unwrap();
        txn.put(tree, key, value).unwrap();
        txn.commit().unwrap();
    }

    /// Gives a column of an object's row in sqlite_schema another value.
    fn forge(&self, name: &str, column: usize, value: impl Into<Value>) {
        let schema = self.store.family("sqlite_schema").unwrap().unwrap();
        let sql = format!("SELECT rowid FROM sqlite_schema WHERE name = '{name}'");
        let rowid: i64 = must(&self.session, &sql)[0].parse().unwrap();
        let mut row = Vec::new();
        let mut txn = self.store.txn();
        txn.begin_read().unwrap();
        assert!(txn.get_into(&schema, Key::Int(rowid), &mut row).unwrap());
        drop(txn);
        let reader = RowReader::new(&row).unwrap();
        let values = reader.values().map(|it| it.unwrap().to_value());
        let mut values: Vec<Value> = values.collect();
        values[column] = value.into();
        let mut forged = Vec::new();
        RowWriter::encode(&mut forged, values.iter().map(Value::as_ref)).unwrap();
        self.put(&schema, Key::Int(rowid), &forged);
    }

    fn count(&self, tree: &Tree) -> u64 {
        let mut txn = self.store.txn();
        txn.begin_read().unwrap();
        txn.count(tree).unwrap()
    }

    /// The only answer of a statement, which says that something is damaged.
    #[track_caller]
    fn is_damaged(&self, sql: &str, why: &str) {
        let answer = run(&self.session, sql);
        let expected = format!("error 11: database disk image is malformed: {why}");
        assert_eq!(answer, [expected], "{sql}");
    }

    #[track_caller]
    fn finds(&self, why: &str) {
        let found = run(&self.session, "PRAGMA integrity_check");
        let found_it = found.iter().any(|line| line.contains(why));
        assert!(found_it, "{why}: {found:?}");
    }
}

const TREE: usize = 3;
const TEXT: usize = 4;

/// Whoever wrote to one of two tables in one tree, or dropped it, changed the other.
#[test]
fn a_tree_belongs_to_one_object() {
    let database = Database::new(
        "CREATE TABLE a(x); CREATE TABLE b(x); CREATE TABLE c(x);
        INSERT INTO a VALUES (1), (2); INSERT INTO c VALUES (3)",
    );
    let of_a = database.tree("a");
    database.forge("b", TREE, database.root("a"));
    let why = |name: &str| {
        let id = of_a.id().0;
        format!(
            "malformed database schema ({name}) - tree {id}, its own, belongs to something else, too"
        )
    };
    for sql in [
        "SELECT * FROM b",
        "DELETE FROM b",
        "INSERT INTO b VALUES (1)",
    ] {
        database.is_damaged(sql, &why("b"));
    }
    database.is_damaged("SELECT * FROM a", &why("a"));
    database.finds(&why("a"));
    database.finds(&why("b"));
    assert_eq!(run(&database.session, "SELECT x FROM c"), ["3"]);
    // What is dropped leaves the tree to the other one, which can be used then.
    must(&database.session, "DROP TABLE b");
    assert_eq!(database.count(&of_a), 2);
    assert_eq!(run(&database.session, "SELECT x FROM a"), ["1", "2"]);
    assert_eq!(run(&database.session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// A table whose tree is that of the schema was dropped with it, and so all others were.
#[test]
fn the_schemas_tree_is_no_tables() {
    let database = Database::new("CREATE TABLE a(x); CREATE TABLE b(x); INSERT INTO b VALUES (3)");
    let schema = database.store.family("sqlite_schema").unwrap().unwrap();
    let numbers = database.store.family("fulgurite_numbers").unwrap().unwrap();
    for tree in [&schema, &numbers] {
        let id = i64::from(tree.id().0);
        database.forge("a", TREE, id);
        let why = format!(
            "malformed database schema (a) - tree {id}, its own, belongs to something else, too"
        );
        database.is_damaged("DELETE FROM a", &why);
        database.finds(&why);
    }
    must(&database.session, "DROP TABLE a");
    assert_eq!(run(&database.session, "SELECT x FROM b"), ["3"]);
    assert_eq!(run(&database.session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// The numbers of AUTOINCREMENT were written into another table.
#[test]
fn sequences_have_a_tree_of_their_own() {
    let database = Database::new(
        "CREATE TABLE q(id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE a(x);
        INSERT INTO a VALUES (1)",
    );
    let of_a = database.tree("a");
    database.forge("sqlite_sequence", TREE, database.root("a"));
    let id = of_a.id().0;
    let why = format!(
        "malformed database schema (sqlite_sequence) - tree {id}, its own, belongs to something else, too"
    );
    let made = "CREATE TABLE r(id INTEGER PRIMARY KEY AUTOINCREMENT)";
    for sql in [
        made,
        "INSERT INTO q DEFAULT VALUES",
        "ALTER TABLE a RENAME TO b",
    ] {
        let answer = run(&database.session, sql);
        assert!(answer[0].starts_with("error 11: "), "{sql}: {answer:?}");
    }
    database.finds(&why);
    assert_eq!(database.count(&of_a), 1);
}

/// What a stored text fails with was taken for an error of the statement, without a word of
/// whose text it is, and kept the check from looking at the rest.
#[test]
fn texts_that_are_damaged_are_told_of() {
    let database = Database::new(
        "CREATE TABLE a(x); CREATE INDEX i ON a(x); CREATE TABLE b(x CHECK (x > 0));
        CREATE VIEW v AS SELECT 1; CREATE TRIGGER t AFTER INSERT ON b BEGIN SELECT 1; END;
        CREATE TABLE c(x); INSERT INTO c VALUES (1)",
    );
    database.forge("a", TEXT, "CREATE TABLE a(x");
    database.forge("v", TEXT, "CREATE VIEW other AS SELECT 1");
    database.forge("t", TEXT, "SELECT 1");
    let cut = "malformed database schema (a) - incomplete input";
    database.is_damaged("SELECT * FROM a", cut);
    database.is_damaged(
        "SELECT * FROM v",
        "malformed database schema (v) - its text is that of other",
    );
    database.is_damaged(
        "INSERT INTO b VALUES (1)",
        "malformed database schema (t) - not a CREATE TRIGGER",
    );
    for why in [
        cut,
        "(v) - its text is that of other",
        "(t) - not a CREATE TRIGGER",
    ] {
        database.finds(why);
    }
    assert_eq!(run(&database.session, "SELECT x FROM c"), ["1"]);
    must(
        &database.session,
        "DROP TRIGGER t; DROP VIEW v; DROP TABLE a",
    );
    assert_eq!(run(&database.session, "PRAGMA integrity_check"), ["'ok'"]);
    database.forge("b", TEXT, "CREATE TABLE b(x CHECK (missing > 0))");
    database.finds("no such column: missing");
}

/// An index that cannot be used made its table unusable, and could not be dropped.
#[test]
fn an_index_that_cannot_be_used_can_be_dropped() {
    let database =
        Database::new("CREATE TABLE a(x, y); CREATE INDEX i ON a(x); INSERT INTO a VALUES (1, 2)");
    database.forge("i", TEXT, "CREATE INDEX i ON a(z)");
    database.is_damaged(
        "SELECT * FROM a",
        "malformed database schema (i) - no such column: z",
    );
    must(&database.session, "DROP INDEX i");
    assert_eq!(run(&database.session, "SELECT * FROM a"), ["1,2"]);
    assert_eq!(run(&database.session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// Of two tables of one name the second was used, and both were dropped for it.
#[test]
fn names_are_those_of_one_object() {
    let database = Database::new("CREATE TABLE a(x); CREATE TABLE b(x); INSERT INTO a VALUES (1)");
    database.forge("b", 1, "a");
    let why = "malformed database schema (a) - another object has this name, too";
    database.is_damaged("SELECT * FROM a", why);
    database.finds(why);
}

/// A table that was said to belong to another one went with it.
#[test]
fn a_table_goes_alone() {
    let database = Database::new("CREATE TABLE a(x); CREATE TABLE b(x); INSERT INTO b VALUES (1)");
    database.forge("b", 2, "a");
    must(&database.session, "DROP TABLE a");
    let left = run(&database.session, "SELECT name FROM sqlite_schema");
    assert_eq!(left, ["'b'"]);
}

/// The first entry of each value was looked for behind the one before, and found there for ever.
#[test]
fn a_key_behind_all_that_have_its_values_ends_a_scan() {
    let database = Database::new(
        "CREATE TABLE a(x, y); CREATE INDEX i ON a(x, y);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
        INSERT INTO a SELECT i % 3, i FROM n",
    );
    let index = database.tree("i");
    let mut key = Vec::new();
    fulgurite_sql::key::encode(&mut key, ValueRef::Integer(1), Default::default());
    key.extend([0xff, 0xff]);
    database.put(&index, Key::Bytes(&key), &[]);
    let plan = run(
        &database.session,
        "EXPLAIN QUERY PLAN SELECT DISTINCT x FROM a ORDER BY x",
    );
    assert!(plan.concat().contains("FIRST OF EACH"), "{plan:?}");
    let answer = run(&database.session, "SELECT DISTINCT x FROM a ORDER BY x");
    let last = answer.last().unwrap();
    assert!(
        last.contains("an entry of index i: a key that no value has"),
        "{answer:?}"
    );
    database.finds("wrong # of entries in index i");
}

/// Who reads a row that is damaged is told which; who checks the table, too, and goes on.
#[test]
fn rows_that_are_damaged_are_named() {
    let database = Database::new(
        "CREATE TABLE a(x, y TEXT); CREATE INDEX i ON a(y); INSERT INTO a VALUES (1, 'one'),
        (2, 'two'), (3, 'three'), (4, 'four')",
    );
    let tree = database.tree("a");
    database.put(&tree, Key::Int(2), &[2, 0x41, 0x83, b't']);
    database.put(&tree, Key::Int(3), &[2, 0x41, 0x81, b't', b'!']);
    database.put(&tree, Key::Int(4), &[3, 0x41, 0x81, 0x40, b't']);
    database.is_damaged(
        "SELECT max(y) FROM a NOT INDEXED",
        "a row of a: row shorter than its columns",
    );
    database.is_damaged(
        "SELECT y FROM a WHERE rowid = 2",
        "row 2 of a: row shorter than its columns",
    );
    database.is_damaged(
        "UPDATE a SET x = 2 WHERE rowid = 2",
        "row 2 of a: row shorter than its columns",
    );
    database.finds("row 2 of a: row shorter than its columns");
    database.finds("row 3 of a: row longer than its columns");
    database.finds("row 4 of a: more columns than the table has");
}

/// A value that its column does not store as it is compares one way by an index and another
/// way without; SQLite has words for it.
#[test]
fn values_that_their_column_would_change_are_found() {
    let database = Database::new(
        "CREATE TABLE a(x INTEGER, y TEXT); CREATE INDEX i ON a(x); INSERT INTO a VALUES (1, 'one')",
    );
    let mut row = Vec::new();
    RowWriter::encode(&mut row, [ValueRef::Text(b"12"), ValueRef::Integer(5)]).unwrap();
    database.put(&database.tree("a"), Key::Int(1), &row);
    must(&database.session, "REINDEX");
    database.finds("TEXT value in a.x");
    database.finds("NUMERIC value in a.y");
}

/// A backup over a database whose schema names trees that are not there, or twice, was
/// refused, although it makes all of that good.
#[test]
fn a_damaged_database_can_be_replaced() {
    let good = Database::new("CREATE TABLE a(x); INSERT INTO a VALUES (7)");
    let bad = Database::new("CREATE TABLE b(x); CREATE TABLE c(x); CREATE TABLE d(x)");
    bad.forge("b", TREE, 4000);
    bad.forge("c", TREE, bad.root("d"));
    let mut backup = Backup::begin(&good.engine, &bad.engine, Duration::ZERO).unwrap();
    assert!(backup.step(u64::MAX, || Ok(())).unwrap());
    assert_eq!(run(&bad.session, "SELECT x FROM a"), ["7"]);
    assert_eq!(run(&bad.session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// The parser compares each column with all before it, before anybody counted them.
#[test]
fn columns_are_counted_before_they_are_compared() {
    let database = Database::new("");
    let columns: Vec<String> = (0..200_000).map(|at| format!("c{at}")).collect();
    for explain in ["", "EXPLAIN ", "EXPLAIN QUERY PLAN "] {
        for temporary in ["", "TEMPORARY "] {
            let answer = run(
                &database.session,
                &format!(
                    "{explain}CREATE {temporary}TABLE wide({})",
                    columns.join(",")
                ),
            );
            assert_eq!(answer, ["error 1: too many columns on wide"]);
        }
    }
    let names: Vec<String> = (0..2_000).map(|at| format!("c{at}")).collect();
    let most = format!(
        "CREATE TABLE most({}, UNIQUE (c1), CHECK (c2 > 0))",
        names.join(",")
    );
    must(&database.session, &most);
}

/// No statement that made a table would have taken it. One that wrote ran it; the integrity
/// check, which looks at rows alone, ended with a misuse.
#[test]
fn a_definition_has_no_subquery() {
    let database = Database::new("CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    database.forge("t", TEXT, "CREATE TABLE t(x CHECK (x IN (SELECT 1)))");
    let why = "malformed database schema (t) - subqueries prohibited in its constraints, \
               columns and indexes";
    database.finds(why);
    database.is_damaged("INSERT INTO t VALUES (2)", why);
    assert_eq!(run(&database.session, "SELECT x FROM t"), ["1"]);
    must(&database.session, "DROP TABLE t");
}

/// Each view put its own around what stood in for the name of the one below: a deep one took
/// the stack of a thread, and of twice two columns memory without end. Texts alone do it, too.
#[test]
fn views_of_views_come_to_an_end() {
    let work = || {
        let database = Database::new("CREATE TABLE t(x INTEGER); INSERT INTO t VALUES (1)");
        let views = |name: &str, count: usize, column: &str| {
            must(&database.session, "BEGIN");
            let mut below = "t".to_owned();
            for at in 0..count {
                let view = format!("{name}{at}");
                let sql = format!("CREATE VIEW {view} AS SELECT {column} AS x FROM {below}");
                must(&database.session, &sql);
                below = view;
            }
            must(&database.session, "COMMIT");
            run(&database.session, &format!("SELECT x FROM {below}"))
        };
        assert_eq!(views("deep", 1_500, "x + 1"), ["1501"]);
        assert_eq!(views("wide", 40, "x + x"), [(1u64 << 40).to_string()]);
        let long = format!("x{}", " + 1".repeat(990));
        assert_eq!(views("long", 3, &long), ["2971"]);
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(work).unwrap().join().unwrap();
}
