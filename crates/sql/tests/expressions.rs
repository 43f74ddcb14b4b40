//! Row values, subqueries as values, and what expressions may be, beside SQLite.

mod support;

use support::same;

const ROWS: &str = "CREATE TABLE t(a, b, c TEXT COLLATE NOCASE, d INT);
    INSERT INTO t VALUES (1, 2, 'x', 3), (1, 3, 'X', 4), (2, NULL, 'y', NULL), (NULL, NULL, 'z', 5);
    CREATE TABLE s(x, y, z TEXT COLLATE NOCASE); INSERT INTO s VALUES (1, 2, 'X'), (1, NULL, 'q'), (2, 5, 'Y');
    CREATE TABLE none(x, y); CREATE TABLE k(id INTEGER PRIMARY KEY, v, w UNIQUE);
    INSERT INTO k VALUES (1, 'a', 'b'), (2, 'c', 'd');";

/// Only lists were row values, and only in comparisons and before IN.
#[test]
fn subqueries_of_several_columns_are_row_values() {
    for (what, sql) in [
        (
            "comparisons",
            "SELECT (1, 2) = (SELECT 1, 2), (1, NULL) = (SELECT 1, 2), (2, NULL) = (SELECT 1, 2), (1, 2) <> (SELECT 1, NULL);
             SELECT (SELECT 1, 2) < (SELECT 1, 3), (SELECT 1, 2) <= (1, 2), (1, 2) > (SELECT 1, 1), (1, 2) >= (SELECT 1, 3);
             SELECT (1, NULL) IS (SELECT 1, NULL), (SELECT 1, 2) IS NOT (SELECT 1, 2), (SELECT 1, 2) IS NOT DISTINCT FROM (1, 2);
             SELECT (SELECT x, y FROM none) IS (NULL, NULL), (SELECT x, y FROM none) = (1, 2), (1, 2) < (SELECT * FROM none);
             SELECT (VALUES (1, 2), (3, 4)) = (1, 2), (1, 2) = (WITH q(a, b) AS (SELECT 1, 2) SELECT * FROM q);
             SELECT ((1, 2)) = (1, 2), (1, (SELECT 2)) = (1, 2), (1, 2) = (1, 2) = 1",
        ),
        (
            "columns",
            "SELECT a, (a, b) = (SELECT x, y FROM s WHERE s.x = t.a ORDER BY y DESC) FROM t;
             SELECT a FROM t WHERE (a, b) = (SELECT x, y FROM s); SELECT a FROM t WHERE (SELECT x, y FROM s WHERE s.x = t.a) IS (a, b);
             SELECT a FROM t WHERE (rowid, a) = (SELECT 2, 1); SELECT v FROM k WHERE (SELECT 'd', 'c') = (w, v);
             SELECT v FROM k WHERE (w, v) >= (SELECT 'c', 'c'); SELECT a FROM t WHERE NOT (a, b) = (SELECT 1, 2);
             SELECT a, x FROM t LEFT JOIN s ON (a, b) = (SELECT x, y) ORDER BY a, b;
             SELECT count(*) FROM t p, t q WHERE (p.a, p.b) < (SELECT q.a, q.b)",
        ),
        (
            "groups",
            "SELECT (count(*), max(a)) = (SELECT 4, 2), sum((a, b) = (SELECT t.d - 2, 2)) FROM t;
             SELECT a FROM t GROUP BY a HAVING (a, count(*)) = (SELECT 1, 2);
             SELECT (a, b) = (SELECT t.d - 2, 2) AS q, count(*) FROM t GROUP BY q;
             SELECT a FROM t ORDER BY (a, b) = (SELECT t.d - 2, 2) DESC, d",
        ),
        (
            "within others",
            "SELECT (SELECT (SELECT t.a, s.y) = (1, 2) FROM s LIMIT 1) FROM t;
             SELECT (SELECT max((t.a, s.y) = (SELECT t.a, s.x + 1)) FROM s) FROM t;
             SELECT a FROM t WHERE EXISTS (SELECT 1 FROM s WHERE (x, y) = (SELECT t.a, t.b));
             CREATE VIEW v AS SELECT a FROM t WHERE (a, b) = (SELECT x, y FROM s); SELECT * FROM v p JOIN v q",
        ),
        (
            "BETWEEN",
            "SELECT (1, 2) BETWEEN (1, 1) AND (1, 3), (SELECT 1, 2) NOT BETWEEN (1, 1) AND (SELECT 1, 3);
             SELECT (1, 2) BETWEEN (1, NULL) AND (0, 5), (1, 2) NOT BETWEEN (1, NULL) AND (3, NULL);
             SELECT a FROM t WHERE (a, b) BETWEEN (1, 2) AND (2, 0);
             SELECT count(*) FROM t p, t q WHERE (p.a, p.b) BETWEEN (SELECT q.a, q.b) AND (SELECT 9, 9)",
        ),
        (
            "CASE",
            "SELECT CASE (1, 2) WHEN (1, 3) THEN 'a' WHEN (SELECT 1, 2) THEN 'b' END;
             SELECT CASE (SELECT x, y FROM s WHERE s.x = t.a) WHEN (1, 2) THEN 'p' WHEN (SELECT t.a, t.b) THEN 'q' ELSE 'r' END FROM t;
             SELECT CASE (a, b) WHEN (SELECT x, y FROM s WHERE s.y = t.b) THEN 'p' WHEN (a, b) THEN 'q' END FROM t",
        ),
        (
            "IN",
            "SELECT (SELECT 1, 2) IN (VALUES (1, 2)), (SELECT 1, 2) NOT IN (SELECT x, y FROM s), (SELECT 1, 2) IN none, (SELECT 1, 2) IN ();
             SELECT (1, 2) IN ((SELECT 1, 2)), (1, NULL) IN (SELECT 1, 2), (1, 2) NOT IN ((1, 3), (1, NULL));
             SELECT a FROM t WHERE (SELECT t.a, t.b) IN (SELECT x, y FROM s);
             SELECT 2 IN ((SELECT a FROM t)), 3 NOT IN (((SELECT a FROM t))), 2 IN ((SELECT a FROM t), 7)",
        ),
        (
            "DELETE",
            "DELETE FROM k WHERE (w, v) = (SELECT 'd', 'c') RETURNING id;
             DELETE FROM t WHERE (a, b) = (SELECT x, y FROM s WHERE s.x = t.a) RETURNING a, b",
        ),
    ] {
        println!("{what}");
        same(&format!("{ROWS} {sql}"));
    }
}

