//! Random values and expressions of the SQL subset, mostly well-typed enough to
//! be interesting and now and then not.

use crate::common::Value;
use fastrand::Rng;

/// A column that an expression may name, as it must be written.
#[derive(Debug, Clone)]
pub struct Visible {
    pub text: String,
}

/// Writes expressions over a scope and collects the parameters they bind.
pub struct Writer<'a> {
    pub rng: &'a mut Rng,
    pub parameters: Vec<Value>,
    pub scope: Vec<Visible>,
    /// Tables that a subquery may read: name and columns.
    pub tables: Vec<(String, Vec<String>)>,
    /// Share of literals that become parameters, in percent.
    pub bind_percent: u32,
}

const TEXTS: [&str; 22] = [
    "",
    "a",
    "A",
    "b",
    "abc",
    "ABC",
    "aBc",
    "a ",
    " a",
    "1",
    "1.0",
    " 2 ",
    "-3",
    "1e2",
    "0x10",
    "x1",
    "é",
    "it's",
    "10",
    "9223372036854775807",
    "0.5",
    "a%b_c",
];
const INTEGERS: [i64; 12] = [
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 53) - 1,
    255,
    65_536,
    1_000_000,
    -1_000,
    4_294_967_296,
    127,
];
const REALS: [f64; 14] = [
    0.0,
    -0.0,
    0.5,
    1.0,
    1.5,
    -2.5,
    3.0,
    0.1,
    1e10,
    1e-5,
    123456.789,
    9007199254740992.0,
    1e19,
    -1e300,
];

