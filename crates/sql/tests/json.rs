//! JSON: functions, aggregates and JSONB, beside bundled SQLite.

mod support;

use support::same;

const TABLES: &str = r#"
CREATE TABLE t(j);
INSERT INTO t VALUES('{"a":[1,2]}'),('[3]');
"#;

/// Each statement over the tables.
fn each(statements: &[&str]) {
    let script: Vec<String> = statements.iter().map(|s| format!("{s};\n")).collect();
    same(&format!("{TABLES}{}", script.concat()));
}

#[test]
fn texts_of_json_count_as_json_where_an_expression_makes_them() {
    each(&[
        "SELECT json_array(CASE WHEN 1 THEN json('[1]') END, coalesce(NULL,json('[1]')), iif(1,json('[1]'),2), ifnull(json('[1]'),2), nullif(json('[1]'),2))",
        "SELECT json_array(min(json('[1]'),json('[2]')), max(json('[1]'),'z'), likely(json('[1]')), +json('[1]'), CAST(json('[1]') AS TEXT), json('[1]') COLLATE nocase)",
        "SELECT json_array(min(json(j)), max(json(j))) FROM t",
        "SELECT json_array((SELECT json(j) FROM t)), json_array((SELECT min(json(j)) FROM t)), json_array((SELECT json_group_array(j) FROM t)), json_array((SELECT json_group_array(json(j)) FROM t))",
        "SELECT json_array(x) FROM (SELECT json(j) AS x FROM t)",
        "SELECT json_array(x) FROM (SELECT json(j) AS x FROM t ORDER BY 1)",
        "SELECT json_array(x) FROM (SELECT json(j) AS x FROM t LIMIT 1)",
        "SELECT json_array(x) FROM (SELECT DISTINCT json(j) AS x FROM t)",
        "SELECT json_array(x) FROM (SELECT json(j) AS x FROM t UNION ALL SELECT json('[9]'))",
        "WITH c(x) AS MATERIALIZED (SELECT json(j) FROM t) SELECT json_array(x) FROM c",
        "SELECT json_array(x) FROM (SELECT json_group_array(j) AS x FROM t)",
        "SELECT json_array(x, y) FROM (SELECT json_group_array(j) AS x, count(*) y FROM t), t",
        "SELECT json_array(json_group_array(j)) FROM t",
        "SELECT json_array(json_group_array(j)), json_array(json(j)) FROM t GROUP BY j",
        "SELECT json_array(json(j)) FROM t GROUP BY json(j)",
        "SELECT (SELECT json_array(x)) FROM (SELECT json(j) x FROM t)",
        r#"SELECT json_quote(json('[1]')), json_quote('[1]'), subtype(json('[1]')), subtype(jsonb_array(1)), subtype(json_extract('{"a":1}','$.a')), subtype('{"a":[1]}'->'a'), subtype('{"a":[1]}'->>'a'), subtype(json_extract('{"a":[1]}','$.a')), subtype(json_quote(1)),subtype(json_array()),subtype(json_pretty('1')), subtype(json_patch('{}','{}')), subtype(json_remove('{}'))"#,
        "SELECT json_array(x'00'), json_array(x'0c')",
        "SELECT json_array(x'ff')",
        "SELECT iif(1,'[1]',2)->0, json_object('x', iif(0,json('[]'),'[]')), json_object('x', coalesce(NULL, NULL)), json_object('x',CASE 2 WHEN 1 THEN json('[]') ELSE json('{}') END)",
    ]);
}