/// Each pair has its own. A subquery hands on the affinities of its columns; their
/// collations only as the operand of BETWEEN, CASE and IN.
#[test]
fn pairs_of_row_values_have_affinities_and_collations() {
    same(&format!(
        "{ROWS} SELECT (c, d) = (SELECT 'X', '3'), (SELECT 'X', '3') = (c, d), (d, c) < (SELECT '4', 'Y') FROM t;
         SELECT (SELECT d, c FROM t) = ('3', 'x'), (SELECT d, c FROM t) = ('3', 'X'), ('X' COLLATE NOCASE, '3') = (SELECT c, d FROM t);
         SELECT (SELECT c, d FROM t) BETWEEN ('X', '3') AND ('X', 3), (SELECT c, d FROM t) <= ('X', 3);
         SELECT ('X', 3) BETWEEN (SELECT c, d FROM t) AND (SELECT c, d FROM t);
         SELECT CASE (SELECT c, d FROM t) WHEN ('X', '3') THEN 1 END, CASE ('X', 3) WHEN (SELECT c, d FROM t) THEN 1 ELSE 2 END;
         SELECT (SELECT c, d FROM t) IN (SELECT 'X', 3), ('X', '3') IN (SELECT c, d FROM t), (c, d) IN (('X', '3'), (1, 3)) FROM t;
         SELECT ('X', '3') IN ((c, d), (1, 2)), ('X', '3') IN ((1, 2), (c, d)) FROM t;
         SELECT (SELECT 'z' WHERE 0 UNION ALL SELECT d FROM t) = '3', (SELECT d FROM t UNION ALL SELECT 'z') = '3';
         SELECT '3' IN (SELECT 'z' WHERE 0 UNION ALL SELECT d FROM t), '3' IN (SELECT d FROM t UNION ALL SELECT 'z')"
    ));
}

