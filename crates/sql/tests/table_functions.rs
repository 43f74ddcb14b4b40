//! Table-valued functions in FROM, `json_each` and its like and PRAGMAs, beside bundled
//! SQLite.

mod support;

use support::same;

const TABLES: &str = r#"
CREATE TABLE t(j);
INSERT INTO t VALUES('{"a":[1,2]}'),('[3]'),(NULL),('{"b c":{"d":[null,true,{"e":1.5}]},"x":"y"}');
CREATE TABLE p(id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', tags);
INSERT INTO p(name,tags) VALUES ('a','["x","y"]'),('b','["y"]'),('c',NULL),('d','[]');
CREATE INDEX pn ON p(name, id DESC);
CREATE VIEW v AS SELECT p.id, e.value AS tag FROM p, json_each(p.tags) e;
CREATE TABLE ch(a REFERENCES p(id) ON DELETE CASCADE, b UNIQUE);
"#;

/// Each statement over the tables.
fn each(statements: &[&str]) {
    let script: Vec<String> = statements.iter().map(|s| format!("{s};\n")).collect();
    same(&format!("{TABLES}{}", script.concat()));
}

#[test]
fn values_of_elements_count_as_json_where_they_are_json() {
    each(&[
        r#"SELECT json_array(value) FROM json_each('[[1],{"a":2},"[3]",4]')"#,
        "SELECT json_array(value), json_array(json(j)) FROM t, json_each(j) ORDER BY t.rowid, value",
        "SELECT (SELECT json_array(value)) FROM json_each('[[1]]')",
        r#"SELECT json_object('v', coalesce(value, 1)), json_array(iif(1,value,2)), json_array(upper(value)) FROM json_each('[[1],"a",null]')"#,
        "SELECT json_array(value) FROM jsonb_each('[[1],2]')",
        r#"SELECT json_array(x) FROM (SELECT value AS x FROM json_each('[[1],{"a":2},"[3]",4]')), (SELECT 1)"#,
        r#"SELECT json_array(x) FROM (SELECT coalesce(value,1) AS x FROM json_each('[[1],{"a":2},"[3]",4]'))"#,
        r#"SELECT (SELECT json_array(x)) FROM (SELECT value AS x FROM json_each('[[1],{"a":2},"[3]",4]'))"#,
        "WITH e AS (SELECT value FROM json_each('[[1]]')) SELECT json_array(value) FROM e",
        "SELECT json_array(value) FROM json_each('[[1]]') ORDER BY value",
        "SELECT json_set('{}', '$.a', value, '$.b', atom) FROM json_each('[[1],2]')",
        r#"SELECT json_quote(value) FROM json_each('[[1],2,"x"]')"#,
        r#"SELECT subtype(value) FROM json_each('[[1],2,"x"]')"#,
        r#"SELECT json_array(json_extract(value,'$[0]')) FROM json_each('[["[x]"],[[2]]]')"#,
    ]);
}

#[test]
fn functions_are_joined_with_what_their_arguments_read() {
    each(&[
        r#"SELECT json_group_array(value) FROM json_each('[[1],{"a":2},"[3]",4]')"#,
        r#"SELECT json_group_array(value) FROM (SELECT value FROM json_each('[[1],{"a":2},"[3]",4]') ORDER BY key DESC)"#,
        r#"SELECT json_group_array(value) FROM (SELECT value FROM json_each('[[1],{"a":2},"[3]",4]'))"#,
        "SELECT * FROM json_each(x) , (SELECT '[5]' AS x)",
        "SELECT * FROM json_tree(j) , t",
        "SELECT t.rowid, e.fullkey, e.atom FROM t, json_tree(t.j) AS e ORDER BY 1, e.id",
        "SELECT t.rowid, e.key, e.value FROM t LEFT JOIN json_each(t.j) AS e ORDER BY 1, e.id",
        "SELECT t.rowid, e.key, e.value FROM t LEFT JOIN json_each(t.j) AS e ON e.type='object' ORDER BY 1, e.id",
        "SELECT t.rowid, key FROM t JOIN json_each(t.j) ON json_each.key = 'a'",
        "SELECT rowid FROM t WHERE EXISTS (SELECT 1 FROM json_each(t.j) WHERE value = 3)",
        "SELECT name FROM p WHERE 'y' IN (SELECT value FROM json_each(p.tags)) ORDER BY 1",
        "SELECT name, (SELECT count(*) FROM json_each(tags)), (SELECT json_group_array(value) FROM json_each(tags)) FROM p ORDER BY id",
        "SELECT name, value FROM p, json_each(p.tags) WHERE value LIKE 'y%' ORDER BY 1,2",
        "SELECT value, count(*) FROM p, json_each(p.tags) GROUP BY value ORDER BY 1",
        "SELECT json_each.value, p.name FROM p JOIN json_each(p.tags) ORDER BY 1,2",
        "SELECT e.value, p.id FROM json_each('[1,2,9]') e LEFT JOIN p ON p.id = e.value ORDER BY 1",
        "SELECT e.value, f.value FROM json_each('[[1,2],[3]]') e, json_each(e.value) f",
        "SELECT * FROM v ORDER BY 1,2",
        "WITH RECURSIVE w(v) AS (SELECT '[[1],[2,[3]]]' UNION ALL SELECT e.value FROM w, json_each(w.v) e WHERE json_valid(w.v) AND e.type = 'array') SELECT * FROM w",
        "SELECT * FROM t(1)",
        "SELECT * FROM v(1)",
        "SELECT * FROM t WHERE 1 IN json_each('[1]')",
        "SELECT * FROM json_each('[1]') NATURAL JOIN json_each('[1,2]')",
        "SELECT a.value FROM json_each('[1,2,3]') a JOIN json_each('[2,3,4]') b USING (value)",
        r#"SELECT a.value FROM json_each(b.value) a, json_each('["[1,2]","[3]"]') b"#,
        "SELECT a.value FROM json_each(a.value) a",
        "SELECT a.value FROM json_each('[[5]]') b LEFT JOIN json_each(b.value) a ON a.value > 7",
        "SELECT * FROM json_each('[1]') a LEFT JOIN json_each(c.value) b LEFT JOIN json_each('[[1]]') c",
        "SELECT (SELECT max(value) FROM json_each(tags)) AS m FROM p ORDER BY m",
        "SELECT name FROM p WHERE json_array_length(tags) > 1",
        "SELECT p.name FROM p RIGHT JOIN json_each('[1,7]') e ON e.value = p.id ORDER BY 1",
        "SELECT p.name, e.value FROM p FULL JOIN json_each('[1,7]') e ON e.value = p.id ORDER BY 1,2",
        r#"SELECT json_group_array(value) FROM (SELECT value FROM json_each('[[1],{"a":2},"[3]",4]'))"#,
        r#"SELECT json_group_array(x) FROM (SELECT value AS x FROM json_each('[[1],{"a":2},"[3]",4]') WHERE type <> 'integer')"#,
        "SELECT a.value FROM json_each(a.value) a",
        "SELECT * FROM json_each('[1]') a LEFT JOIN json_each(c.value) b LEFT JOIN json_each('[[1]]') c",
        "SELECT * FROM json_each(b.value) a LEFT JOIN json_each('[[1]]') b",
        "SELECT * FROM json_each(c.value) a, json_each('[2]') b LEFT JOIN json_each('[[1]]') c",
        r#"SELECT * FROM json_each(b.value) a, json_each('["[1]"]') b LEFT JOIN json_each('[[1]]') c"#,
        r#"SELECT b.value, a.value FROM (SELECT 1) x LEFT JOIN json_each('["[1]"]') b, json_each(b.value) a"#,
        r#"SELECT a.value FROM json_each(b.value) a JOIN json_each('["[1]"]') b"#,
        "SELECT json_group_array(value) FILTER (WHERE type='array') FROM json_each('[[1],2]')",
    ]);
}

#[test]
fn pragmas_stand_in_from() {
    each(&[
        "SELECT * FROM pragma_nosuch('t')",
        "SELECT * FROM pragma_table_info('t')",
        "SELECT * FROM pragma_table_info('P')",
        "SELECT * FROM pragma_table_info('v')",
        "SELECT * FROM pragma_table_xinfo('p')",
        "SELECT * FROM pragma_table_info",
        "SELECT * FROM pragma_table_info WHERE arg='t'",
        "SELECT arg, schema, name FROM pragma_table_info('t','main')",
        "SELECT arg, schema, name FROM pragma_table_info('t')",
        "SELECT * FROM pragma_table_info('t','nosuch')",
        "SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, c.cid",
        "SELECT m.name, i.name, x.name FROM sqlite_schema m JOIN pragma_index_list(m.name) i JOIN pragma_index_info(i.name) x ORDER BY 1,2,x.seqno",
        "SELECT * FROM pragma_index_list('p')",
        "SELECT * FROM pragma_index_xinfo('pn')",
        "SELECT * FROM pragma_foreign_key_list('ch')",
        "SELECT name, ncol FROM pragma_table_list WHERE type='table' AND name NOT LIKE 'sqlite%' ORDER BY 1",
        "SELECT name FROM pragma_collation_list ORDER BY 1",
        "SELECT name FROM pragma_database_list",
        "SELECT count(*) FROM pragma_table_info('sqlite_schema')",
        "SELECT 'j' IN (SELECT name FROM pragma_table_info('t'))",
    ]);
}

#[test]
fn elements_are_rows() {
    each(&[
        r#"SELECT json_group_array(value ORDER BY key DESC) FROM json_each('[[1],{"a":2},"[3]",4]')"#,
        r#"SELECT json_group_array(DISTINCT value) FROM json_each('[[1],{"a":2},"[3]",4,4,[1]]')"#,
        r#"SELECT json_group_object(key, value) FROM json_each('{"a":[1],"b":{"c":2},"d":"[3]"}')"#,
        "SELECT * FROM json_each",
        "SELECT * FROM json_each WHERE json='[1]'",
        "SELECT * FROM json_each WHERE '[1,2]' = json AND root = '$'",
        r#"SELECT * FROM json_each WHERE json='{"a":[7,8]}' AND root = '$.a'"#,
        "SELECT count(*) FROM json_each('[1]','$','x')",
        "SELECT * FROM nosuch(1)",
        "SELECT rowid, key FROM json_each('[1,2]')",
        "SELECT json, root, * FROM json_each('[1,2]','$')",
        "SELECT * FROM json_each('[1', '$')",
        "SELECT * FROM json_each('[1]', 'x')",
        "SELECT * FROM json_each('[1]', NULL)",
        "SELECT * FROM json_each(NULL)",
        "SELECT * FROM json_each('5')",
        "SELECT * FROM json_each('{}')",
        r#"SELECT * FROM json_each('{"a":{"b":[1,2]}}','$.a.b[1]')"#,
        r#"SELECT * FROM json_each('{"a":{"b":[1,2]}}','$.a.b')"#,
        r#"SELECT * FROM json_each('{"a":{"b":[1,2]}}','$.x')"#,
        r#"SELECT * FROM json_tree('{"a":{"b":[1,2]}}','$.a.b[1]')"#,
        r#"SELECT * FROM json_tree('{"a":{"b":[1,2]}}','$.a.b')"#,
        r#"SELECT * FROM json_tree('{"a":{"b":[1,2]}}','$.a')"#,
        r#"SELECT * FROM json_tree('[1,[2,3],{"a":4}]','$[1]')"#,
        r#"SELECT * FROM json_tree('[1,[2,3],{"a":4}]','$[#-1]')"#,
        r#"SELECT * FROM json_tree('{"b c":{"d":[null,true,{"e":1.5}]},"x":"y","a1":[],"":{},"é":1,"q\"":2}')"#,
        r#"SELECT * FROM json_tree('"x"')"#,
        "SELECT * FROM json_tree('[]')",
        "SELECT e.value, f.value FROM json_each('[1,2]') e, json_each('[3,4]') f ORDER BY 1,2",
        "SELECT * FROM (SELECT value x FROM json_each('[3,1,2]')) ORDER BY x",
        "SELECT * FROM jsonb_each('[[1],2]')",
        r#"SELECT hex(value), type FROM jsonb_tree('[[1],{"a":2}]')"#,
        r#"SELECT * FROM json_each(jsonb('[1,{"a":2}]'))"#,
        "SELECT 1 IN (SELECT value FROM json_each('[1]'))",
        "SELECT json_each.* FROM json_each('[1]')",
        "SELECT e.* FROM json_each('[1]') AS e",
        "SELECT json_each.value FROM json_each('[1]') AS e",
        "SELECT e.json, e.root FROM json_each('[1]') AS e",
        "SELECT * FROM main.json_each('[1]')",
        "SELECT count(*), sum(value), max(value) FROM json_each('[1,2,3,4.5]')",
        "SELECT value FROM json_each('[3,1,2]') ORDER BY value LIMIT 2",
        "SELECT value FROM json_each('[3,1,2]') WHERE value > 1",
        r#"SELECT value FROM json_each('["1",1,"a"]') WHERE value = 1"#,
        r#"SELECT value FROM json_each('["1",1,"a"]') WHERE value = '1'"#,
        r#"SELECT typeof(key), typeof(value), typeof(id) FROM json_each('{"a":1.5}')"#,
        r#"SELECT DISTINCT type FROM json_tree('[1,2,"x",[null]]')"#,
        "SELECT key FROM json_each('[1]') WHERE json = '[1]'",
        "SELECT x FROM (SELECT 5 AS x) WHERE x IN (SELECT value FROM json_each('['||x||']'))",
        r#"SELECT group_concat(value, '-') FROM json_each('["a","b"]')"#,
        r#"SELECT key, value FROM json_each('{"a":1,"b":2}') UNION SELECT 'z', 9"#,
        "SELECT * FROM json_each(?)",
        "SELECT count(*) FROM json_tree('[[[[[[1]]]]]]') WHERE atom IS NOT NULL",
        "SELECT json_extract(value, '$[0]') FROM json_each('[[1],[[2]]]')",
        "SELECT value -> 0, value ->> 0 FROM json_each('[[1],[[2]]]')",
        r#"SELECT json_group_array(json_extract(value,'$[0]')) FROM json_each('[["[x]"],[[2]]]')"#,
    ]);
}

#[test]
fn functions_stand_in_views_and_writes() {
    each(&[
        r#"INSERT INTO t SELECT value FROM json_each('["n1","n2"]')"#,
        "SELECT * FROM t WHERE j LIKE 'n%'",
        r#"UPDATE p SET name = name || e.value FROM json_each('["Q"]') e WHERE p.id = 1"#,
        "SELECT name FROM p WHERE id = 1",
        r#"DELETE FROM t WHERE j IN (SELECT value FROM json_each('["n1","n2"]'))"#,
        "SELECT count(*) FROM t",
        "CREATE VIEW vv AS SELECT value FROM json_each('[[1]]')",
        "SELECT json_array(value) FROM vv",
    ]);
}

/// Arguments are names like others, in views too, and stay right when these are renamed.
#[test]
fn renamed_tables_and_columns_are_renamed_in_arguments() {
    let statements = [
        "CREATE TABLE p(id INTEGER PRIMARY KEY, tags, name)",
        "INSERT INTO p(tags) VALUES ('[1,[2]]'),('[3]')",
        "CREATE VIEW v AS SELECT p.id, e.value AS tag FROM p, json_each(p.tags) e WHERE json_array_length(tags) > 0",
        "CREATE INDEX pi ON p(json_extract(tags,'$[0]'))",
        "ALTER TABLE p RENAME COLUMN tags TO labels",
        "SELECT sql FROM sqlite_schema",
        "SELECT * FROM v",
        "ALTER TABLE p RENAME TO pp",
        "SELECT sql FROM sqlite_schema",
        "SELECT * FROM v",
        "SELECT json_array((SELECT json_quote(x) FROM (SELECT value AS x FROM json_each('[[1]]'))))",
        "SELECT json_array((SELECT json_array(value) FROM json_each('[[1]]')))",
        "SELECT json_group_array((SELECT json_group_array(value) FROM json_each(labels))) FROM pp",
        "SELECT json_group_array(json((SELECT json_group_array(value) FROM json_each(labels)))) FROM pp",
        "SELECT json_group_object(id, json(labels)) FROM pp",
        "SELECT json_each(1)",
        "SELECT * FROM json_each('[1]') WHERE json_each MATCH 1",
        "SELECT json_tree.fullkey FROM pp, json_tree(pp.labels) WHERE json_tree.type NOT IN ('object','array') AND json_tree.value > 1 ORDER BY 1",
        "SELECT DISTINCT pp.id FROM pp, json_each(pp.labels) WHERE json_each.value = 3",
        "SELECT json_each.id AS i FROM json_each('[1,2]') ORDER BY i DESC",
        "SELECT pp.id, (SELECT group_concat(value) FROM json_each(pp.labels)) FROM pp GROUP BY pp.id",
        "SELECT e.value FROM pp JOIN json_each(pp.labels) e ON e.type = 'integer' WHERE pp.id = 1",
        "SELECT count(*) FROM pp a, json_each(a.labels) e, pp b WHERE b.id = e.value",
        "SELECT b.id FROM pp a, json_each(a.labels) e, pp b WHERE b.id = e.value",
        "SELECT * FROM json_each((SELECT labels FROM pp WHERE id = 2))",
        "SELECT * FROM json_each((SELECT json_group_array(id) FROM pp))",
        "SELECT (SELECT sum(value) FROM json_each(json_array(pp.id, 5))) FROM pp",
        "SELECT value FROM json_each('[1,2,3,4]') LIMIT 2 OFFSET 1",
        "SELECT a.value, b.value FROM json_each('[1,2]') a LEFT JOIN json_each('[2,3]') b ON a.value = b.value",
        "SELECT a.value, b.value FROM json_each('[1,2]') a JOIN json_each('[2,3]') b ON a.value = b.value",
        "SELECT * FROM (json_each('[1]') a JOIN json_each('[2]') b)",
        "SELECT x.value FROM pp LEFT JOIN (json_each(pp.labels) x JOIN json_each('[1]') y ON x.value = y.value)",
        "SELECT count(*) FROM json_each('[1,2]') WHERE rowid = 1",
        "SELECT key FROM json_each('[5,6]') ORDER BY rowid DESC",
        "SELECT max(id) FROM json_tree('[1,[2]]')",
        "SELECT rowid FROM pragma_table_info('pp')",
        "SELECT 1 FROM json_each('[1]') GROUP BY type HAVING count(*) = 1",
        r#"CREATE TABLE made AS SELECT key, value FROM json_each('[1,"x"]')"#,
        "SELECT * FROM made",
        "SELECT sql FROM sqlite_schema WHERE name = 'made'",
        "SELECT * FROM (SELECT json_array(1) AS j) WHERE json_valid(j)",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 3) SELECT json_group_array(x) FROM c",
        "SELECT * FROM pp WHERE id IN (SELECT value FROM json_each('[1,2]') WHERE value < pp.id + 1)",
        r#"INSERT INTO pp(labels) VALUES (json_array(1, json('{"a":2}'))) RETURNING labels -> 1"#,
        "UPDATE pp SET labels = json_insert(labels, '$[#]', 'new') WHERE id = 1 RETURNING labels",
        "DELETE FROM pp WHERE json_array_length(labels) = 1 RETURNING id",
        "SELECT 1 FROM json_each('[1]') INDEXED BY x",
        "SELECT 1 FROM json_each INDEXED BY x",
        "SELECT 1 FROM json_each NOT INDEXED",
        "SELECT * FROM json_each('[1]') AS t(a)",
    ];
    let script: Vec<String> = statements.iter().map(|s| format!("{s};\n")).collect();
    same(&script.concat());
}

