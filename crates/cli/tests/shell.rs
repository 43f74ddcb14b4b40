//! Modes, settings and commands of the shell, as the sqlite3 shell has them. What is expected
//! of modes was printed by that shell for the same statements, but for its CSV, which ends
//! lines with a carriage return too, and for how it cuts a blob at its first zero byte.

mod common;

use common::{dir, err, out, run};

const ROWS: &str = "CREATE TABLE t (a, b, \"c d\");
    INSERT INTO t VALUES (1, 'x y', 'it''s'), (2.5, NULL, x'41ff'), ('q\"u,o', 'é<&>', -7);\n";

/// What a mode makes of the rows, then of one with the columns' names, then of none.
fn shown(mode: &str) -> String {
    let script = format!(
        "{ROWS}.mode {mode}\nSELECT * FROM t WHERE a <> 2.5;\n.headers on\nSELECT * FROM t LIMIT 1;\n\
         SELECT * FROM t WHERE 0;\n"
    );
    let output = run(dir().path(), &[], &script);
    assert_eq!(err(&output), "", "{mode}");
    out(&output)
}

#[test]
fn modes_of_values_between_separators() {
    assert_eq!(
        shown("list"),
        "1|x y|it's\nq\"u,o|é<&>|-7\na|b|c d\n1|x y|it's\n"
    );
    assert_eq!(
        shown("csv"),
        "1,x y,it's\n\"q\"\"u,o\",é<&>,-7\na,b,c d\n1,x y,it's\n"
    );
    assert_eq!(
        shown("tabs"),
        "1\tx y\tit's\nq\"u,o\té<&>\t-7\na\tb\tc d\n1\tx y\tit's\n"
    );
    assert_eq!(
        shown("ascii"),
        "1\u{1f}x y\u{1f}it's\u{1e}q\"u,o\u{1f}é<&>\u{1f}-7\u{1e}\
         a\u{1f}b\u{1f}c d\u{1e}1\u{1f}x y\u{1f}it's\u{1e}"
    );
    assert_eq!(
        shown("quote"),
        "1,'x y','it''s'\n'q\"u,o','é<&>',-7\n'a','b','c d'\n1,'x y','it''s'\n"
    );
}

#[test]
fn modes_of_statements_and_markup() {
    assert_eq!(
        shown("insert"),
        "INSERT INTO \"table\" VALUES(1,'x y','it''s');\n\
         INSERT INTO \"table\" VALUES('q\"u,o','é<&>',-7);\n\
         INSERT INTO \"table\"(a,b,\"c d\") VALUES(1,'x y','it''s');\n"
    );
    assert_eq!(
        shown("insert other"),
        "INSERT INTO other VALUES(1,'x y','it''s');\n\
         INSERT INTO other VALUES('q\"u,o','é<&>',-7);\n\
         INSERT INTO other(a,b,\"c d\") VALUES(1,'x y','it''s');\n"
    );
    assert_eq!(
        shown("html"),
        "<TR><TD>1</TD>\n<TD>x y</TD>\n<TD>it&#39;s</TD>\n</TR>\n\
         <TR><TD>q&quot;u,o</TD>\n<TD>é&lt;&amp;&gt;</TD>\n<TD>-7</TD>\n</TR>\n\
         <TR><TH>a</TH>\n<TH>b</TH>\n<TH>c d</TH>\n</TR>\n\
         <TR><TD>1</TD>\n<TD>x y</TD>\n<TD>it&#39;s</TD>\n</TR>\n"
    );
    assert_eq!(
        shown("json"),
        "[{\"a\":1,\"b\":\"x y\",\"c d\":\"it's\"},\n{\"a\":\"q\\\"u,o\",\"b\":\"é<&>\",\"c d\":-7}]\n\
         [{\"a\":1,\"b\":\"x y\",\"c d\":\"it's\"}]\n"
    );
}

#[test]
fn modes_of_columns() {
    assert_eq!(
        shown("column"),
        "a      b     c d \n-----  ----  ----\n1      x y   it's\nq\"u,o  é<&>  -7  \n\
         a  b    c d \n-  ---  ----\n1  x y  it's\n"
    );
    assert_eq!(
        shown("table"),
        "+-------+------+------+\n|   a   |  b   | c d  |\n+-------+------+------+\n\
         | 1     | x y  | it's |\n| q\"u,o | é<&> | -7   |\n+-------+------+------+\n\
         +---+-----+------+\n| a |  b  | c d  |\n+---+-----+------+\n| 1 | x y | it's |\n+---+-----+------+\n"
    );
    assert_eq!(
        shown("markdown"),
        "|   a   |  b   | c d  |\n|-------|------|------|\n| 1     | x y  | it's |\n\
         | q\"u,o | é<&> | -7   |\n| a |  b  | c d  |\n|---|-----|------|\n| 1 | x y | it's |\n"
    );
}