#[test]
fn misused_row_values_are_refused() {
    for sql in [
        "(1, 2) = (SELECT 1, 2, 3)",
        "(SELECT 1, 2) = (SELECT 1)",
        "1 = (SELECT 1, 2)",
        "(SELECT 1, 2) < 1",
        "1 IS (SELECT 1, 2)",
        "(SELECT 1, 2)",
        "(SELECT 1, 2) IS NULL",
        "(1, 2) IS TRUE",
        "(SELECT 1, 2) + 1",
        "((1, 2), 3) = ((1, 2), 3)",
        "(1, (SELECT 2, 3)) = (1, 2)",
        "(1, 2) BETWEEN (1, 1) AND 3",
        "1 BETWEEN 0 AND (SELECT 1, 2)",
        "CASE (SELECT 1, 2) WHEN 1 THEN 1 END",
        "CASE 1 WHEN (SELECT 1, 2) THEN 1 END",
        "(1, 2) IN ((1, 2), 3)",
        "(1, 2) IN ((1, 2), (1, 2, 3))",
        "(1, 2) IN ((SELECT 1))",
        "1 IN ((SELECT 1, 2))",
        "(SELECT 1, 2) IN (SELECT 1)",
        "(SELECT 1, 2) IN (1, 2)",
        "(1, 2) IN ((1, (2, 3)))",
        "(1, 2) = (SELECT 1, 2, 3 FROM nowhere)",
        "abs((1, 2))",
        "(1, 2) = (SELECT nothing, 2)",
    ] {
        same(&format!("SELECT {sql}"));
    }
}

/// A scalar subquery had its column's collation; in SQLite it has none, only an affinity.
#[test]
fn subqueries_have_no_collation() {
    same(&format!(
        "{ROWS} SELECT (SELECT c FROM t) = 'X', 'X' = (SELECT c FROM t), (SELECT c FROM t) IN ('X'), (SELECT c FROM t) IS 'X';
         SELECT 'X' IN ((SELECT c FROM t)), (SELECT c FROM t) IN (SELECT 'X'), 'X' IN (SELECT (SELECT c FROM t));
         SELECT (SELECT c FROM t) BETWEEN 'X' AND 'X', 'X' BETWEEN (SELECT c FROM t) AND 'Y', CASE (SELECT c FROM t) WHEN 'X' THEN 1 END;
         SELECT (SELECT c COLLATE NOCASE FROM t) = 'X', (SELECT c FROM t) = z, z = (SELECT c FROM t), (SELECT c FROM t) COLLATE NOCASE = 'X' FROM s;
         SELECT (SELECT d FROM t) = '3', '3' IN ((SELECT d FROM t)), (SELECT d FROM t) BETWEEN '3' AND '3', +(SELECT d FROM t) = '3';
         SELECT ((SELECT c FROM t), 1) = ('X', 1); SELECT DISTINCT (SELECT c) FROM t; SELECT (SELECT c) x, count(*) FROM t GROUP BY x;
         SELECT (SELECT c) x, count(*) FROM t GROUP BY (SELECT c) ORDER BY 1; SELECT (SELECT c) x FROM t ORDER BY x, a DESC;
         SELECT min((SELECT c)), max((SELECT c)), count(DISTINCT (SELECT c)) FROM t;
         SELECT min((SELECT c), 'X'), max((SELECT c), 'X'), nullif((SELECT c), 'X') FROM t;
         SELECT (SELECT c) FROM t UNION SELECT 'Y' UNION SELECT z FROM s; SELECT * FROM (SELECT (SELECT c) AS q FROM t) WHERE q = 'X'"
    ));
}

