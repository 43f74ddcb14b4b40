//! Random statements: data, schema, transactions, and the ways to get them
//! wrong.

use crate::common::Value;
use crate::compare::Check;
use crate::expression::{Visible, Writer};
use crate::schema::{Column, Table, World};
use fastrand::Rng;

/// A statement, its parameters, and how its answers are to be compared.
#[derive(Debug, Clone)]
pub struct Statement {
    pub sql: String,
    pub parameters: Vec<Value>,
    pub check: Check,
}

impl Statement {
    pub fn plain(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            parameters: Vec::new(),
            check: Check::default(),
        }
    }
}

const ROWS_PER_TABLE: i64 = 24;
const CONFLICTS: [&str; 9] = [
    "",
    "",
    "",
    "",
    "OR REPLACE ",
    "OR IGNORE ",
    "OR ABORT ",
    "OR FAIL ",
    "OR ROLLBACK ",
];
const ROWIDS: [&str; 14] = [
    "NULL", "NULL", "1", "2", "3", "5", "8", "40", "-7", "0", "'12'", "6.0", "1.5", "'x'",
];
const TYPES: [&str; 12] = [
    "INTEGER",
    "INT",
    "TEXT",
    "REAL",
    "NUMERIC",
    "BLOB",
    "",
    "VARCHAR(10)",
    "DECIMAL(5,2)",
    "BOOLEAN",
    "DOUBLE",
    "DATE",
];

/// Draws the next statement.
pub fn next(rng: &mut Rng, world: &mut World) -> Statement {
    let bind_percent = if rng.u32(..3) == 0 { 40 } else { 0 };
    let tables = world.tables.iter().map(|table| {
        let columns = table.columns.iter().map(|column| column.name.clone());
        (table.name.clone(), columns.collect())
    });
    let mut writer = Writer {
        tables: tables.collect(),
        rng,
        parameters: Vec::new(),
        scope: Vec::new(),
        bind_percent,
    };
    let w = &mut writer;
    if world.tables.len() < 2 {
        return create_table(w, world);
    }
    let table = world.tables[w.rng.usize(..world.tables.len())].clone();
    let crowded = world
        .rows
        .get(&table.name)
        .is_some_and(|rows| *rows > ROWS_PER_TABLE);
    let mut check = Check::default();
    let sql = match w.rng.u32(..1_000) {
        _ if crowded => delete(w, &table, world),
        0..=299 => {
            let sql = insert(w, &table, world);
            check.loose = sql.contains(" RETURNING ");
            check.any_constraint = sql.contains(" ON CONFLICT ");
            sql
        }
        300..=399 => {
            check.any_constraint = true;
            // There a call may get SQLite's REAL columns as the integers that their
            // values are.
            let sql = update(w, &table, world);
            check.loose = sql.contains(" RETURNING ");
            sql
        }
        400..=449 => delete(w, &table, world),
        450..=829 => return crate::query::select(writer, world),
        830..=904 => transaction(w, world),
        905..=924 if world.tables.len() < 5 => return create_table(w, world),
        905..=929 => drop_table(w, world),
        930..=959 => create_index(w, &table),
        960..=974 => drop_index(w, world),
        _ => wrong(w, &table),
    };
    Statement {
        sql,
        parameters: writer.parameters,
        check,
    }
}

