//! ALTER TABLE of constraints beside bundled SQLite: the texts, what is checked in rows that
//! are there, and what holds afterwards.

mod support;

use support::same;

const SCHEMA: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema";

/// Runs each statement on a schema of its own, in both, and compares the schema behind it.
fn each(schema: &str, statements: &[&str]) {
    for statement in statements {
        same(&format!("{schema}; {statement}; {SCHEMA}"));
    }
}

#[test]
fn a_check_is_added_and_holds() {
    same(&format!(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (NULL, 3);
         ALTER TABLE t ADD CHECK (a > 0); INSERT INTO t VALUES (0, 1); INSERT INTO t VALUES (2, 1);
         ALTER TABLE t ADD CONSTRAINT small CHECK (a + b < 100); UPDATE t SET b = 99;
         UPDATE t SET b = 5; INSERT OR IGNORE INTO t VALUES (0, 0); SELECT * FROM t; {SCHEMA};
         BEGIN; ALTER TABLE t ADD CHECK (b <> 7); INSERT INTO t VALUES (1, 7); ROLLBACK;
         INSERT INTO t VALUES (1, 7); {SCHEMA}"
    ));
    each(
        "CREATE TABLE t(a, b /* the last */ ); INSERT INTO t VALUES (0, 1)",
        &[
            "ALTER TABLE t ADD CHECK (a = 0)",
            "ALTER TABLE main.t ADD CHECK (a = 0)",
            "ALTER TABLE t ADD CHECK (a > 0)",
            "ALTER TABLE t ADD CHECK (a + NULL)",
            "ALTER TABLE t ADD CONSTRAINT \"c d\" CHECK(t.a=0)ON CONFLICT IGNORE /* x */ ",
            "ALTER TABLE t ADD CONSTRAINT 'c' CHECK (a /* x */ = -- y\n 0) -- z",
            "ALTER TABLE t ADD CONSTRAINT [check] CHECK (\"check\" = 0)",
            "ALTER TABLE t ADD CHECK (rowid > 0 AND main.t.b)",
            "ALTER TABLE t ADD CHECK (a = \"x\")",
            "ALTER TABLE t ADD CHECK (c > 0)",
            "ALTER TABLE t ADD CHECK (u.a > 0)",
            "ALTER TABLE t ADD CHECK ((SELECT 1))",
            "ALTER TABLE t ADD CHECK (a IN (SELECT 1))",
            "ALTER TABLE t ADD CHECK (count(*))",
            "ALTER TABLE t ADD CHECK (nope(a))",
            "ALTER TABLE t ADD CHECK ((1, 2))",
            "ALTER TABLE t ADD CHECK (a > ?)",
        ],
    );
    each(
        "CREATE TABLE t(a, b CONSTRAINT f CHECK (b), CONSTRAINT \"g h\" UNIQUE (a))",
        &[
            "ALTER TABLE t ADD CONSTRAINT F CHECK (a)",
            "ALTER TABLE t ADD CONSTRAINT [G H] CHECK (a)",
            "ALTER TABLE t ADD CONSTRAINT f CHECK (nope)",
            "ALTER TABLE t ADD CONSTRAINT fg CHECK (a)",
        ],
    );
}

#[test]
fn forms_that_there_are_not() {
    each(
        "CREATE TABLE t(a, b)",
        &[
            "ALTER TABLE t ADD CHECK ()",
            "ALTER TABLE t ADD CHECK a",
            "ALTER TABLE t ADD CHECK (SELECT 1)",
            "ALTER TABLE t ADD CHECK (1, 2)",
            "ALTER TABLE t ADD CHECK (a), b",
            "ALTER TABLE t ADD CHECK (a) CHECK (b)",
            "ALTER TABLE t ADD CHECK (a) ON CONFLICT FOO",
            "ALTER TABLE t ADD CONSTRAINT CHECK (a)",
            "ALTER TABLE t ADD CONSTRAINT x UNIQUE (a)",
            "ALTER TABLE t ADD UNIQUE (a)",
            "ALTER TABLE t ADD PRIMARY KEY (a)",
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES t",
            "ALTER TABLE t ALTER COLUMN b SET NULL",
            "ALTER TABLE t ALTER COLUMN b SET NOT NULL x",
            "ALTER TABLE t ALTER COLUMN b SET DEFAULT 5",
            "ALTER TABLE t ALTER COLUMN b TYPE INT",
            "ALTER TABLE t ALTER COLUMN DROP NOT NULL",
            "ALTER TABLE t DROP CHECK",
        ],
    );
    each(
        "CREATE VIEW v AS SELECT 1 AS a",
        &[
            "ALTER TABLE v ADD CHECK (a)",
            "ALTER TABLE v DROP CONSTRAINT a",
            "ALTER TABLE v ALTER a SET NOT NULL",
            "ALTER TABLE v ALTER a DROP NOT NULL",
            "ALTER TABLE sqlite_schema ADD CHECK (sql)",
            "ALTER TABLE sqlite_schema DROP CONSTRAINT x",
            "ALTER TABLE sqlite_master ALTER q DROP NOT NULL",
            "ALTER TABLE nope DROP CONSTRAINT x",
            "ALTER TABLE main.nope ADD CHECK (a)",
        ],
    );
}

