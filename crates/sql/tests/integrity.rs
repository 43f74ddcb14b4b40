//! `PRAGMA integrity_check` and `quick_check` over a database whose trees were changed
//! behind SQL's back.

mod support;

use fulgurite_sql::session::{Engine, Session};
use fulgurite_store::{Key, KeyKind, Options, Seek, Store, Tree, TreeId};
use support::{must, run};

/// Three indexes; `loose` has rows that the other one's constraints forbid.
const TABLES: &str =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT NOT NULL, b INTEGER CHECK (b > 0), c);
    CREATE INDEX ta ON t(a COLLATE NOCASE); CREATE UNIQUE INDEX tb ON t(b);
    CREATE INDEX tc ON t(c % 10) WHERE c IS NOT NULL;
    INSERT INTO t VALUES (1, 'x', 10, 100), (2, 'Y', 20, NULL), (3, 'z', 30, 303);
    CREATE TABLE loose(id INTEGER PRIMARY KEY, a, b, c);
    CREATE TABLE s(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO s DEFAULT VALUES;
    INSERT INTO loose VALUES (4, NULL, 40, NULL), (5, 'v', -1, NULL), (6, 'w', 10, NULL);";

struct Database {
    store: Store,
    session: Session,
}

impl Database {
    fn new() -> Self {
        let store = Store::in_memory(Options::default()).unwrap();
        let session = Engine::open(store.clone()).unwrap().session();
        must(&session, TABLES);
        Self { store, session }
    }

    fn tree(&self, name: &str) -> Tree {
        let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'");
        let id = must(&self.session, &sql)[0].parse().unwrap();
        self.store.tree(TreeId(id)).unwrap()
    }

    /// Gives the other table's row to the strict one, without a word to its indexes.
    fn sneak_in(&self, id: i64) {
        let (from, to) = (self.tree("loose"), self.tree("t"));
        let mut txn = self.store.txn();
        txn.begin_immediate().unwrap();
        let mut record = Vec::new();
        assert!(txn.get_into(&from, Key::Int(id), &mut record).unwrap());
        txn.put(&to, Key::Int(id), &record).unwrap();
        txn.commit().unwrap();
    }

    /// The keys and values of an index.
    fn entries(&self, index: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let tree = self.tree(index);
        assert_eq!(tree.kind(), KeyKind::Bytes);
        let mut txn = self.store.txn();
        txn.begin_read().unwrap();
        let mut cursor = txn.cursor(&tree).unwrap();
        let mut entries = Vec::new();
        let mut more = cursor.seek(Seek::First).unwrap();
        while more {
            let key = cursor.key_bytes().unwrap().to_vec();
            entries.push((key, cursor.value().unwrap().to_vec()));
            more = cursor.next().unwrap();
        }
        entries
    }

    fn put(&self, index: &str, key: &[u8], value: Option<&[u8]>) {
        let tree = self.tree(index);
        let mut txn = self.store.txn();
        txn.begin_immediate().unwrap();
        match value {
            Some(value) => txn.put(&tree, Key::Bytes(key), value).map(|_| ()).unwrap(),
            None => assert!(txn.delete(&tree, Key::Bytes(key)).unwrap()),
        }
        txn.commit().unwrap();
    }

    #[track_caller]
    fn finds(&self, sql: &str, findings: &[&str]) {
        let findings: Vec<String> = findings.iter().map(|line| format!("'{line}'")).collect();
        assert_eq!(run(&self.session, sql), findings, "{sql}");
    }
}

#[test]
fn what_is_sound_is_ok() {
    let database = Database::new();
    for sql in [
        "PRAGMA integrity_check",
        "PRAGMA quick_check",
        "PRAGMA integrity_check(1)",
        "PRAGMA integrity_check(t)",
        "PRAGMA integrity_check(-1)",
        "PRAGMA integrity_check = t",
        "PRAGMA quick_check(sqlite_sequence)",
    ] {
        database.finds(sql, &["ok"]);
    }
    // Of the transaction's own rows, too.
    must(
        &database.session,
        "BEGIN; INSERT INTO t VALUES (7, 'u', 70, 7); DELETE FROM t WHERE id = 1",
    );
    database.finds("PRAGMA integrity_check", &["ok"]);
    must(&database.session, "ROLLBACK");
}

#[test]
fn rows_that_break_constraints_are_found() {
    let database = Database::new();
    database.sneak_in(4);
    database.sneak_in(5);
    let rows = ["NULL value in t.a", "CHECK constraint failed in t"];
    database.finds("PRAGMA quick_check", &rows);
    let all = [
        "NULL value in t.a",
        "CHECK constraint failed in t",
        "row 4 missing from index tb",
        "row 5 missing from index tb",
        "row 4 missing from index ta",
        "row 5 missing from index ta",
    ];
    let sorted = |lines: &[&str]| {
        let mut lines: Vec<String> = lines.iter().map(|line| format!("'{line}'")).collect();
        lines.sort();
        lines
    };
    let mut found = run(&database.session, "PRAGMA integrity_check");
    found.sort();
    assert_eq!(found, sorted(&all));
    assert_eq!(run(&database.session, "PRAGMA integrity_check(3)").len(), 3);
    assert_eq!(run(&database.session, "PRAGMA integrity_check(t)").len(), 6);
    database.finds("PRAGMA integrity_check(loose)", &["ok"]);
}

#[test]
fn a_key_that_two_rows_have_is_found() {
    let database = Database::new();
    database.sneak_in(6);
    let findings = run(&database.session, "PRAGMA integrity_check");
    assert!(
        findings.contains(&"'non-unique entry in index tb'".to_owned()),
        "{findings:?}"
    );
    assert!(
        findings.contains(&"'row 6 missing from index ta'".to_owned()),
        "{findings:?}"
    );
}

/// For each index: an entry that is gone, one too many, and one with another value.
#[test]
fn entries_that_do_not_belong_are_found() {
    for index in ["ta", "tb", "tc"] {
        for at in 0..Database::new().entries(index).len() {
            let database = Database::new();
            let (key, value) = database.entries(index).swap_remove(at);
            database.put(index, &key, None);
            let findings = run(&database.session, "PRAGMA integrity_check");
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(
                findings[0].ends_with(&format!("missing from index {index}'")),
                "{findings:?}"
            );
            database.put(index, &key, Some(&value));
            database.finds("PRAGMA integrity_check", &["ok"]);

            let other = [key.as_slice(), b"!"].concat();
            database.put(index, &other, Some(&value));
            let surplus = format!("wrong # of entries in index {index}");
            database.finds("PRAGMA integrity_check", &[&surplus]);
            database.put(index, &other, None);

            database.put(index, &key, Some(&[value.as_slice(), b"!"].concat()));
            let findings = run(&database.session, "PRAGMA integrity_check");
            assert_eq!(findings.len(), 1, "{findings:?}");
            database.finds("PRAGMA quick_check", &["ok"]);
        }
    }
}

/// The row that a unique index named was looked for, not found, and looked for again,
/// for ever.
#[test]
fn an_entry_whose_row_is_gone_is_an_error_to_who_meets_it() {
    let database = Database::new();
    let table = database.tree("t");
    let mut txn = database.store.txn();
    txn.begin_immediate().unwrap();
    assert!(txn.delete(&table, Key::Int(2)).unwrap());
    txn.commit().unwrap();
    for sql in [
        "INSERT OR REPLACE INTO t VALUES (9, 'n', 20, 1)",
        "INSERT OR REPLACE INTO t VALUES (1, 'n', 20, 1)",
        "INSERT OR REPLACE INTO t SELECT id + 6, a, b + 10, c FROM t",
        "UPDATE OR REPLACE t SET b = 20 WHERE id = 3",
        "UPDATE OR REPLACE t SET b = b + 10",
        "INSERT INTO t VALUES (9, 'n', 20, 1) ON CONFLICT DO UPDATE SET c = 1",
    ] {
        for around in [["", ""], ["BEGIN; ", ""]] {
            let answer = run(&database.session, &around.join(sql));
            let error = answer.iter().find(|line| line.starts_with("error 11: "));
            assert!(error.is_some(), "{sql}: {answer:?}");
            if !database.session.is_autocommit() {
                must(&database.session, "COMMIT");
            }
            assert_eq!(
                must(&database.session, "SELECT * FROM t"),
                ["1,'x',10,100", "3,'z',30,303"],
                "{sql}"
            );
        }
    }
}

/// What an index has does not matter: it is made from the rows.
#[test]
fn reindex_makes_an_index_right() {
    for reindex in ["REINDEX ta", "REINDEX t", "REINDEX NOCASE", "REINDEX"] {
        let database = Database::new();
        let entries = database.entries("ta");
        database.put("ta", &entries[1].0, None);
        database.put("ta", b"of no row", Some(b""));
        database.finds(
            "PRAGMA integrity_check",
            &[
                "row 2 missing from index ta",
                "wrong # of entries in index ta",
            ],
        );
        must(&database.session, reindex);
        database.finds("PRAGMA integrity_check", &["ok"]);
        assert_eq!(database.entries("ta"), entries);
    }
    let database = Database::new();
    database.sneak_in(6);
    let session = &database.session;
    let broken = ["error 2067: UNIQUE constraint failed: t.b"];
    assert_eq!(run(session, "REINDEX tb"), broken);
    assert_eq!(run(session, "BEGIN; REINDEX t"), broken);
    must(session, "COMMIT; DELETE FROM t WHERE id = 1; REINDEX");
    database.finds("PRAGMA integrity_check", &["ok"]);
}
