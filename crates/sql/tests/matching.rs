//! LIKE and GLOB of many rows with one pattern, beside SQLite, and coalesce() over them.

mod support;

use support::same;

/// Texts of every kind, and what is none.
const TEXTS: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, s);
    INSERT INTO t(s) VALUES ('quick words here and there'), ('Quick WORDS'), ('words'), ('WoRdS there'), ('wordsthere'),
        (''), (NULL), (12345), (-1.5), (x'776f726473'), ('a%b'), ('a_b'), ('a*b'), ('a[b'), ('été WORDS'), ('ÉTÉ words'),
        ('wor' || char(0) || 'ds'), (char(0)), ('%'), ('100% words'), (CAST(x'c3' AS TEXT)), (CAST(x'c377' AS TEXT)),
        (CAST(x'e4ba77' AS TEXT)), ('ſwordsK'), ('K'), ('aaaaaaaaaaaaab'), ('aaaaaaaaaaaaaB'), ('abababababac'),
        (printf('%.300c', 'x') || 'words' || printf('%.300c', 'y')), (printf('%.300c', 'x') || 'WORDS');";

/// A pattern of more than 50,000 bytes is refused before anything is compared with it. Where
/// the text was NULL it was not looked at.
#[test]
fn patterns_that_are_too_long() {
    same(
        "CREATE TABLE t(s, p); INSERT INTO t VALUES (NULL, printf('%.60000c', 'x')), (NULL, NULL);
        SELECT rowid FROM t WHERE s LIKE p; SELECT s GLOB p FROM t WHERE rowid = 1;
        SELECT NULL NOT LIKE p FROM t WHERE rowid = 1; SELECT s LIKE p ESCAPE NULL FROM t;
        SELECT s LIKE p ESCAPE 'ab' FROM t WHERE rowid = 1; SELECT s LIKE p FROM t WHERE rowid = 2;",
    );
}

#[test]
fn constant_patterns() {
    let mut sql = TEXTS.to_owned();
    for pattern in [
        "%words%",
        "words%",
        "%words",
        "words",
        "%WORDS%there%",
        "%words%words%",
        "%",
        "%%",
        "",
        "%_%",
        "_%",
        "w_rds",
        "%1%",
        "1%5",
        "%.5",
        "%%words%%there",
        "quick%there",
        "quick%e%e",
        "a!%b",
        "a!_b",
        "!%",
        "%!%%",
        "%!",
        "!",
        "%k%",
        "%é%",
        "ÉTÉ%",
        "%aab",
        "%aaaB",
        "ab%ab%ac",
        "%abac",
        "a*b",
        "*words*",
        "words*",
        "*WORDS",
        "*",
        "",
        "w?rds",
        "*[b]*",
        "a[*]b",
        "a[[]b",
        "*s*d*",
        "12*5",
        "%words%yyy%",
        "%y%words%",
        "*xwordsy*",
    ] {
        for (shape, escape) in [
            ("LIKE", ""),
            ("NOT LIKE", ""),
            ("LIKE", " ESCAPE '!'"),
            ("GLOB", ""),
            ("NOT GLOB", ""),
        ] {
            // What is bound to no value, too, is known before the rows are.
            sql.push_str(&format!(
                "SELECT group_concat(id) FROM t WHERE s {shape} '{pattern}'{escape};
                 SELECT group_concat(id) FROM t WHERE s {shape} coalesce(?1, '{pattern}'){escape};"
            ));
        }
    }
    same(&sql);
    same(&format!(
        "{TEXTS} PRAGMA case_sensitive_like = 1; SELECT id FROM t WHERE s LIKE '%words%'; SELECT id FROM t WHERE s LIKE 'W%S%';"
    ));
}

#[test]
fn patterns_that_are_wrong_or_unknown() {
    for condition in [
        "s LIKE NULL",
        "s LIKE 'w%' ESCAPE NULL",
        "s LIKE 'w%' ESCAPE 'ab'",
        "s LIKE 'w%' ESCAPE ''",
        "s LIKE printf('%.60000c', 'x')",
        "s LIKE coalesce(?1, printf('%.60000c', 'x'))",
        "s LIKE '%w' || ?1",
        "s LIKE 'w%' ESCAPE coalesce(?1, 'ab')",
        "s LIKE '%' || s",
        "s LIKE 5",
        "s GLOB x'2a'",
        "upper(s) LIKE 'WORDS%' OR lower(s) GLOB '*there'",
        "CASE WHEN s LIKE '%o%' THEN s GLOB 'w*' ELSE s LIKE '%1%' END",
    ] {
        same(&format!("{TEXTS} SELECT id FROM t WHERE {condition};"));
    }
}

#[test]
fn the_first_that_is_not_null() {
    let table = "CREATE TABLE n(a INT, b, c, d INT, PRIMARY KEY (a, d));
        WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 400)
            INSERT INTO n SELECT i, iif(i % 3, i, NULL), CASE i % 5 WHEN 1 THEN 'x' || i WHEN 2 THEN i / 2.0 END, i % 7 FROM r;";
    for query in [
        "sum(coalesce(nullif(d, 3), 0)), count(nullif(d, 3)) FROM n",
        "group_concat(coalesce(b, c, 'none')), sum(ifnull(b, d)) FROM n",
        "coalesce(b, c, a), typeof(coalesce(c, b)), ifnull(c, -1) FROM n",
        "a FROM n WHERE coalesce(b, c, d > 3)",
        "a, coalesce(b, abs(iif(a = 33, -9223372036854775807 - 1, 1))) FROM n",
        "coalesce(c, (SELECT max(b) FROM n m WHERE m.a < n.a), 7) FROM n",
        "nullif(c, 'X1'), nullif(b, 4.0), nullif(c, 'x1') COLLATE NOCASE, nullif(NULL, d), nullif(d, NULL) FROM n",
        "min(a, d, b), max(a, d) FROM n WHERE b > 390",
        "sum(d), total(d), avg(d), count(*) FROM n",
        "json_array(coalesce(json(nullif('[1]', '')), c), ifnull(b, json('{}'))) FROM n WHERE a < 9",
    ] {
        same(&format!("{table} SELECT {query};"));
    }
}