/// Subqueries that nothing is handed in to ran for every row where they call random().
#[test]
fn volatile_subqueries_run_as_often_as_in_sqlite() {
    same(&format!(
        "{ROWS} SELECT count(DISTINCT q) FROM (SELECT (SELECT random()) AS q FROM t);
         SELECT count(DISTINCT q) FROM (SELECT (SELECT random() WHERE t.a IS t.a) AS q FROM t);
         SELECT (SELECT r, r FROM (SELECT random() AS r)) IN (SELECT q, q FROM (SELECT random() AS q)) FROM t;
         SELECT sum((SELECT r, t.d FROM (SELECT random() AS r)) BETWEEN (-9223372036854775808, 0) AND (9223372036854775807, 9)) FROM t;
         SELECT (random() % 1, 1) < (0, 2), (random() % 1, 1) IN ((0, 1)), CASE (random() % 1, 1) WHEN (0, 2) THEN 1 WHEN (0, 1) THEN 2 END"
    ));
}

/// Each statement came to the numbers of the one before it, but for the first of them, so
/// that keys made of them came again.
#[test]
fn no_statement_comes_to_the_random_numbers_of_another() {
    let numbers = "INSERT INTO r SELECT random() FROM c; INSERT INTO r VALUES (random());";
    let keys = "INSERT INTO u VALUES (randomblob(16)); INSERT INTO u SELECT randomblob(16) FROM c;";
    same(&format!(
        "CREATE TABLE c(i); INSERT INTO c VALUES (1), (2), (3), (4), (5), (6), (7);
         CREATE TABLE r(x); CREATE TABLE u(id PRIMARY KEY);
         CREATE TRIGGER g AFTER INSERT ON c BEGIN
             INSERT INTO r VALUES (random()); INSERT INTO r VALUES (random());
         END;
         {} INSERT INTO c VALUES (8), (9), (10);
         SELECT count(*), count(DISTINCT x) FROM r;
         {} SELECT count(*), count(DISTINCT half) FROM
             (SELECT substr(id, 1, 8) AS half FROM u UNION ALL SELECT substr(id, 9) FROM u)",
        numbers.repeat(10),
        keys.repeat(10),
    ));
}

/// A minus made a real of the smallest integer unless it stood right before the digits,
/// and an integer that there is none of from the same number in hexadecimal.
#[test]
fn a_minus_is_part_of_the_number_behind_it() {
    for number in [
        "-9223372036854775808",
        "- 9223372036854775808",
        "-(9223372036854775808)",
        "-+((9_223_372_036_854_775_808))",
        "+-9223372036854775808",
        "-(-9223372036854775808)",
        "- -9223372036854775808",
        "-9223372036854775809",
        "-0x10",
        "-0x8000000000000000",
        "- -0X8000000000000000",
        "-(+0x80000000_00000000)",
        "0x8000000000000000",
        "-0x8000000000000001",
        "-0x10000000000000000",
        "1 - 0x8000000000000000",
        "~0x8000000000000000",
        "-(5)",
        "- - 5",
        "-.5",
        "-(5.)",
        "-0.0",
        "-(0)",
        "-1e999",
    ] {
        same(&format!(
            "SELECT {number}, typeof({number}); CREATE TABLE t(a); INSERT INTO t VALUES (({number})); SELECT a FROM t WHERE a = {number}"
        ));
    }
    same(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 3), (2, 2); SELECT a FROM t ORDER BY -(+1); SELECT a FROM t ORDER BY +(+(2))",
    );
}