fn create_table(w: &mut Writer<'_>, world: &mut World) -> Statement {
    let name = format!("t{}", w.rng.u32(..6));
    let count = w.rng.usize(1..6);
    let mut columns = Vec::new();
    let mut parts = Vec::new();
    let mut keyed = false;
    let mut key = String::new();
    for i in 0..count {
        let mut text = format!("{}", char::from(b'a' + i as u8));
        columns.push(Column {
            name: text.clone(),
            rowid: false,
            sequence: false,
        });
        if !keyed && w.chance(if i == 0 { 50 } else { 5 }) {
            keyed = true;
            key.clone_from(&text);
            let kind = w.pick(&["INTEGER", "INTEGER", "INTEGER", "INT", "TEXT", "REAL", ""]);
            columns[i].rowid = kind == "INTEGER";
            text += &format!(" {kind} PRIMARY KEY");
            if w.chance(5) {
                text += w.pick(&[" ON CONFLICT REPLACE", " ON CONFLICT IGNORE", " DESC"]);
                columns[i].rowid &= !text.ends_with("DESC");
            }
            if columns[i].rowid && w.chance(30) {
                text += " AUTOINCREMENT";
                columns[i].sequence = true;
            }
        } else {
            text += &format!(" {}", w.pick(&TYPES));
        }
        column_constraints(w, &mut text);
        parts.push(text);
    }
    if count >= 2 && w.chance(12) {
        parts.push("UNIQUE (a, b)".into());
    }
    if count >= 2 && !keyed && w.chance(12) {
        let keys = [
            "PRIMARY KEY (b, a)",
            "PRIMARY KEY (a)",
            "PRIMARY KEY (b COLLATE NOCASE)",
        ];
        key = w.pick(&keys).trim_start_matches("PRIMARY KEY ").to_owned();
        // Of a column that turns out to be INTEGER, this is the rowid.
        columns[0].rowid = keys[1].ends_with(&key);
        columns[1].rowid = keys[2].ends_with(&key);
        parts.push(format!("PRIMARY KEY {key}"));
        key = key.replace(" COLLATE NOCASE", "");
    }
    let keys = columns.iter().filter(|column| key.contains(&column.name));
    let keys: Vec<String> = keys.map(|column| column.name.clone()).collect();
    let counts = columns.iter().any(|column| column.sequence);
    let key = (!keys.is_empty() && !counts && w.chance(25)).then_some(keys);
    if key.is_some() {
        columns.iter_mut().for_each(|column| column.rowid = false);
    }
    let table = Table { name, columns, key };
    if w.chance(12) {
        let check = of_one_row(w, &table, |w| w.condition(2));
        parts.push(format!("CHECK (coalesce({check}, 1) OR a IS NOT 3)"));
    }
    let option = match table.key {
        Some(_) => " WITHOUT ROWID",
        None => "",
    };
    let sql = format!("CREATE TABLE {}({}){option}", table.name, parts.join(", "));
    world.remember(&sql, table);
    Statement::plain(sql)
}

fn column_constraints(w: &mut Writer<'_>, text: &mut String) {
    if w.chance(12) {
        *text += " NOT NULL";
        if w.chance(10) {
            *text += w.pick(&[
                " ON CONFLICT IGNORE",
                " ON CONFLICT REPLACE",
                " ON CONFLICT FAIL",
            ]);
        }
    }
    if w.chance(10) {
        *text += " UNIQUE";
        if w.chance(15) {
            *text += w.pick(&[" ON CONFLICT REPLACE", " ON CONFLICT IGNORE"]);
        }
    }
    if w.chance(20) {
        let value = w.value();
        let sign = matches!(value, Value::Integer(i64::MIN))
            || matches!(value, Value::Real(real) if !real.is_finite());
        *text += &if sign {
            " DEFAULT 7".into()
        } else {
            format!(" DEFAULT {value}")
        };
    }
    if w.chance(15) {
        *text += w.pick(&[" COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY"]);
    }
}

fn drop_table(w: &mut Writer<'_>, world: &World) -> String {
    let name = format!("t{}", w.rng.u32(..6));
    if world.tables.len() < 3 || w.chance(30) {
        return format!("DROP TABLE IF EXISTS {}", w.pick(&["t9", "missing"]));
    }
    format!("DROP TABLE {}{name}", w.pick(&["", "IF EXISTS "]))
}