#[test]
fn functions_refuse_what_is_no_json_or_path() {
    each(&[
        "SELECT json(x'5b315d'), json_valid(x'5b315d'), json_valid('{a:1}'), json_valid('{a:1}',2), json_valid('1',0)",
        "SELECT json_object('a')",
        "SELECT json_object(1,2)",
        r#"SELECT json_extract('{"a":1}')"#,
        "SELECT json_extract()",
        r#"SELECT json_extract('{"a":1}','a')"#,
        r#"SELECT json_extract('{"a":1}','$.')"#,
        r#"SELECT json_extract('{"a":1}','$.a.')"#,
        r#"SELECT json_extract('{"a":1}','$a')"#,
        "SELECT json('')",
        "SELECT json_set()",
        "SELECT json_remove()",
        "SELECT json(1,2)",
        "SELECT json_group_object('a')",
        "SELECT json_type('x')",
        "SELECT json_array_length('[1,2]','a')",
        r#"SELECT json_extract('{"a":0x11111111111111111}','$.a')"#,
        "SELECT json_group_array(x'ff') FROM t",
        r#"SELECT json_error_position('[1'), json_error_position('[1]'), json_error_position(''), json_error_position('{"a" 1}'), json_error_position('[1,,2]'), json_error_position('ä"'), json_error_position('"äb\q"'), json_error_position('1 2'), json_error_position('[1,2}'), json_error_position('{a'), json_error_position('{"a":}'), json_error_position('01'), json_error_position('-'), json_error_position('1e'), json_error_position('tru'), json_error_position('[1 2]')"#,
        r#"SELECT json_patch('{"a":1,"b":{"c":2}}','{"a":null,"b":{"d":3},"e":{"f":null,"g":1}}'), json_patch('[1]','{"a":1}'), json_patch('{"a":1}','[1]'), json_patch('{"a":1}','{}'), json_patch(NULL,'{}'), json_patch('{}',NULL)"#,
        r#"SELECT hex(jsonb('{"a":[1,2.5,"x",null,true,false]}')), hex(jsonb('[]')), hex(jsonb('"a\n"')), hex(jsonb('''a''')), hex(jsonb('0x1f')), hex(jsonb('.5')), hex(jsonb('{a:1}'))"#,
        r#"SELECT json(jsonb('{"a":[1,2.5,"x",null]}')), json_valid(jsonb('[1]'),4), json_valid(jsonb('[1]'),8), json_valid(jsonb('[1]')), json_valid(x'ff',4), json_valid(x'ff'), json_valid(NULL), json_valid(5), json_valid('abc')"#,
        r#"SELECT hex(jsonb_set('{"a":"hello world this is"}','$.a','x')), hex(jsonb_set('{"a":"hello"}','$.a','xyz')), hex(jsonb_replace('[12345678]','$[0]',1)), hex(jsonb_remove('[1,2]','$[0]')), hex(jsonb_insert('{}','$.a.b',1)), hex(jsonb_patch('{"a":"hello"}','{"a":1}')), hex(jsonb_patch('{"a":[1,2,3,4,5,6,7]}','{"a":{"b":1}}')), hex(jsonb_array(1,'x')), hex(jsonb_object('a',1)), hex(jsonb_extract('{"a":[1]}','$.a')), hex(jsonb_array_insert('[1]','$[0]','x'))"#,
        "SELECT '[1]'->>'#'",
        r#"SELECT json_valid('{"a":1}'), json_valid('{"a":1,}'), json_valid('[1,]'), json_valid('[01]'), json_valid('"'||char(9)||'"'), json_valid('''a'''), json_valid('+1'), json_valid('1.'), json_valid(' 1 '), json_valid('/**/1'), json_valid('1/**/'), json_valid('{"a":1}x'), json_valid('1'||char(11))"#,
        "SELECT json(x'33')",
        "SELECT json(x'1331')",
        "SELECT json_quote(x'ff')",
    ]);
}

#[test]
fn aggregates_make_arrays_and_objects() {
    each(&[
        "SELECT json_group_object(NULL,1), json_group_object('a',2) FROM t",
        "SELECT json_group_array(j), json_group_object(rowid, j), hex(jsonb_group_array(rowid)), hex(jsonb_group_object('x',rowid)) FROM t",
        "SELECT json_group_array(j) FILTER (WHERE rowid>1), json_group_array(rowid ORDER BY rowid DESC), json_group_array(DISTINCT 1), json_group_array(json(j) ORDER BY rowid DESC) FROM t",
        "SELECT json_group_array(j) FROM t WHERE 0",
        "SELECT json_group_object('a',1), hex(jsonb_group_array(1)), hex(jsonb_group_object('a',1)) FROM t WHERE 0",
        "SELECT rowid, json_group_array(rowid) FROM t GROUP BY rowid",
    ]);
}