impl Writer<'_> {
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(..from.len())]
    }

    /// A value of any type, small numbers above all.
    pub fn value(&mut self) -> Value {
        match self.rng.u32(..100) {
            0..=7 => Value::Null,
            8..=50 => Value::Integer(self.rng.i64(-3..12)),
            51..=54 => Value::Integer(self.pick(&INTEGERS)),
            55..=68 => Value::Real(self.pick(&REALS)),
            69..=91 => Value::Text(self.pick(&TEXTS).into()),
            // As a key, longer than what a page holds of one.
            92 => Value::Text(("long ".repeat(130) + self.pick(&TEXTS)).into_bytes()),
            _ => {
                let length = self.rng.usize(..4);
                let bytes = [0, b'a', b'1', 0xFF, b'A'];
                Value::Blob((0..length).map(|_| self.pick(&bytes)).collect())
            }
        }
    }

    /// A literal or a parameter bound to it.
    pub fn literal(&mut self) -> String {
        let value = self.value();
        let bind = self.bind_percent;
        if self.chance(bind) {
            self.parameters.push(value);
            return format!("?{}", self.parameters.len());
        }
        value.to_string()
    }

    fn column(&mut self) -> String {
        if self.scope.is_empty() {
            return self.literal();
        }
        let at = self.rng.usize(..self.scope.len());
        self.scope[at].text.clone()
    }

    /// A column or a literal.
    pub fn leaf(&mut self) -> String {
        if self.chance(65) {
            self.column()
        } else {
            self.literal()
        }
    }

    /// An expression nested at most `depth` deep.
    pub fn expression(&mut self, depth: u32) -> String {
        if depth == 0 || self.chance(25) {
            return self.leaf();
        }
        let d = depth - 1;
        match self.rng.u32(..100) {
            0..=24 => {
                let operator = self.pick(&["+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>"]);
                format!("({} {operator} {})", self.expression(d), self.expression(d))
            }
            25..=29 => {
                // Two minus signs would begin a comment.
                let operator = self.pick(&["- ", "+", "~", "NOT "]);
                format!("({operator}{})", self.expression(d))
            }
            30..=54 => self.condition(depth),
            55..=60 => self.case(d),
            61..=66 => {
                let target = self.pick(&["INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB"]);
                format!("CAST({} AS {target})", self.expression(d))
            }
            67..=69 => {
                let collation = self.pick(&["NOCASE", "BINARY", "RTRIM"]);
                format!("({} COLLATE {collation})", self.expression(d))
            }
            70..=73 => self.scalar_subquery(d),
            _ => self.function(d),
        }
    }

    /// An expression that is mostly used as a truth value.
    pub fn condition(&mut self, depth: u32) -> String {
        let d = depth.saturating_sub(1);
        match self.rng.u32(..100) {
            0..=34 => {
                let operator = self.pick(&["=", "<>", "<", "<=", ">", ">=", "==", "!="]);
                format!("({} {operator} {})", self.expression(d), self.expression(d))
            }
            35..=41 => {
                let operator =
                    self.pick(&["IS", "IS NOT", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("({} {operator} {})", self.expression(d), self.expression(d))
            }
            42..=49 => {
                let test = self.pick(&["IS NULL", "IS NOT NULL", "NOTNULL", "ISNULL"]);
                format!("({} {test})", self.expression(d))
            }
            50..=59 => {
                let not = self.pick(&["", "NOT "]);
                let (x, low, high) = (self.expression(d), self.leaf(), self.leaf());
                format!("({x} {not}BETWEEN {low} AND {high})")
            }
            60..=69 => {
                let not = self.pick(&["", "NOT "]);
                let count = self.rng.usize(..4);
                let list: Vec<String> = (0..count).map(|_| self.leaf()).collect();
                // SQLite's parser makes a truth value of an empty list, unless a
                // function is called before it; IS asks for that, which is listed.
                if count == 0 {
                    return format!("(({} {not}IN ()) + 0)", self.leaf());
                }
                let left = self.expression(d);
                format!("({left} {not}IN ({}))", list.join(", "))
            }
            70..=74 => {
                let operator = self.pick(&["LIKE", "NOT LIKE", "GLOB"]);
                let pattern = self.pick(&[
                    "'a%'", "'%b%'", "'_'", "'A*'", "'*[a-c]'", "'1%'", "''", "'%'",
                ]);
                format!("({} {operator} {pattern})", self.expression(d))
            }
            75..=79 => self.subquery_test(d),
            80 => self.row_test(d),
            81..=92 => {
                let operator = self.pick(&["AND", "OR"]);
                format!("({} {operator} {})", self.condition(d), self.condition(d))
            }
            _ => format!("(NOT {})", self.leaf()),
        }
    }

    fn case(&mut self, d: u32) -> String {
        let mut text = String::from("CASE");
        let base = self.chance(40);
        if base {
            text += &format!(" {}", self.expression(d));
        }
        for _ in 0..self.rng.u32(1..3) {
            let when = if base { self.leaf() } else { self.condition(d) };
            text += &format!(" WHEN {when} THEN {}", self.expression(d));
        }
        if self.chance(60) {
            text += &format!(" ELSE {}", self.expression(d));
        }
        text + " END"
    }

    fn function(&mut self, d: u32) -> String {
        let one = [
            "length", "lower", "upper", "typeof", "hex", "quote", "trim", "sign", "unicode",
            "round",
        ];
        match self.rng.u32(..11) {
            0..=4 => format!("{}({})", self.pick(&one), self.expression(d)),
            5 => {
                let name = self.pick(&["ifnull", "nullif", "instr", "ltrim", "rtrim", "coalesce"]);
                format!("{name}({}, {})", self.expression(d), self.expression(d))
            }
            6 => {
                let name = self.pick(&["min", "max", "coalesce"]);
                format!(
                    "{name}({}, {}, {})",
                    self.expression(d),
                    self.leaf(),
                    self.leaf()
                )
            }
            7 => {
                let (start, length) = (self.rng.i32(-3..5), self.rng.i32(-2..4));
                format!("substr({}, {start}, {length})", self.expression(d))
            }
            8 => format!(
                "replace({}, {}, {})",
                self.expression(d),
                self.leaf(),
                self.leaf()
            ),
            9 => format!(
                "iif({}, {}, {})",
                self.condition(d),
                self.leaf(),
                self.leaf()
            ),
            // SQLite computes constants ahead, and so may raise what is never
            // reached: the one argument that overflows is kept out.
            _ => format!("abs({} % 1000)", self.expression(d)),
        }
    }

    fn some_table(&mut self) -> Option<(String, Vec<String>)> {
        if self.tables.is_empty() {
            return None;
        }
        let at = self.rng.usize(..self.tables.len());
        Some(self.tables[at].clone())
    }

    /// One value whatever the order of rows; correlated now and then.
    fn scalar_subquery(&mut self, d: u32) -> String {
        if self.chance(20) && !self.tables.is_empty() {
            return format!("(SELECT {})", self.leaf());
        }
        let Some((table, columns)) = self.some_table() else {
            return self.literal();
        };
        let column = &columns[self.rng.usize(..columns.len())];
        let aggregate = self.pick(&["count", "min", "max"]);
        let mut text = format!("(SELECT {aggregate}(q.{column}) FROM {table} AS q");
        if self.chance(60) {
            let other = &columns[self.rng.usize(..columns.len())];
            let operator = self.pick(&["=", "<", ">=", "IS"]);
            text += &format!(" WHERE q.{other} {operator} {}", self.expression(d.min(1)));
        }
        text + ")"
    }

    /// A row of two values; a list, where there may be no subqueries.
    fn row(&mut self, d: u32) -> String {
        match self.rng.u32(..10) {
            0..=4 => format!("({}, {})", self.leaf(), self.expression(d)),
            5..=7 if !self.tables.is_empty() => {
                format!("(SELECT {}, {})", self.leaf(), self.expression(d.min(1)))
            }
            _ => {
                let Some((table, columns)) = self.some_table() else {
                    return format!("({}, {})", self.literal(), self.leaf());
                };
                let mut column = || columns[self.rng.usize(..columns.len())].clone();
                let (a, b, c) = (column(), column(), column());
                let filter = self.leaf();
                format!("(SELECT min(q.{a}), max(q.{b}) FROM {table} AS q WHERE q.{c} <= {filter})")
            }
        }
    }

    fn row_test(&mut self, d: u32) -> String {
        let not = self.pick(&["", "NOT "]);
        match self.rng.u32(..10) {
            0..=5 => {
                let operator = self.pick(&["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"]);
                format!("({} {operator} {})", self.row(d), self.row(d))
            }
            6 => {
                let (x, low, high) = (self.row(d), self.row(d), self.row(d));
                format!("({x} {not}BETWEEN {low} AND {high})")
            }
            7 => {
                let (base, one, other) = (self.row(d), self.row(d), self.row(d));
                format!("CASE {base} WHEN {one} THEN 1 WHEN {other} THEN 2 END")
            }
            // A list of rows counts as a subquery to SQLite.
            8 if !self.tables.is_empty() => {
                let mut pair = || format!("({}, {})", self.leaf(), self.leaf());
                let (x, one, other) = (pair(), pair(), pair());
                format!("({x} {not}IN ({one}, {other}))")
            }
            _ => {
                let Some((table, columns)) = self.some_table() else {
                    return format!("({} = {})", self.row(d), self.row(d));
                };
                let a = &columns[self.rng.usize(..columns.len())];
                let b = &columns[self.rng.usize(..columns.len())];
                // As in `subquery_test`.
                let left = match self.scope.is_empty() {
                    true => "(1, 2)".to_owned(),
                    false => format!("({}, {})", self.column(), self.column()),
                };
                format!("({left} {not}IN (SELECT s.{a}, s.{b} FROM {table} AS s))")
            }
        }
    }

    fn subquery_test(&mut self, d: u32) -> String {
        let Some((table, columns)) = self.some_table() else {
            return format!("({} IS NULL)", self.leaf());
        };
        let column = columns[self.rng.usize(..columns.len())].clone();
        let mut filter = String::new();
        if self.chance(60) {
            let operator = self.pick(&["=", "<", ">="]);
            filter = format!(" WHERE s.{column} {operator} {}", self.leaf());
        }
        let not = self.pick(&["", "NOT "]);
        if self.chance(50) {
            format!("({not}EXISTS (SELECT 1 FROM {table} AS s{filter}))")
        } else {
            // What has no affinity takes that of a REAL column here, which rounds
            // large integers: a listed deviation, kept out of reach.
            let left = if self.chance(60) && !self.scope.is_empty() {
                self.column()
            } else {
                format!("({} % 1000)", self.expression(d.min(1)))
            };
            format!("({left} {not}IN (SELECT s.{column} FROM {table} AS s{filter}))")
        }
    }
}