/// COLLATE behind TRUE made a number of it, and CAST to no type a blob.
#[test]
fn truth_has_no_collation_and_no_type_is_numeric() {
    same(
        "CREATE TABLE t(a, c COLLATE NOCASE); INSERT INTO t VALUES (2, 'x'), (0, '1'), (NULL, NULL);
         SELECT a IS TRUE COLLATE nocase, a IS NOT TRUE COLLATE binary, c IS FALSE COLLATE nocase COLLATE rtrim FROM t;
         SELECT 2 IS (TRUE COLLATE nocase), 2 IS (FALSE) COLLATE nocase, 2 IS +TRUE, (2 IS TRUE) COLLATE nocase, 2 IS TRUE COLLATE none;
         SELECT cast('5' as), typeof(cast('5' AS )), cast(2.5 as), cast(x'31' as), cast(NULL as), cast('5' as) = 5, cast('x1' as ''), cast(c as) = 'X' FROM t",
    );
}

/// They were taken.
#[test]
fn what_has_no_meaning_is_refused() {
    same(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2); SELECT a FROM t HAVING count(*) > 0; SELECT a FROM t HAVING 1;
         SELECT a FROM t HAVING nothing; SELECT a FROM t HAVING 1 ORDER BY count(*); SELECT count(*) FROM t HAVING a > 0;
         SELECT a FROM t GROUP BY a HAVING count(*) > 0",
    );
    for share in [
        "5",
        "1",
        "0",
        "1.1",
        "-0.5",
        "-0.0",
        "+0.5",
        "0.5 + 0",
        "'0.5'",
        "NULL",
        "a",
        "1e999",
        "9223372036854775808",
        "0.5 COLLATE nocase",
        "CAST(0.5 AS REAL)",
        "(0.5)",
        "0.0",
        "1.0",
        "5e-1",
        ".5",
        "0.5, 1",
        "likely(0.5)",
    ] {
        same(&format!(
            "CREATE TABLE t(a); INSERT INTO t VALUES (1); SELECT likelihood(a, {share}) FROM t"
        ));
    }
}

