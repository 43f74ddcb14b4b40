//! Operators, casts, affinities and functions on generated values, side by side
//! with bundled SQLite. The values are bound, so nothing depends on a parser.

mod common;

use common::{Bound, Random, ours, same, show};
use fulgurite_sql::error::Result;
use fulgurite_sql::func::{self, Context, Function, glob_value, like_value};
use fulgurite_sql::value::{self, Affinity, Collation, Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

fn sqlite() -> Connection {
    Connection::open_in_memory().unwrap()
}

/// SQLite's answer, or its message.
fn ask(connection: &Connection, sql: &str, values: &[Value]) -> std::result::Result<Value, String> {
    let mut statement = connection.prepare_cached(sql).unwrap();
    let bound = params_from_iter(values.iter().map(|v| Bound(v.as_ref())));
    statement
        .query_row(bound, |row| Ok(ours(row.get_ref(0)?)))
        .map_err(|e| match e {
            rusqlite::Error::SqliteFailure(_, Some(message)) => message,
            other => other.to_string(),
        })
}

/// Collects differences, so that one run shows them all.
#[derive(Default)]
struct Differences {
    seen: usize,
    wrong: Vec<String>,
}

impl Differences {
    fn check(
        &mut self,
        what: &str,
        values: &[Value],
        theirs: std::result::Result<Value, String>,
        ours: Result<Value>,
    ) {
        self.seen += 1;
        let equal = match (&theirs, &ours) {
            (Ok(a), Ok(b)) => same(a, b),
            (Err(a), Err(b)) => a == b.message(),
            _ => false,
        };
        if !equal {
            let shown: Vec<String> = values.iter().map(show).collect();
            let theirs = theirs.map_or_else(|e| e, |v| show(&v));
            let ours = ours.map_or_else(|e| e.message().to_owned(), |v| show(&v));
            self.wrong.push(format!(
                "{what} of ({}): SQLite {theirs}, ours {ours}",
                shown.join(", ")
            ));
        }
    }

    fn finish(self) {
        assert!(
            self.wrong.is_empty(),
            "{} of {} differ:\n{}",
            self.wrong.len(),
            self.seen,
            self.wrong
                .iter()
                .take(60)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n")
        );
    }
}

#[test]
fn operators_give_what_sqlite_gives() {
    type Binary = (&'static str, fn(ValueRef<'_>, ValueRef<'_>) -> Value);
    const BINARY: [Binary; 10] = [
        ("SELECT ?1 + ?2", value::add),
        ("SELECT ?1 - ?2", value::subtract),
        ("SELECT ?1 * ?2", value::multiply),
        ("SELECT ?1 / ?2", value::divide),
        ("SELECT ?1 % ?2", value::remainder),
        ("SELECT ?1 & ?2", value::bit_and),
        ("SELECT ?1 | ?2", value::bit_or),
        ("SELECT ?1 << ?2", value::shift_left),
        ("SELECT ?1 >> ?2", value::shift_right),
        ("SELECT ?1 || ?2", value::concat),
    ];
    type Unary = (&'static str, fn(ValueRef<'_>) -> Value);
    const UNARY: [Unary; 3] = [
        ("SELECT -?1", value::negate),
        ("SELECT ~?1", value::bit_not),
        ("SELECT ?1 IS TRUE", |v| {
            Value::from(v.truth() == Some(true))
        }),
    ];
    let connection = sqlite();
    let mut random = Random(10);
    let mut differences = Differences::default();
    for _ in 0..3000 {
        let values = [random.value(), random.value()];
        for (sql, f) in BINARY {
            let ours = f(values[0].as_ref(), values[1].as_ref());
            differences.check(sql, &values, ask(&connection, sql, &values), Ok(ours));
        }
        for (sql, f) in UNARY {
            differences.check(
                sql,
                &values[..1],
                ask(&connection, sql, &values[..1]),
                Ok(f(values[0].as_ref())),
            );
        }
    }
    differences.finish();
}

#[test]
fn casts_and_affinities_give_what_sqlite_gives() {
    const TYPES: [(&str, Affinity); 5] = [
        ("INTEGER", Affinity::Integer),
        ("REAL", Affinity::Real),
        ("TEXT", Affinity::Text),
        ("NUMERIC", Affinity::Numeric),
        ("BLOB", Affinity::Blob),
    ];
    let connection = sqlite();
    connection
        .execute_batch("CREATE TABLE t(c0 INTEGER, c1 REAL, c2 TEXT, c3 NUMERIC, c4 BLOB)")
        .unwrap();
    let mut random = Random(11);
    let mut differences = Differences::default();
    for _ in 0..6000 {
        let values = [random.value()];
        for (name, affinity) in TYPES {
            let sql = format!("SELECT CAST(?1 AS {name})");
            let ours = value::cast(values[0].as_ref(), affinity);
            differences.check(&sql, &values, ask(&connection, &sql, &values), Ok(ours));
        }
        connection.execute_batch("DELETE FROM t").unwrap();
        let five = || (0..5).map(|_| Bound(values[0].as_ref()));
        connection
            .prepare_cached("INSERT INTO t VALUES(?,?,?,?,?)")
            .unwrap()
            .execute(params_from_iter(five()))
            .unwrap();
        for (i, (_, affinity)) in TYPES.iter().enumerate() {
            let theirs = ask(&connection, &format!("SELECT c{i} FROM t"), &[]);
            let mut ours = affinity.apply(values[0].as_ref()).into_value();
            // SQLite stores an integral real of a REAL column as an integer and
            // so forgets the sign of zero; we keep it.
            if *affinity == Affinity::Real && ours == Value::Real(0.0) {
                ours = theirs.clone().unwrap();
            }
            differences.check(&format!("column {affinity:?}"), &values, theirs, Ok(ours));
        }
    }
    for declared in [
        "INT",
        "bigint unsigned",
        "CHARINT",
        "varchar(10)",
        "CLOB",
        "text",
        "BLOB",
        "",
        "REAL",
        "FLOAT",
        "DOUBLE PRECISION",
        "DECIMAL(10,5)",
        "BOOLEAN",
        "DATETIME",
        "FLOATING POINT",
        "xyz",
    ] {
        connection.execute_batch(&format!("DROP TABLE IF EXISTS d; CREATE TABLE d(c {declared}); INSERT INTO d VALUES('1.5'),('2'),(3),(4.0),(x'35')")).unwrap();
        let theirs = ask(&connection, "SELECT group_concat(typeof(c)) FROM d", &[]);
        let affinity = Affinity::of_declared_type(declared);
        let inputs = [
            Value::from("1.5"),
            Value::from("2"),
            Value::from(3),
            Value::from(4.0),
            Value::Blob(b"5".to_vec()),
        ];
        let kinds: Vec<&str> = inputs
            .iter()
            .map(|v| affinity.apply(v.as_ref()).as_ref().kind().name())
            .collect();
        differences.check(
            declared,
            &[],
            theirs,
            Ok(Value::from(kinds.join(",").as_str())),
        );
    }
    differences.finish();
}

#[test]
fn reals_show_as_sqlite_shows_them() {
    let connection = sqlite();
    let mut random = Random(12);
    let mut differences = Differences::default();
    for i in 0..60_000u64 {
        let r = match i % 3 {
            0 => random.real(),
            1 => f64::from_bits(random.next()),
            _ => {
                (random.below(1 << 60) >> random.below(60)) as f64
                    / 10f64.powi(random.below(25) as i32)
            }
        };
        if r.is_nan() {
            continue;
        }
        let values = [Value::Real(r)];
        let ours = values[0]
            .as_ref()
            .to_text()
            .map_or(Value::Null, |t| Value::Text(t.into_owned()));
        differences.check(
            "text",
            &values,
            ask(&connection, "SELECT CAST(?1 AS TEXT)", &values),
            Ok(ours.clone()),
        );
        let Value::Text(text) = &ours else { continue };
        let back = [ours.clone()];
        let parsed = Value::Real(value::real_prefix(text));
        differences.check(
            "real",
            &back,
            ask(&connection, "SELECT CAST(?1 AS REAL)", &back),
            Ok(parsed),
        );
    }
    differences.finish();
}

#[test]
fn like_and_glob_match_what_sqlite_matches() {
    let connection = sqlite();
    let mut random = Random(13);
    let mut differences = Differences::default();
    let piece = |random: &mut Random, from: &[u8], n: u64| -> Vec<u8> {
        (0..random.below(n)).map(|_| *random.pick(from)).collect()
    };
    for i in 0..20_000 {
        let text = piece(&mut random, b"aAbB%_-]^\\", 8);
        let pattern = piece(&mut random, b"aAbB%_%*?[]^-\\", 8);
        let mut values = vec![Value::Text(pattern), Value::Text(text)];
        if i % 10 == 0 {
            values = vec![random.value(), random.value()];
        }
        let (p, t) = (values[0].as_ref(), values[1].as_ref());
        differences.check(
            "LIKE",
            &values,
            ask(&connection, "SELECT ?2 LIKE ?1", &values),
            like_value(p, t, None),
        );
        differences.check(
            "GLOB",
            &values,
            ask(&connection, "SELECT ?2 GLOB ?1", &values),
            glob_value(p, t),
        );
        let escape = if i % 17 == 0 {
            random.value()
        } else {
            Value::from(*random.pick(&["\\", "%", "a", "_"]))
        };
        let ours = like_value(p, t, Some(escape.as_ref()));
        values.push(escape.clone());
        differences.check(
            "ESCAPE",
            &values,
            ask(&connection, "SELECT ?2 LIKE ?1 ESCAPE ?3", &values),
            ours,
        );
    }
    differences.finish();
}

/// The functions compared, each with the numbers of arguments to try.
const FUNCTIONS: [(&str, &[usize]); 36] = [
    ("abs", &[1]),
    ("char", &[0, 1, 3]),
    ("coalesce", &[2, 3]),
    ("concat", &[1, 3]),
    ("concat_ws", &[2, 4]),
    ("hex", &[1]),
    ("ifnull", &[2]),
    ("iif", &[2, 3, 4, 5]),
    ("instr", &[2]),
    ("length", &[1]),
    ("octet_length", &[1]),
    ("likely", &[1]),
    ("lower", &[1]),
    ("upper", &[1]),
    ("ltrim", &[1, 2]),
    ("rtrim", &[1, 2]),
    ("trim", &[1, 2]),
    ("max", &[2, 3, 4]),
    ("min", &[2, 3, 4]),
    ("nullif", &[2]),
    ("quote", &[1]),
    ("replace", &[3]),
    ("round", &[1, 2]),
    ("sign", &[1]),
    ("substr", &[2, 3]),
    ("substring", &[2, 3]),
    ("typeof", &[1]),
    ("unhex", &[1, 2]),
    ("unicode", &[1]),
    ("glob", &[2]),
    ("like", &[2]),
    ("format", &[1]),
    ("sqlite_version", &[0]),
    ("subtype", &[1]),
    ("unistr", &[1]),
    ("unistr_quote", &[1]),
];

#[test]
fn functions_give_what_sqlite_gives() {
    let connection = sqlite();
    let mut random = Random(14);
    let mut differences = Differences::default();
    let mut context = Context::new();
    for (name, counts) in FUNCTIONS {
        for &count in counts {
            let places: Vec<String> = (1..=count).map(|i| format!("?{i}")).collect();
            let sql = format!("SELECT {name}({})", places.join(","));
            let Function::Scalar(function) = func::find(name, count).unwrap() else {
                panic!("{name} is no scalar")
            };
            for round in 0..1500 {
                let mut values: Vec<Value> = (0..count).map(|_| random.value()).collect();
                if round % 2 == 0 {
                    // Small numbers make positions, counts and digits meet.
                    for v in values.iter_mut().skip(1) {
                        if random.below(2) == 0 {
                            *v = Value::Integer(random.below(16) as i64 - 6);
                        }
                    }
                }
                if round % 3 == 0 && count >= 2 && name != "round" {
                    values[0] = Value::from(String::from_utf8_lossy(&random.text()).as_ref());
                    values[1] = if random.below(2) == 0 {
                        Value::from("a")
                    } else {
                        values[1].clone()
                    };
                }
                let arguments: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                let ours = function.call(&mut context, &arguments);
                differences.check(name, &values, ask(&connection, &sql, &values), ours);
            }
        }
    }
    differences.finish();
}

#[test]
fn format_gives_what_sqlite_gives() {
    let connection = sqlite();
    let mut random = Random(15);
    let mut differences = Differences::default();
    let mut context = Context::new();
    let function = func::scalar("format").unwrap();
    for _ in 0..10_000 {
        let mut format = String::from("<");
        for _ in 0..random.below(3) {
            format.push('%');
            for _ in 0..random.below(3) {
                format.push(*random.pick(&['-', '+', ' ', '0', '#', ',', '!']));
            }
            if random.below(4) == 0 {
                format.push_str(&random.below(20).to_string());
            }
            if random.below(2) == 0 {
                format.push_str(&format!(".{}", random.below(20)));
            }
            format.push(*random.pick(&[
                'd', 'i', 'u', 'f', 'e', 'E', 'g', 'G', 'x', 'X', 'p', 'r', 'o', 'c', 's', 'q',
                'Q', 'w', 'j', 'J', '%',
            ]));
            format.push('>');
        }
        let values = [
            Value::from(format.as_str()),
            random.value(),
            random.value(),
            random.value(),
        ];
        let arguments: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let ours = function.call(&mut context, &arguments);
        differences.check(
            &format,
            &values,
            ask(&connection, "SELECT format(?1,?2,?3,?4)", &values),
            ours,
        );
    }
    differences.finish();
}

#[test]
fn aggregates_give_what_sqlite_gives() {
    let connection = sqlite();
    connection.execute_batch("CREATE TABLE t(x)").unwrap();
    let mut random = Random(16);
    let mut differences = Differences::default();
    for round in 0..1500 {
        connection.execute_batch("DELETE FROM t").unwrap();
        let values: Vec<Value> = (0..random.below(12))
            .map(|_| match round % 4 {
                0 => random.value(),
                1 => Value::Integer(random.below(1000) as i64 - 500),
                2 => Value::Real(loop {
                    let r = random.real();
                    if r.is_finite() {
                        break r;
                    }
                }),
                _ => {
                    if random.below(4) == 0 {
                        Value::Null
                    } else {
                        Value::Integer(random.integer() >> 4)
                    }
                }
            })
            .collect();
        for v in &values {
            connection
                .prepare_cached("INSERT INTO t VALUES(?)")
                .unwrap()
                .execute([Bound(v.as_ref())])
                .unwrap();
        }
        for name in ["count", "sum", "total", "avg", "min", "max", "group_concat"] {
            let Function::Aggregate(function) = func::find(name, 1).unwrap() else {
                panic!("{name} is no aggregate")
            };
            let mut accumulator = function.accumulator();
            for v in &values {
                accumulator.step(&[v.as_ref()], Collation::Binary).unwrap();
            }
            let theirs = ask(&connection, &format!("SELECT {name}(x) FROM t"), &[]);
            differences.check(name, &values, theirs.clone(), accumulator.finish());
            let mut vectors = function.accumulator();
            let integers: Option<Vec<i64>> = values
                .iter()
                .map(|v| {
                    if let Value::Integer(i) = v {
                        Some(*i)
                    } else {
                        None
                    }
                })
                .collect();
            let reals: Option<Vec<f64>> = values
                .iter()
                .map(|v| {
                    if let Value::Real(r) = v {
                        Some(*r)
                    } else {
                        None
                    }
                })
                .collect();
            if let Some(integers) = integers {
                vectors.step_integers(&integers).unwrap();
                differences.check(name, &values, theirs, vectors.finish());
            } else if let Some(reals) = reals {
                vectors.step_reals(reals.iter().copied()).unwrap();
                differences.check(name, &values, theirs, vectors.finish());
            }
        }
    }
    differences.finish();
}

#[test]
fn integer_sums_overflow_only_in_the_end() {
    let Function::Aggregate(sum) = func::find("SUM", 1).unwrap() else {
        panic!("sum is no aggregate")
    };
    let mut accumulator = sum.accumulator();
    accumulator.step_integers(&[i64::MAX, 1]).unwrap();
    assert_eq!(
        accumulator.finish().unwrap_err().message(),
        "integer overflow"
    );
    accumulator.step_integers(&[-1]).unwrap();
    assert_eq!(accumulator.finish().unwrap(), Value::Integer(i64::MAX));
    assert_eq!(
        func::find("sum", 2).unwrap_err().message(),
        "wrong number of arguments to function sum()"
    );
    assert_eq!(
        func::find("summ", 1).unwrap_err().message(),
        "no such function: summ"
    );
}

#[test]
fn dates_give_what_sqlite_gives() {
    const TIMES: [&str; 26] = [
        "2024-02-29",
        "2023-02-28 23:59:59.999",
        "1970-01-01T00:00",
        "2000-01-01 12:00:00Z",
        "2024-12-30 01:02:03+05:30",
        "0000-01-01",
        "9999-12-31 23:59:59",
        "-0001-06-15",
        "12:34",
        "12:34:56.789",
        "2024-03-31",
        "2024-13-01",
        "23:59",
        "2460000.5",
        "1700000000",
        "-1",
        "5373484.5",
        "abc",
        "",
        "2024-01-01 ",
        "2024-1-1",
        "1.5e3",
        "2021-01-03",
        "2020-12-31 08:00:00.5",
        "2024-02-28 24:00:00.5",
        "2024-02-28 24:01+01:00",
    ];
    const MODIFIERS: [&str; 44] = [
        "+1 day",
        "-1 days",
        "+1.5 hours",
        "90 minutes",
        "-30 seconds",
        "+1 month",
        "-13 months",
        "+1 year",
        "-4 years",
        "start of month",
        "start of year",
        "start of day",
        "weekday 0",
        "weekday 3",
        "weekday 7",
        "unixepoch",
        "julianday",
        "auto",
        "subsec",
        "subsecond",
        "ceiling",
        "floor",
        "+01:30",
        "-00:00:30.5",
        "+0001-02-03",
        "-0000-01-30 12:00",
        "+1 fortnight",
        "day",
        "+ 1 day",
        "Start Of Month",
        "+2.5 months",
        "-0.5 years",
        "1 DAY",
        "+1e2 days",
        "+20000 years",
        "weekday 1.0",
        "+1 day ",
        "+24:00",
        "24:30",
        "+01:30 Z ",
        "-01:30+02:00",
        "-0000-00-01 10:00-03:00",
        "+0000-00-01  10:00",
        "+0000-00-0110:00",
    ];
    const FORMATS: [&str; 8] = [
        "%Y-%m-%d %H:%M:%S",
        "%d%e%f%F",
        "%G-%g-%V-%u",
        "%H%I%k%l%p%P",
        "%j|%J|%s",
        "%R%T%U%w%W%%",
        "%q",
        "plain",
    ];
    let connection = sqlite();
    let mut random = Random(17);
    let mut differences = Differences::default();
    let mut context = Context::new();
    for _ in 0..10_000 {
        let time = match random.below(6) {
            0 => Value::Integer(random.below(10_000_000) as i64),
            1 => Value::Real(random.below(5_500_000_000) as f64 / 1000.0),
            2 => Value::Integer(random.below(1 << 33) as i64),
            _ => Value::from(*random.pick(&TIMES)),
        };
        let mut values = vec![time];
        for _ in 0..random.below(4) {
            values.push(Value::from(*random.pick(&MODIFIERS)));
        }
        for name in [
            "date",
            "time",
            "datetime",
            "julianday",
            "unixepoch",
            "strftime",
            "timediff",
        ] {
            let mut values = values.clone();
            if name == "strftime" {
                values.insert(0, Value::from(*random.pick(&FORMATS)));
            }
            if name == "timediff" {
                values.truncate(1);
                values.push(Value::from(*random.pick(&TIMES)));
            }
            let places: Vec<String> = (1..=values.len()).map(|i| format!("?{i}")).collect();
            let theirs = ask(
                &connection,
                &format!("SELECT {name}({})", places.join(",")),
                &values,
            );
            let arguments: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            let ours = func::scalar(name).unwrap().call(&mut context, &arguments);
            differences.check(name, &values, theirs, ours);
        }
    }
    differences.finish();
}

/// Steps may pass through years that cannot be shown, but not on and on.
#[test]
fn steps_of_dates_end_somewhere() {
    let mut context = Context::new();
    let mut after = |steps: &[&str]| {
        let texts = std::iter::once(&"2024-01-01").chain(steps);
        let values: Vec<_> = texts.map(|t| ValueRef::Text(t.as_bytes())).collect();
        let date = func::scalar("date").unwrap();
        date.call(&mut context, &values).unwrap()
    };
    let (on, back) = ("+464269000000000 seconds", "-464269000000000 seconds");
    assert_eq!(after(&[on, on, back, back]), Value::from("2024-01-01"));
    let steps = |count| [vec![on; count], vec![back; count]].concat();
    assert_eq!(after(&steps(9)), Value::Null);
    assert_eq!(after(&steps(100)), Value::Null);
    let steps = [vec![back; 100], vec!["start of day"], vec![on; 100]].concat();
    assert_eq!(after(&steps), Value::Null);
}

#[test]
fn the_clock_stands_still_within_a_statement() {
    let mut context = Context::new();
    context.set_now_ms(1_700_000_000_123);
    let mut call = |name: &str, arguments: &[ValueRef<'_>]| {
        func::scalar(name)
            .unwrap()
            .call(&mut context, arguments)
            .unwrap()
    };
    assert_eq!(call("datetime", &[]), Value::from("2023-11-14 22:13:20"));
    assert_eq!(
        call(
            "datetime",
            &[ValueRef::Text(b"now"), ValueRef::Text(b"subsec")]
        ),
        Value::from("2023-11-14 22:13:20.123")
    );
    assert_eq!(
        call("unixepoch", &[ValueRef::Text(b"now")]),
        Value::Integer(1_700_000_000)
    );
    assert_eq!(call("current_date", &[]), Value::from("2023-11-14"));
}