#[test]
fn not_null_is_set_and_dropped() {
    same(&format!(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (NULL, 1);
         ALTER TABLE t ALTER a SET NOT NULL; ALTER TABLE t ALTER COLUMN b SET NOT NULL;
         INSERT INTO t VALUES (1, NULL); UPDATE t SET a = 2;
         ALTER TABLE t ALTER COLUMN a SET NOT NULL ON CONFLICT IGNORE;
         INSERT INTO t VALUES (NULL, 4); ALTER TABLE t ALTER b DROP NOT NULL;
         INSERT INTO t VALUES (3, NULL); SELECT * FROM t; PRAGMA table_info(t); {SCHEMA}"
    ));
    each(
        "CREATE TABLE t(a NOT NULL ON CONFLICT REPLACE DEFAULT 3 , [b c] TEXT /* x */ , c CONSTRAINT one CONSTRAINT two NOT NULL CHECK (c NOT NULL), d CONSTRAINT n NOT NULL, e INT NOT NULL UNIQUE, f REFERENCES t(e) ON DELETE SET NULL NOT NULL)",
        &[
            "ALTER TABLE t ALTER a DROP NOT NULL",
            "ALTER TABLE t ALTER a SET NOT NULL",
            "ALTER TABLE t ALTER 'a' SET NOT NULL ON CONFLICT FAIL -- x",
            "ALTER TABLE t ALTER [B C] SET NOT NULL /* y */",
            "ALTER TABLE t ALTER \"b c\" DROP NOT NULL",
            "ALTER TABLE t ALTER c DROP NOT NULL",
            "ALTER TABLE t ALTER c SET NOT NULL",
            "ALTER TABLE t ALTER d DROP NOT NULL",
            "ALTER TABLE t ALTER e DROP NOT NULL",
            "ALTER TABLE t ALTER f DROP NOT NULL",
            "ALTER TABLE t ALTER f SET NOT NULL",
            "ALTER TABLE t ALTER q DROP NOT NULL",
            "ALTER TABLE t ALTER q SET NOT NULL",
            "ALTER TABLE t ALTER rowid SET NOT NULL",
        ],
    );
    same(&format!(
        "CREATE TABLE t(a INT, b INT AS (a + 1), id INTEGER PRIMARY KEY) STRICT;
         INSERT INTO t(a) VALUES (NULL); ALTER TABLE t ALTER b SET NOT NULL; DELETE FROM t;
         ALTER TABLE t ALTER b SET NOT NULL; INSERT INTO t(a) VALUES (NULL);
         ALTER TABLE t ALTER id SET NOT NULL; INSERT INTO t(a) VALUES (1); SELECT * FROM t;
         ALTER TABLE t ALTER b DROP NOT NULL; INSERT INTO t(a) VALUES (NULL); {SCHEMA}"
    ));
}

#[test]
fn a_constraint_is_dropped_by_its_name() {
    each(
        "CREATE TABLE p(x PRIMARY KEY); CREATE TABLE t(a CONSTRAINT x CHECK (a) , b CONSTRAINT u UNIQUE, c CONSTRAINT n NULL, d CONSTRAINT de DEFAULT 5, e CONSTRAINT one CONSTRAINT two NOT NULL DEFAULT 1, f CONSTRAINT r REFERENCES p ON DELETE CASCADE, g CONSTRAINT co COLLATE nocase CONSTRAINT ge AS (a) CONSTRAINT last, CONSTRAINT pk PRIMARY KEY (a), CONSTRAINT fk FOREIGN KEY (a, b) REFERENCES p(x, y) ON UPDATE SET NULL CONSTRAINT \"ch e\" CHECK (a <> 'CONSTRAINT zz'), CONSTRAINT z CHECK (b))",
        &[
            "ALTER TABLE t DROP CONSTRAINT X",
            "ALTER TABLE t DROP CONSTRAINT u",
            "ALTER TABLE t DROP CONSTRAINT n",
            "ALTER TABLE t DROP CONSTRAINT de",
            "ALTER TABLE t DROP CONSTRAINT one",
            "ALTER TABLE t DROP CONSTRAINT two",
            "ALTER TABLE t DROP CONSTRAINT 'r'",
            "ALTER TABLE t DROP CONSTRAINT co",
            "ALTER TABLE t DROP CONSTRAINT ge",
            "ALTER TABLE t DROP CONSTRAINT last",
            "ALTER TABLE t DROP CONSTRAINT pk",
            "ALTER TABLE t DROP CONSTRAINT fk",
            "ALTER TABLE t DROP CONSTRAINT [ch e]",
            "ALTER TABLE t DROP CONSTRAINT z",
            "ALTER TABLE t DROP CONSTRAINT zz",
            "ALTER TABLE t DROP CONSTRAINT \"no\"\"pe\"",
        ],
    );
    same(&format!(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE t(id INTEGER PRIMARY KEY, a CONSTRAINT pos CHECK (a > 0), p CONSTRAINT own REFERENCES t);
         INSERT INTO t VALUES (1, 1, 5); INSERT INTO t VALUES (2, 0, 1);
         ALTER TABLE t DROP CONSTRAINT own; INSERT INTO t VALUES (1, 1, 5);
         ALTER TABLE t DROP CONSTRAINT pos; INSERT INTO t VALUES (2, 0, 1);
         ALTER TABLE t ADD CONSTRAINT pos CHECK (a >= 0); INSERT INTO t VALUES (3, -1, 1);
         ALTER TABLE t RENAME COLUMN a TO aa; SELECT * FROM t; {SCHEMA}"
    ));
}