#[test]
fn characters_by_their_numbers() {
    for text in [
        "a\\u0041",
        "\\0041\\+01F600\\U0001F600",
        "\\\\",
        "",
        "é\\u00e9",
        "\\ud800\\uDFFF\\uFFFE",
        "\\U00110000\\Uffffffff\\+ffffff",
        "\\",
        "\\u12",
        "\\x",
        "a\\u00",
        "\\u004g",
        "\\+00004",
        "\\u+041",
        "\\U000000é1",
    ] {
        same(&format!("SELECT unistr('{text}'), hex(unistr('{text}'))"));
    }
    same(
        "SELECT hex(unistr('a\\u0000b')), hex(unistr('a\\u0041' || char(0) || '\\u0041')), unistr(NULL), typeof(unistr(5)), unistr(x'41');
         SELECT unistr_quote('a' || char(10) || 'b'), unistr_quote('it''s' || char(9)), unistr_quote('a\\b'), unistr_quote('a\\b' || char(1) || '''');
         SELECT unistr_quote(5), unistr_quote(NULL), unistr_quote(x'41'), unistr_quote(2.5), hex(unistr_quote('a' || char(0) || char(1)));
         SELECT format('%#Q %#q', 'a' || char(10), 'a' || char(10)), format('%#Q %#q', 'a\\b', 'a\\b'), format('%#20Q|%-#20Q|', char(10), char(10));
         SELECT format('%j', 'a\"b\\' || char(8, 9, 10, 12, 13, 1)), format('%J %J', 'a\"', NULL), format('%.2J %5j|', 'abc', NULL), format('%j %j', 5, 2.5);
         SELECT subtype(1), typeof(subtype(NULL)); SELECT subtype()",
    );
}

/// A SELECT and each pair of parentheses counted as a level.
#[test]
fn expressions_may_be_as_deep_as_in_sqlite() {
    const TABLE: &str = "CREATE TABLE t(a); INSERT INTO t VALUES (1);";
    let chain = |op: &str, terms: usize| format!("a{}", format!(" {op} a").repeat(terms - 1));
    for terms in [999, 1000, 1001] {
        for op in ["+", "||", "=", "AND", "OR"] {
            let chain = chain(op, terms);
            same(&format!(
                "{TABLE} SELECT {chain} FROM t; SELECT a FROM t WHERE {chain}; SELECT a FROM t ORDER BY {chain}"
            ));
        }
    }
    for levels in [998, 999] {
        for (open, close) in [
            ("- ", ""),
            ("NOT ", ""),
            ("CAST(", " AS INT)"),
            ("", " ISNULL"),
            ("", " COLLATE NOCASE"),
        ] {
            let (open, close) = (open.repeat(levels), close.repeat(levels));
            same(&format!("{TABLE} SELECT {open}a{close} FROM t"));
        }
    }
    for (open, levels) in [("(", 2400), ("+", 2400), ("(1 + ", 800), ("abs(", 800)] {
        let close = if open == "+" { "" } else { ")" };
        let (open, close) = (open.repeat(levels), close.repeat(levels));
        same(&format!(
            "{TABLE} SELECT {open}a{close} FROM t; INSERT INTO t VALUES ({open}1{close}); SELECT max(a) FROM t"
        ));
    }
}

/// Subqueries that call each other took the thread's own stack.
#[test]
fn deep_statements_run_on_a_small_stack() {
    let check = || {
        let session = support::session();
        support::must(&session, "CREATE TABLE t(a); INSERT INTO t VALUES (1)");
        for (open, close) in [
            ("1 + (SELECT ", ")"),
            ("-(SELECT ", ")"),
            ("(SELECT a + ", " FROM t WHERE a = 1)"),
            ("1 IN (SELECT ", ")"),
        ] {
            let (open, close) = (open.repeat(499), close.repeat(499));
            let rows = support::run(&session, &format!("SELECT {open}a{close} FROM t"));
            assert!(!rows.iter().any(|row| row.starts_with("error")), "{rows:?}");
        }
        let open = "EXISTS (SELECT ".repeat(5000);
        let close = ")".repeat(5000);
        let refused = support::run(&session, &format!("SELECT {open}1{close}"));
        assert!(
            refused.iter().all(|row| row.starts_with("error 1: ")),
            "{refused:?}"
        );
    };
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(check);
    small.expect("thread").join().expect("no panic");
}

/// Evaluation took the stack of the thread that asked, and ended the process where that was
/// a small one.
#[test]
fn deep_expressions_are_evaluated_on_a_small_stack() {
    let check = || {
        let session = support::session();
        support::must(
            &session,
            "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 1)",
        );
        let fine = |sql: String| {
            let rows = support::run(&session, &sql);
            let is_wrong = rows.iter().any(|row| row.starts_with("error"));
            assert!(!is_wrong, "{}: {rows:?}", &sql[..sql.len().min(200)]);
        };
        for (open, close, levels) in [
            ("", " + a", 990),
            ("", " || a", 990),
            ("", " = a", 990),
            ("NOT ", "", 990),
            ("CAST(", " AS INT)", 990),
            ("", " ISNULL", 990),
            ("coalesce(", ", 2)", 700),
            ("max(", ", 1)", 700),
            ("iif(a, ", ", 2)", 700),
            ("CASE WHEN ", " THEN 1 ELSE a END", 700),
            ("json_array(", ")", 700),
            ("", " IN (1, a)", 900),
            ("", " BETWEEN a AND 2", 900),
            ("", " LIKE 'a'", 900),
            ("(a = 1 AND (a = 2 OR ", "))", 400),
        ] {
            let deep = format!("{}a{}", open.repeat(levels), close.repeat(levels));
            fine(format!("SELECT {deep} FROM t"));
            fine(format!("SELECT {deep} FROM t GROUP BY {deep}"));
            fine(format!("SELECT a FROM t WHERE {deep} ORDER BY {deep}"));
            fine(format!("UPDATE t SET b = {deep} WHERE a = 1"));
            fine(format!(
                "CREATE TABLE c(a, b AS ({deep}), CHECK (({deep}) IS NOT 7))"
            ));
            fine(format!("CREATE INDEX i ON c({deep}) WHERE {deep}"));
            fine("INSERT INTO c VALUES (1), (NULL); SELECT * FROM c; DROP TABLE c".to_owned());
        }
    };
    let small = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(check);
    small.expect("thread").join().expect("no panic");
}

/// Behind a wildcard, bytes are looked for that the rest of the pattern begins with.
#[test]
fn patterns_go_on_where_their_next_character_stands() {
    let texts = [
        "'abcABCabd'",
        "'aaab'",
        "'äbÄb'",
        "'a%b_c'",
        "''",
        "'b'",
        "'x*y?z[a]'",
        "NULL",
        "'ab' || char(0) || 'abd'",
        "CAST(x'61c3' || 'b' AS TEXT)",
        "CAST(x'c3c362' AS TEXT)",
        "CAST(x'80e28261' AS TEXT)",
        "char(8490) || 'k'",
        "12345",
        "'[a-c]'",
        "'a' || char(10) || 'b'",
    ];
    let patterns = [
        "%b%",
        "%abd",
        "a%b%d",
        "%%%b",
        "%",
        "%_b%",
        "%\u{e4}b",
        "%B",
        "%k%",
        "%x%b",
        "%xb%%",
        "%x_c",
        "*b*",
        "*abd",
        "a*b?d",
        "*[a-c]d",
        "*[[]a*",
        "*?z*",
        "**b",
        "*B",
        "*\u{e4}b*",
        "%3%5",
        "*4*",
    ];
    for pattern in patterns {
        let selects: Vec<String> = texts
            .iter()
            .map(|text| {
                format!(
                    "SELECT {text} LIKE '{pattern}', {text} LIKE '{pattern}' ESCAPE 'x', {text} GLOB '{pattern}', \
                     {text} LIKE '{pattern}' || char(0) || 'b', like('{pattern}', {text})"
                )
            })
            .collect();
        let all = selects.join("; ");
        same(&format!("{all}; PRAGMA case_sensitive_like = on; {all}"));
    }
}

/// Over a batch each WHEN sees the rows that none before it took, and each result those that
/// it took: nothing else may fail.
#[test]
fn a_case_takes_each_row_its_own_way() {
    let table = "CREATE TABLE n(i INTEGER PRIMARY KEY, x, s TEXT COLLATE NOCASE);
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 700)
            INSERT INTO n SELECT i, iif(i % 5, i % 7, iif(i % 2, NULL, i % 3 || '')), char(65 + i % 4 + i % 2 * 32) FROM c;";
    for case in [
        "CASE WHEN i % 3 = 0 THEN i WHEN i % 3 = 1 THEN i / 2.0 ELSE s END",
        "CASE x WHEN 0 THEN 'a' WHEN NULL THEN 'n' WHEN '1' THEN x'00' WHEN i % 4 THEN i END",
        "CASE s WHEN 'a' THEN 1 WHEN 'B' THEN x END",
        "CASE WHEN x IS NULL THEN -1 WHEN x > 3 AND i < 300 OR s = 'c' THEN x + 1 ELSE x || s END",
        "CASE WHEN i < 500 THEN i ELSE abs(-9223372036854775808) END",
        "CASE WHEN i >= 500 AND abs(-9223372036854775808) THEN 1 WHEN i < 690 THEN CASE x WHEN 3 THEN i ELSE s END END",
        "CASE WHEN i > 0 THEN i ELSE abs(-9223372036854775808) END",
        "CASE WHEN 0 THEN 1 END",
        "CASE NULL WHEN NULL THEN 1 ELSE x END",
        "CASE (SELECT 3) WHEN x THEN (SELECT count(*) FROM n m WHERE m.i < n.x) ELSE 0 END",
    ] {
        same(&format!(
            "{table} SELECT i, {case} FROM n; SELECT count({case}), max({case}), typeof(min({case})) FROM n;
             SELECT i FROM n WHERE {case} ORDER BY {case}, i LIMIT 20; SELECT sum({case}) FROM n WHERE i % 3 = 1"
        ));
    }
}

/// Over a batch the arguments are computed before the first call; the rows before one that
/// fails come all the same.
#[test]
fn functions_are_called_over_batches() {
    let table = "CREATE TABLE n(i INTEGER PRIMARY KEY, x, s TEXT COLLATE NOCASE);
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 700)
            INSERT INTO n SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN i / 4.0 WHEN 2 THEN ' t' || i || ' ' WHEN 3 THEN x'41' ELSE -i END, char(65 + i % 4 + i % 2 * 32) FROM c;";
    for call in [
        "substr(x, i % 4, 2)",
        "printf('%05d|%-4s|%g', i, s, x)",
        "trim(x) || upper(s)",
        "min(s, 'b', x)",
        "nullif(s, 'A')",
        "unixepoch('2020-01-01', '+' || i || ' days')",
        "length(replace(hex(x), '3', substr(s, 1, i % 3)))",
        "abs(CASE WHEN i < 500 THEN i ELSE -9223372036854775808 END)",
        "CAST(round(x, 1) AS TEXT)",
        "coalesce(abs(x), instr(s, 'b'), typeof(x))",
    ] {
        same(&format!(
            "{table} SELECT i, {call} FROM n; SELECT count({call}), min({call}), max({call}) FROM n WHERE i % 3;
             SELECT i FROM n WHERE {call} > 'a' ORDER BY {call}, i LIMIT 20"
        ));
    }
}

/// Numbers are computed with and compared a vector at a time where all of a column are of one
/// kind: what has no result of that kind is left to the rest.
#[test]
fn columns_of_one_kind_of_number() {
    let mut sql = "CREATE TABLE i(id INTEGER PRIMARY KEY, a INT, b INT); CREATE TABLE r(id INTEGER PRIMARY KEY, a REAL, b REAL);
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 900)
            INSERT INTO i SELECT x, x * 7919 % 1009 - 500, x % 13 - 6 FROM n;
        INSERT INTO r SELECT id, a / 4.0, b * 1.5 FROM i;
        INSERT INTO r VALUES (2001, 9007199254740992.0, 1e308), (2002, 9007199254740994.0, -1e-308), (2003, -0.0, 0.0), (2004, 9223372036854775807.0, 1e999), (2005, -1e999, 2.0);
        INSERT INTO i VALUES (2001, -9223372036854775807 - 1, -1), (2002, 9007199254740993, 2), (2003, 9223372036854775807, 1);".to_owned();
    let places = ["id <= 900", "id BETWEEN 100 AND 800 AND id % 3 = 1", "1"];
    for (table, place) in ["i", "r"].iter().flat_map(|t| places.map(|p| (t, p))) {
        for op in ["+", "-", "*", "/", "%"] {
            for (a, b) in [
                ("a", "b"),
                ("a", "3"),
                ("a", "-1"),
                ("a", "0"),
                ("7", "b"),
                ("a", "0.0"),
                ("a", "2.5"),
                ("b", "a"),
            ] {
                sql += &format!(
                    "SELECT id, {a} {op} {b}, typeof({a} {op} {b}) FROM {table} WHERE {place} ORDER BY id;"
                );
            }
        }
        for op in ["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"] {
            for b in [
                "b",
                "3",
                "-0.0",
                "0",
                "12.25",
                "9007199254740992",
                "9007199254740993",
                "-9223372036854775808",
                "9223372036854775807",
            ] {
                sql += &format!(
                    "SELECT count(*), sum(id) FROM {table} WHERE a {op} {b} AND {place}; SELECT count(*), sum(id) FROM {table} WHERE {b} {op} a AND {place};"
                );
            }
        }
        let calls = "count(a), min(a), max(a), min(b), max(b), total(b), typeof(sum(b)), count(DISTINCT b), max(id)";
        sql += &format!(
            "SELECT {calls}, group_concat(b) FROM {table} WHERE {place};
             SELECT id % 7, {calls}, sum(b), group_concat(a) FROM {table} WHERE {place} AND id <= 900 GROUP BY 1;
             SELECT {calls}, sum(a), sum(b), avg(b) FROM {table} WHERE {place} AND id <= 900;"
        );
    }
    same(&sql);
}