#[test]
fn a_table_hides_a_function_of_its_name() {
    each(&[
        "CREATE TABLE json_each(x)",
        "SELECT * FROM json_each",
        "SELECT count(*) FROM json_each('[1]')",
    ]);
}

/// A function is in no database, so that any may be named. Only `main` could be.
#[test]
fn databases_before_the_names_of_functions() {
    same(
        "CREATE TABLE t(a); CREATE TEMP TABLE t(b); ATTACH ':memory:' AS x; CREATE TABLE x.t(c);
         SELECT value FROM main.json_each('[1]'); SELECT value FROM temp.json_each('[2]');
         SELECT value FROM x.json_each('[3]'); SELECT value FROM nope.json_each('[4]');
         SELECT * FROM x.json_each; SELECT name FROM x.pragma_table_info('t');
         SELECT name FROM x.pragma_table_info('t', 'main'); SELECT * FROM x.nope('t');
         CREATE VIEW x.v AS SELECT value FROM x.json_each('[5]'); SELECT * FROM x.v;
         CREATE VIEW x.w AS SELECT value FROM json_each('[6]'); SELECT * FROM x.w;
         CREATE TABLE x.json_each(d); SELECT * FROM x.json_each('[7]'); SELECT * FROM x.json_each;
         SELECT value FROM main.json_each('[8]')",
    );
}