#[test]
fn elements_are_found_by_paths_and_arrows() {
    each(&[
        r#"SELECT '{"a":1}'->'$.', '{"a":1}'->'a.b', '{"a.b":1}'->'a.b', '[1,2]'->-1, '[1,2]'->'[0]', '{"1":2}'->1"#,
        r#"SELECT '{"a":1}'->'a.b', '{"a.b":1}'->'a.b', '[1,2]'->-1, '[1,2]'->'[0]', '{"1":2}'->1"#,
        r#"SELECT json_extract('{"a":0x1111111111111111,"b":0xffffffffffffffff,"c":-0x10}','$.a','$.b','$.c')"#,
        r#"SELECT '{"b":0xffffffffffffffff}'->>'b'"#,
        r#"SELECT json('{"a":1,"a":2}'), json('{"a":1,"a":2}')->'a', json_extract('{"a":1,"a":2}','$.a')"#,
        r#"SELECT json_extract('{"a":{"b":[10,20,{"c":"x"}]}}','$.a.b[2].c'), json_extract('[1,2,3]','$[#-1]'), json_extract('[1,2,3]','$[#]'), json_extract('[1,2,3]','$[3]'), json_extract('[1,2,3]','$[0]','$[9]'), json_extract('{"a b":1}','$."a b"'), json_extract('{"a\"b":1}','$."a\"b"')"#,
        r#"SELECT json('"a	b"'), json('"'||char(10)||'"'), '"\ud83d\ude00"'->>'$', '"\ud83d"'->>'$', '"\u00e9\n"'->>'$', '"\u0000a"'->>'$', json('"\x41\v\0\''"')"#,
        r#"SELECT '[1,2,3]'->1, '[1,2,3]'->>1, '{"a":"x"}'->'a', '{"a":"x"}'->>'a', '{"a":null}'->'a', '{"a":null}'->>'a', '{}'->'a', NULL->'a', '{}'->NULL, '[1]'->-1, '{"a":{"b":1}}'->'a'->'b', '{"a":{"b":1}}'->>'$.a.b', '{"a":1}'->'$.a'"#,
        "SELECT min(json_extract(j,'$[0]')) FROM t",
        "SELECT json_extract(j,'$.a') IS NULL, count(*) FROM t GROUP BY 1",
        "SELECT json_array(1,2)->>1, json_array(1)->'$'||'x'",
        "SELECT '[1.0,1e2,-0,123456789012345678901,1.5e400]'->>1, '[-0]'->>0, '[123456789012345678901]'->>0, '[1e400]'->>0, json('[1.0,1e2,-0,123456789012345678901,1.5e400]')",
        "SELECT rowid FROM t WHERE json_extract(j,'$.a') = '[1,2]'",
        r#"SELECT "->"('[5]',0), "->>"('[5]',0)"#,
    ]);
}

#[test]
fn documents_are_changed_along_paths() {
    each(&[
        "SELECT json_set('{}','$.a',0.1,'$.b',9e999,'$.c',1e100, '$.d', 2.0/3, '$.e', 1e15)",
        "SELECT json_set('{}','$.a')",
        "SELECT json_insert('{}','$.a')",
        r#"SELECT json_array_insert('[1,2]','$[0]',9), json_array_insert('{"a":[1]}','$.a[#]',9)"#,
        "SELECT json_array_insert('[1,2]','$',9)",
        r#"SELECT json_array_insert('{"a":1}','$.a',9)"#,
        r#"SELECT json_array_insert('{"a":1}','$.b.c',9)"#,
        r#"SELECT json_array_insert('{"a":1}','$.b.c[0]',9)"#,
        r#"SELECT json_array_insert('{"a":1}','$.b[0].c',9)"#,
        r#"SELECT json_set('{"a":1}','$.a',2,'$.b',json('[1]'),'$.c','[1]','$.d.e.f',5,'$.g[0]',1,'$.h[1]',1,'$.i[#]',NULL)"#,
        r#"SELECT json_insert('{"a":1}','$.a',2,'$.b',3), json_replace('{"a":1}','$.a',2,'$.b',3), json_set('[1,2]','$[#]',3,'$[0]','x'), json_set('[1]','$[5]',1)"#,
        r#"SELECT json_remove('{"a":1,"b":[1,2,3]}','$.a','$.b[1]'), json_remove('[1,2,3]','$[#-1]','$[0]'), json_remove('{}','$'), json_remove('{}','$.x')"#,
    ]);
}