fn create_index(w: &mut Writer<'_>, table: &Table) -> String {
    let count = w.rng.usize(1..=2.min(table.columns.len()));
    let columns: Vec<String> = (0..count)
        .map(|_| {
            let at = w.rng.usize(..table.columns.len());
            let collation = w.pick(&["", "", "", " COLLATE NOCASE", " COLLATE BINARY"]);
            let order = w.pick(&["", "", " DESC", " ASC"]);
            // In brackets: a literal alone would be a column's name.
            match w.chance(15) {
                true => format!("({}){order}", of_one_row(w, table, |w| w.expression(2))),
                false => format!("{}{collation}{order}", table.columns[at].name),
            }
        })
        .collect();
    let partial = match w.chance(25) {
        true => format!(" WHERE {}", of_one_row(w, table, |w| w.condition(2))),
        false => String::new(),
    };
    let unique = w.pick(&["", "", "", "UNIQUE "]);
    let absent = w.pick(&["", "", "IF NOT EXISTS "]);
    format!(
        "CREATE {unique}INDEX {absent}i{} ON {}({}){partial}",
        w.rng.u32(..8),
        table.name,
        columns.join(", ")
    )
}

/// An expression of a row's columns alone, such as an index or CHECK may have.
fn of_one_row(
    w: &mut Writer<'_>,
    table: &Table,
    draw: impl FnOnce(&mut Writer<'_>) -> String,
) -> String {
    let tables = std::mem::take(&mut w.tables);
    let bind_percent = std::mem::take(&mut w.bind_percent);
    w.scope = visible(table, None);
    w.scope.retain(|column| column.text != "rowid");
    let text = draw(w);
    w.scope.clear();
    w.tables = tables;
    w.bind_percent = bind_percent;
    text
}

fn drop_index(w: &mut Writer<'_>, world: &World) -> String {
    if world.indexes.is_empty() || w.chance(10) {
        return format!(
            "DROP INDEX {}i{}",
            w.pick(&["", "IF EXISTS "]),
            w.rng.u32(..8)
        );
    }
    let at = w.rng.usize(..world.indexes.len());
    format!("DROP INDEX {}", world.indexes[at])
}

fn insert(w: &mut Writer<'_>, table: &Table, world: &World) -> String {
    let mut conflict = w.pick(&CONFLICTS);
    if conflict == "OR FAIL " && table.columns.iter().any(|c| c.sequence) {
        // What it leaves counts for our sequence, not for SQLite's.
        conflict = "";
    }
    let verb = if w.chance(8) {
        "REPLACE ".into()
    } else {
        format!("INSERT {conflict}")
    };
    if w.chance(4) {
        return format!("{verb}INTO {} DEFAULT VALUES", table.name);
    }
    let mut columns: Vec<&Column> = table.columns.iter().collect();
    let mut list = String::new();
    if w.chance(40) {
        w.rng.shuffle(&mut columns);
        columns.truncate(w.rng.usize(1..=columns.len()));
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        list = format!(" ({})", names.join(", "));
    }
    if w.chance(12) {
        return format!(
            "{verb}INTO {}{list} {}",
            table.name,
            rows_of(w, world, &columns)
        );
    }
    let rows: Vec<String> = (0..w.rng.usize(1..4))
        .map(|_| {
            let values: Vec<String> = columns
                .iter()
                .map(|column| {
                    if column.rowid && w.chance(85) {
                        w.pick(&ROWIDS).into()
                    } else {
                        let value = if w.chance(90) {
                            w.literal()
                        } else {
                            w.expression(2)
                        };
                        small_rowid(column, value)
                    }
                })
                .collect();
            format!("({})", values.join(", "))
        })
        .collect();
    w.scope = visible(table, None);
    w.tables.retain(|(name, _)| *name != table.name);
    let upsert = if w.chance(15) {
        crate::upsert::on_conflict(w, table)
    } else {
        String::new()
    };
    format!(
        "{verb}INTO {}{list} VALUES {}{upsert}{}",
        table.name,
        rows.join(", "),
        returning(w, table)
    )
}

/// A query in a defined order, to insert from.
fn rows_of(w: &mut Writer<'_>, world: &World, columns: &[&Column]) -> String {
    let source = &world.tables[w.rng.usize(..world.tables.len())];
    w.scope = visible(source, None);
    let columns: Vec<String> = columns
        .iter()
        .map(|column| small_rowid(column, w.expression(1)))
        .collect();
    let filter = if w.chance(50) {
        format!(" WHERE {}", w.condition(2))
    } else {
        String::new()
    };
    format!(
        "SELECT {} FROM {}{filter} ORDER BY {} LIMIT {}",
        columns.join(", "),
        source.name,
        source.ties("").join(", "),
        w.rng.u32(1..8)
    )
}

/// Past the largest rowid, SQLite draws random ones: keys keep away from it.
fn small_rowid(column: &Column, value: String) -> String {
    if column.rowid {
        return format!("{value} % 1000");
    }
    value
}

fn update(w: &mut Writer<'_>, table: &Table, world: &World) -> String {
    let from = &world.tables[w.rng.usize(..world.tables.len())];
    if w.chance(10) && from.name != table.name && from.key.is_none() {
        return update_from(w, table, from);
    }
    w.scope = visible(table, None);
    let conflict = w.pick(&CONFLICTS);
    // A subquery that reads the changing table is a listed deviation.
    w.tables.retain(|(name, _)| *name != table.name);
    let count = w.rng.usize(1..=2.min(table.columns.len()));
    let sets: Vec<String> = (0..count)
        .map(|_| {
            let at = w.rng.usize(..table.columns.len());
            let value = if w.chance(50) {
                w.literal()
            } else {
                w.expression(2)
            };
            let column = &table.columns[at];
            // Rows that move onto each other: a listed deviation where that is no
            // error.
            let is_key = column.rowid || table.is_key(&column.name);
            let moves = is_key && !matches!(conflict, "" | "OR ABORT " | "OR ROLLBACK ");
            if column.sequence || moves {
                return format!("{0} = {0}", column.name);
            }
            format!("{} = {}", column.name, small_rowid(column, value))
        })
        .collect();
    // What IGNORE and FAIL leave depends on the order of rows, which is the key's
    // where no index can serve the filter.
    let filter = match conflict {
        "OR IGNORE " | "OR FAIL " => format!(
            " WHERE +{} {} {}",
            table.places()[0],
            w.pick(&["<", ">", "="]),
            w.rng.i32(-4..12)
        ),
        _ => filter(w, world, table),
    };
    let returning = returning(w, table);
    // Of a WITHOUT ROWID table SQLite may scan any smaller index, and changes rows as it goes.
    let hint = match table.key {
        None => hint(w, world),
        Some(_) => " NOT INDEXED".into(),
    };
    format!(
        "UPDATE {conflict}{}{hint} SET {}{filter}{returning}",
        table.name,
        sets.join(", ")
    )
}

/// An UPDATE with values of another table, of which each row meets one row at most.
fn update_from(w: &mut Writer<'_>, table: &Table, from: &Table) -> String {
    w.tables.retain(|(name, _)| *name != table.name);
    w.scope = visible(table, Some(&table.name));
    let key = match table.key {
        None => w.pick(&["rowid", "a"]),
        Some(_) => "a",
    };
    let condition = format!("x.rowid = {}.{key}", table.name);
    w.scope.extend(visible(from, Some("x")));
    let column = &table.columns[w.rng.usize(..table.columns.len())];
    let value = match column.rowid {
        true => format!("{}.{}", table.name, column.name),
        false => w.expression(2),
    };
    let more = if w.chance(50) {
        format!(" AND {}", w.condition(2))
    } else {
        String::new()
    };
    format!(
        "UPDATE {} SET {} = {value} FROM {} AS x WHERE {condition}{more}",
        table.name, column.name, from.name
    )
}

fn delete(w: &mut Writer<'_>, table: &Table, world: &World) -> String {
    w.scope = visible(table, None);
    w.tables.retain(|(name, _)| *name != table.name);
    let filter = filter(w, world, table);
    let (returning, hint) = (returning(w, table), hint(w, world));
    format!("DELETE FROM {}{hint}{filter}{returning}", table.name)
}

/// Which indexes may be used, now and then.
fn hint(w: &mut Writer<'_>, world: &World) -> String {
    match w.rng.u32(..20) {
        0 => " NOT INDEXED".into(),
        1 if !world.plain.is_empty() => {
            let at = w.rng.usize(..world.plain.len());
            format!(" INDEXED BY {}", world.plain[at])
        }
        _ => String::new(),
    }
}

/// What of the rows is returned, now and then.
fn returning(w: &mut Writer<'_>, table: &Table) -> String {
    if !w.chance(20) {
        return String::new();
    }
    let value = if w.chance(50) {
        w.expression(2)
    } else {
        "*".into()
    };
    format!(" RETURNING {}, {value}", table.places().join(", "))
}

fn filter(w: &mut Writer<'_>, world: &World, table: &Table) -> String {
    let mut filter = match w.rng.u32(..100) {
        0..=11 => return String::new(),
        12..=47 => {
            let operator = w.pick(&["=", "=", "<", ">=", "IS"]);
            format!(" WHERE {} {operator} {}", w.leaf(), w.literal())
        }
        _ => format!(" WHERE {}", w.condition(3)),
    };
    crate::query::also_indexed(w, world, &table.name, &mut filter);
    filter
}

fn transaction(w: &mut Writer<'_>, world: &World) -> String {
    if !world.in_transaction && w.chance(60) {
        return w
            .pick(&[
                "BEGIN",
                "BEGIN IMMEDIATE",
                "BEGIN DEFERRED TRANSACTION",
                "BEGIN EXCLUSIVE",
                "SAVEPOINT s1",
            ])
            .into();
    }
    w.pick(&[
        "COMMIT",
        "END",
        "COMMIT TRANSACTION",
        "ROLLBACK",
        "ROLLBACK",
        "SAVEPOINT s1",
        "SAVEPOINT s2",
        "SAVEPOINT S1",
        "RELEASE s1",
        "RELEASE SAVEPOINT s2",
        "ROLLBACK TO s1",
        "ROLLBACK TO SAVEPOINT s2",
        "ROLLBACK TRANSACTION TO s1",
        "BEGIN",
    ])
    .into()
}

/// Statements that SQLite refuses, or that look as if it should.
fn wrong(w: &mut Writer<'_>, table: &Table) -> String {
    let name = &table.name;
    let column = &table.columns[0].name;
    match w.rng.u32(..16) {
        0 => format!("SELECT nowhere FROM {name}"),
        1 => "SELECT a FROM missing".into(),
        2 => format!("INSERT INTO {name} VALUES (1, 2, 3, 4, 5, 6, 7)"),
        3 => format!("INSERT INTO {name} ({column}, nowhere) VALUES (1, 2)"),
        4 => format!("UPDATE {name} SET nowhere = 1"),
        5 => format!("SELECT {column} FROM {name} WHERE"),
        6 => format!("SELECT {column}, FROM {name}"),
        7 => format!("CREATE TABLE {name}(x)"),
        8 => format!("CREATE INDEX i1 ON {name}(nowhere)"),
        9 => "SELECT nofunction(1)".into(),
        10 => "SELECT abs(1, 2)".into(),
        11 => format!("SELECT x.{column} FROM {name}"),
        12 => format!("SELECT {column} FROM {name} AS p, {name} AS q"),
        13 => "SELECT abs(-9223372036854775808)".into(),
        14 => format!("SELECT count(*) FROM {name} WHERE count(*) > 1"),
        _ => "DELETE FROM missing WHERE a = 1".into(),
    }
}

/// The columns of a table as an expression may write them.
pub fn visible(table: &Table, alias: Option<&str>) -> Vec<Visible> {
    let prefix = alias.map_or(String::new(), |alias| format!("{alias}."));
    let names = table.columns.iter().map(|column| column.name.as_str());
    names
        .chain(table.key.is_none().then_some("rowid"))
        .map(|name| Visible {
            text: format!("{prefix}{name}"),
        })
        .collect()
}