#[test]
fn nulls_separators_and_widths() {
    let script = format!(
        "{ROWS}.mode list\n.nullvalue <none>\n.separator ' ; ' \"!\\n\"\n\
         SELECT a, b FROM t LIMIT 2;\n.mode column\n.width 3 -6 2\n.headers off\nSELECT * FROM t;\n\
         .mode csv\n.separator \";\"\nSELECT a, 'x;y', '' FROM t WHERE b IS NULL;\n"
    );
    let output = run(dir().path(), &[], &script);
    assert_eq!(
        out(&output),
        "1 ; x y!\n2.5 ; <none>!\n1       x y  it\n2.5  <none>  x'\nq\"u    é<&>  -7\n\
         2.5;\"x;y\";\"\"\n",
        "{}",
        err(&output)
    );
}

#[test]
fn options_of_the_sqlite3_shell() {
    let dir = dir();
    std::fs::write(dir.path().join("first.sql"), "CREATE TABLE t (a, b);\n").expect("sql");
    let args = [
        "-init",
        "first.sql",
        "-csv",
        "-header",
        "-nullvalue",
        "nil",
        "-cmd",
        "INSERT INTO t VALUES (1, NULL)",
        "-cmd",
        ".print begun",
        "-batch",
        "a.db",
        "SELECT * FROM t",
    ];
    let output = run(dir.path(), &args, "");
    assert_eq!(out(&output), "begun\na,b\n1,nil\n", "{}", err(&output));
    for (args, expected) in [
        (&["-list", "-separator", "-", "-newline", ";"][..], "1-2;"),
        (&["-csv"], "1,2\n"),
        (&["--mode", "csv"], "a,b\n1,2\n"),
        (&["--mode", "csv", "-noheader"], "1,2\n"),
        (&["-json"], "[{\"a\":1,\"b\":2}]\n"),
        (
            &["--json"],
            "{\"columns\":[\"a\",\"b\"],\"rows\":[[1,2]]}\n",
        ),
        (&["-tabs", "-header"], "a\tb\n1\t2\n"),
        (&["-line"], "a = 1\nb = 2\n"),
        (&["-echo", "-list"], "SELECT 1 AS a, 2 AS b\n1|2\n"),
    ] {
        let args = [args, &[":memory:", "SELECT 1 AS a, 2 AS b"]].concat();
        assert_eq!(out(&run(dir.path(), &args, "")), expected, "{args:?}");
    }
    let output = run(dir.path(), &["-readonly", "a.db", "DELETE FROM t"], "");
    assert!(err(&output).contains("readonly"), "{}", err(&output));
    let output = run(
        dir.path(),
        &["-bail", "-cmd", "bad", "a.db", "SELECT 'unreached'"],
        "",
    );
    assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(1)));
}