#[test]
fn jsonb_is_the_same_byte_by_byte() {
    each(&[
        "SELECT jsonb_replace('{}','$.a')",
        r#"SELECT json_quote(NULL), json_quote(1.5), json_quote('a"b'), json_quote(jsonb('[1]'))"#,
    ]);
}

#[test]
fn texts_are_read_as_json5_and_written_as_json() {
    each(&[
        "SELECT json_array(1.0, 0.1, 1e100, 9e999, -9e999, 1.5e-7, 123456789012345678, 100.0, 1e15,1e17, 3.14159265358979, 2.0/3)",
        "SELECT json_object('a',json_array(1),'b','[1]')",
        r#"SELECT json('{a:1,b:[1,2,],}'), json('[1,]'), json(' [ 1 , 2 ] '), json('"a\u0041"'), json('''a"b'''), json('+1'), json('.5'), json('5.'), json('-.5'), json('0x1F'), json('-0x1F'), json('Infinity'), json('-Infinity'), json('NaN')"#,
        r#"SELECT json_type('{"a":[null,true,false,1,1.5,"x",{}]}', '$.a[0]'), json_type('[true]','$[0]'), json_type('[1.0]','$[0]'), json_type('["x"]','$[0]'), json_type('[{}]','$[0]'), json_type('[]')"#,
        r#"SELECT json_array_length('[1,2,3]'), json_array_length('{"a":[1]}','$.a'), json_array_length('{}'), json_array_length('[1]','$.x')"#,
        r#"SELECT json_pretty('{"a":[1,2,{}],"b":{},"c":[]}'), json_pretty('[1,[2]]','  '), json_pretty('1'), json_pretty('[]'), json_pretty(NULL), json_pretty('[1]',NULL)"#,
        "SELECT json(X'7b7d'), json(X'5b5d')",
        "SELECT json_array(json_array(json_array('a'))), json_object('a',json_object('b',json('[]')))",
    ]);
}

#[test]
fn expressions_of_json_are_indexed_and_checked() {
    each(&[
        "CREATE TABLE q(id INTEGER PRIMARY KEY, j TEXT)",
        r#"INSERT INTO q(j) SELECT json_object('a', value, 'b', json_array(value)) FROM json_each('[1,2,3,"x",[7]]')"#,
        "CREATE INDEX qa ON q(json_extract(j,'$.a'))",
        "CREATE INDEX qb ON q(j ->> 'b')",
        "SELECT id FROM q WHERE json_extract(j,'$.a') = 2",
        "SELECT id FROM q WHERE j ->> 'b' = '[3]'",
        "SELECT id FROM q WHERE json_extract(j,'$.a') > 1 ORDER BY id",
        "SELECT id FROM q WHERE json_extract(j,'$.a') IN (1,3) ORDER BY id",
        "SELECT id FROM q WHERE json_extract(j,'$.a') IS NULL",
        "INSERT INTO q(j) VALUES ('{bad')",
        "UPDATE q SET j = json_set(j, '$.a', 99) WHERE json_extract(j,'$.a') = 1",
        "SELECT id, j FROM q WHERE json_extract(j,'$.a') = 99",
        "DELETE FROM q WHERE j ->> 'a' = 'x'",
        "SELECT count(*) FROM q",
        "CREATE INDEX bad ON q(json_array(random()))",
        "CREATE TABLE d(j DEFAULT (json_array(1,2)), k CHECK (json_valid(k) OR k IS NULL))",
        r#"INSERT INTO d(k) VALUES ('{"x":1}') RETURNING j, k ->> 'x'"#,
        "INSERT INTO d(k) VALUES ('{x') ",
        "SELECT json_array(?), json_object(?, 1)",
        "SELECT json_extract(?, '$')",
        r#"SELECT json_pretty('[[1,{"a":[]}],{"b":null}]', '>')"#,
    ]);
}