#[test]
fn output_goes_to_files() {
    let dir = dir();
    let script = ".mode list\n.output all.txt\nSELECT 1;\nSELECT 2;\n.show\n.output\nSELECT 3;\n\
                  .once one.txt\nSELECT 4;\nSELECT 5;\n.output no/such/file\nSELECT 6;\n.output | cat\n";
    let output = run(dir.path(), &[], script);
    assert_eq!(out(&output), "3\n5\n6\n");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect(name);
    let all = read("all.txt");
    assert!(all.starts_with("1\n2\n"), "{all}");
    assert!(
        all.contains("output: all.txt\n") && all.contains("mode: list\n"),
        "{all}"
    );
    assert_eq!(read("one.txt"), "4\n");
    assert!(
        err(&output).contains("cannot write no/such/file"),
        "{}",
        err(&output)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn copies_and_other_databases() {
    let dir = dir();
    let script = "CREATE TABLE t (a);\nINSERT INTO t VALUES (1), (2);\n.backup copy.db\n.save main saved.db\n\
                  DELETE FROM t;\n.restore copy.db\n.mode list\nSELECT count(*) FROM t;\n\
                  .open saved.db\nSELECT sum(a) FROM t;\n.databases\n.open --readonly copy.db\n\
                  INSERT INTO t VALUES (3);\nSELECT count(*) FROM t;\n.open absent/no.db\n\
                  SELECT count(*) FROM t;\n.restore absent.db\n.backup nope x.db\n";
    let output = run(dir.path(), &["live.db"], script);
    let saved = dir
        .path()
        .join("saved.db")
        .canonicalize()
        .expect("is there");
    assert_eq!(out(&output), format!("2\n3\nmain: {saved:?} r/w\n2\n2\n"));
    let errors = err(&output);
    for part in [
        "readonly database",
        "unable to open database file",
        "unknown database nope",
    ] {
        assert!(errors.contains(part), "{errors}");
    }
    assert!(!dir.path().join("absent.db").exists());
}

#[test]
fn parameters_have_values() {
    let dir = dir();
    let script = ".mode list\n.parameter init\n.parameter set :n 3 * 4\n.parameter set $who O'Neil\n\
                  .parameter set @t \"'te xt'\"\n.parameter list\nSELECT :n + 1, $who, @t, ?, :other;\n\
                  .parameter unset :n\nSELECT :n;\n.parameter clear\n.parameter list\nSELECT $who;\n.param\n";
    let output = run(dir.path(), &["-nullvalue", "nil"], script);
    assert_eq!(
        out(&output),
        "$who 'O''Neil'\n:n   12\n@t   'te xt'\n13|O'Neil|te xt|nil|nil\nnil\nnil\n"
    );
    assert!(
        err(&output).contains("usage: .parameter"),
        "{}",
        err(&output)
    );
}

#[test]
fn settings_that_tell_more() {
    let dir = dir();
    let script = ".mode list\n.echo on\n.changes on\nCREATE TABLE t (a UNIQUE);\nINSERT INTO t VALUES (1), (2);\n\
                  .echo off\n.changes off\n.indexes\n.ind x\n.tables T\n.help timer\n.timer on\nSELECT 1;\n.timer off\n\
                  .cd nowhere\n.shell false\n.timeout 10\n.timeout soon\n.mode\n.bail on\nbad;\nSELECT 'unreached';\n";
    let output = run(dir.path(), &[], script);
    let shown = out(&output);
    let (before, after) = shown.split_once("Run Time: real ").expect("a time");
    assert_eq!(
        before,
        format!(
            "CREATE TABLE t (a UNIQUE);\nchanges: 0   total_changes: 0\n\
             INSERT INTO t VALUES (1), (2);\nchanges: 2   total_changes: 2\n\
             sqlite_autoindex_t_1\nt\n{:<28} show how long statements take\n1\n",
            ".timer on|off"
        )
    );
    assert!(after.ends_with("current output mode: list\n"), "{after}");
    let errors = err(&output);
    for part in ["cannot go to nowhere", "false: exit", "usage: .timeout MS"] {
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn leaving_with_a_status() {
    let dir = dir();
    for (script, status) in [
        (".exit 7\n", 7),
        (".exit\n", 0),
        ("bad;\n.quit\n", 1),
        ("bad;\n.exit 0\n", 0),
    ] {
        let output = run(dir.path(), &[], script);
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
}

#[test]
fn imports_of_other_files() {
    let dir = dir();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect(name);
    write("bars.txt", "skipped\na|b\n1|\"x\ny\"\n2|z\n");
    write("ascii.txt", "p\u{1f}q\u{1e}3\u{1f}\"4\u{1e}");
    write("tabs.txt", "k\tl\n5\t6\n");
    let script = ".mode list\n.separator |\n.import --skip 1 bars.txt bars\nSELECT * FROM bars;\n\
                  .import --ascii ascii.txt ascii\nSELECT * FROM ascii;\n.mode tabs\n.import tabs.txt tabs\n\
                  .mode list\nSELECT * FROM tabs;\n.import --skip x tabs.txt tabs\n.import tabs.txt\n.import --no a b\n";
    let output = run(dir.path(), &[], script);
    assert_eq!(
        out(&output),
        "1|x\ny\n2|z\n3|\"4\n5|6\n",
        "{}",
        err(&output)
    );
    assert_eq!(err(&output).matches("Error").count(), 3, "{}", err(&output));
}

/// A dump in which children come before their parents could not be read where foreign keys
/// are enforced, and numbers of AUTOINCREMENT were given again.
#[test]
fn a_dump_keeps_sequences_and_reads_back_with_foreign_keys() {
    let dir = dir();
    let script = "CREATE TABLE child (p REFERENCES parent);
        CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT);
        INSERT INTO parent VALUES (1), (2), (30); DELETE FROM parent WHERE id = 30;
        INSERT INTO child VALUES (1);";
    let made = run(dir.path(), &["one.db"], script);
    assert!(made.status.success(), "{}", err(&made));
    let dump = out(&run(dir.path(), &["one.db", ".dump"], ""));
    let read = format!("PRAGMA foreign_keys = ON;\n{dump}\nINSERT INTO parent DEFAULT VALUES;\n");
    let output = run(dir.path(), &["two.db", "-list"], &read);
    assert!(output.status.success(), "{}", err(&output));
    let output = run(
        dir.path(),
        &["-list", "two.db", "SELECT max(id) FROM parent"],
        "",
    );
    assert_eq!(out(&output), "31\n");
    let part = out(&run(dir.path(), &["one.db", ".dump pa%"], ""));
    assert!(
        part.contains("parent") && !part.contains("CREATE TABLE child"),
        "{part}"
    );
}