/// A condition that may fail was never answered by an index.
#[test]
fn an_index_on_an_expression_of_json_is_used() {
    let session = support::session();
    let tables = "CREATE TABLE t(id INTEGER PRIMARY KEY, j TEXT, k TEXT);
        CREATE INDEX a ON t(json_extract(j, '$.a'));
        CREATE INDEX b ON t(j ->> 'b') WHERE k = 'x';
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO t(j, k) SELECT json_object('a', i, 'b', i), 'x' FROM n";
    support::must(&session, tables);
    let plan = |sql: &str| support::must(&session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n");
    let used = plan("SELECT id FROM t WHERE json_extract(j, '$.a') = 2");
    assert!(used.contains("USING COVERING INDEX a"), "{used}");
    let used = plan(
        "SELECT u.id FROM json_each('[1,2]') e JOIN t u ON json_extract(u.j, '$.a') = e.value",
    );
    assert!(used.contains("USING COVERING INDEX a"), "{used}");
    // Rows that a partial index has not may fail.
    let scanned = plan("SELECT id FROM t WHERE j ->> 'b' = 2");
    assert!(!scanned.contains("USING"), "{scanned}");
}

/// Texts that come again are kept, by where they lie and as long as they are the same: rows of
/// a batch in several calls, constants, texts made on the way, and those that take their places.
#[test]
fn several_calls_have_the_same_texts() {
    let rows = |count: usize| {
        format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, j TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {count})
             INSERT INTO t SELECT i, json_object('a', i, 'b', json_array(i, 'x' || i),
                'c', printf('%.*c', i * 7 % 90, 'y')) FROM n"
        )
    };
    for count in [3, 40, 5_000] {
        same(&format!(
            "{}; SELECT count(*), sum(j ->> 'a'), sum(j -> '$.b[0]'), max(j ->> '$.b[1]'),
                sum(length(j ->> 'c')), sum(json_array_length(j, '$.b')) FROM t;
             SELECT j ->> 'a', json_extract(j, '$.b', '$.a') FROM t WHERE j ->> 'a' % 97 = 1;
             SELECT sum(json_extract(json_extract(j, '$.b'), '$[0]')), sum(j ->> 'a') FROM t;
             SELECT sum('[1,2]' ->> 0), sum('[1,2]' ->> 1), sum(j ->> 'a') FROM t;
             UPDATE t SET j = json_set(j, '$.a', id + 1) WHERE json_type(j, '$.a') = 'integer';
             SELECT sum(j ->> 'a'), sum(j ->> 'a' + 1), min(j ->> '$.b[#-1]') FROM t",
            rows(count)
        ));
    }
    same(&format!(
        "{}; UPDATE t SET j = replace(j, '}}', ']') WHERE id = 70;
         SELECT j ->> 'a', j ->> '$.b[0]', json_valid(j) FROM t WHERE id < 72",
        rows(100)
    ));
    // One after another in the same place, of the same length.
    same(
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n LIMIT 900)
         SELECT sum(('{\"a\":' || i || '}') ->> 'a'), sum(('[' || i || ',' || i || ']') ->> 1) FROM n",
    );
    // More than is kept.
    same(
        "CREATE TABLE t(j); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 40)
         INSERT INTO t SELECT json_object('a', printf('%.*c', 200000 + 20000 * i, 'x'), 'b', i) FROM n;
         SELECT sum(j ->> 'b'), sum(length(j ->> 'a')), sum(j ->> 'b'), sum(j -> 'b') FROM t",
    );
}
