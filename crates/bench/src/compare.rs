//! `compare`: the figures that decide everything else, each beside SQLite.

use crate::control::Control;
use crate::data::{self, Person};
use crate::measure::{Contestant, Laps, Plan, interleave, toss};
use crate::opening;
use crate::report::{Better, Metric, Report};
use crate::side::{Durability, ENGINES, Settings, Side, Sum, Workspace};
use anyhow::{Result, ensure};

pub const PEOPLE: &str =
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL)";
const REST: &str = "
    CREATE TABLE sales (id INTEGER PRIMARY KEY, region INTEGER NOT NULL, amount INTEGER NOT NULL);
    CREATE TABLE copies (id INTEGER PRIMARY KEY, region INTEGER NOT NULL, amount INTEGER NOT NULL);
    CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, amount INTEGER NOT NULL);
    CREATE TABLE events (id INTEGER PRIMARY KEY, actor INTEGER NOT NULL, note TEXT NOT NULL);
";
const JOIN: &str = "SELECT u.id, u.name, SUM(o.amount) FROM users u \
                    JOIN orders o ON o.user_id = u.id GROUP BY u.id, u.name";
const USERS: usize = 100;
const ORDERS: usize = 1_000;
const LOADS: usize = 3;
/// A load of middling size, of which there are more.
const PART: usize = 50_000;
const PART_LOADS: usize = 9;

/// What to measure with.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub rows: usize,
    pub cache_bytes: usize,
    pub effort: f64,
    pub seed: u64,
}

type Sides = [Box<dyn Side>; 2];

/// Runs all metrics and adds them to the report.
pub fn run(options: Options, workspace: &Workspace, report: &mut Report) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let settings = Settings::new(options.cache_bytes, Durability::Full);
    load_part(options, &settings, workspace, &mut rng, report)?;
    load(options, &settings, workspace, &mut rng, report)?;

    let mut sides = workspace.open(&database(LOADS), &settings)?;
    prepare(&mut sides, options.rows, &mut rng)?;
    let mut bench = Bench {
        options,
        rng: &mut rng,
        report,
    };
    bench.commit(&mut sides, workspace)?;
    bench.read("read", "point SELECT of 3 columns, all cached", &mut sides)?;
    bench.read_text(&mut sides)?;
    bench.read_literal(&mut sides)?;
    bench.insert_literal(&mut sides)?;
    bench.read_unique(&mut sides)?;
    bench.join(&mut sides)?;
    bench.range(&mut sides)?;
    bench.aggregate(&mut sides)?;
    bench.autocommit_insert(&mut sides)?;
    bench.many(&mut sides)?;
    drop(sides);
    bench.read_cold(workspace)?;
    opening::run(options, workspace, &mut rng, report)
}

fn database(load: usize) -> String {
    format!("load-{load}.db")
}

/// A load into a fresh database: its session, and its rows a second.
fn load_into(
    side: usize,
    name: &str,
    people: &[data::Person],
    settings: &Settings,
    workspace: &Workspace,
) -> Result<(Box<dyn Side>, f64)> {
    let path = workspace.database(&ENGINES[side], name);
    let mut session = (ENGINES[side].open)(&path, settings)?;
    session.batch(PEOPLE)?;
    let elapsed = session.load_people("INSERT", people)?;
    Ok((session, people.len() as f64 / elapsed.as_secs_f64()))
}

/// `insert_part`: loads too small for others to write their pages meanwhile.
fn load_part(
    options: Options,
    settings: &Settings,
    workspace: &Workspace,
    rng: &mut fastrand::Rng,
    report: &mut Report,
) -> Result<()> {
    let rows = options.rows.min(PART);
    let people = data::people(rng, rows);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..PART_LOADS {
        for side in toss(rng) {
            let (_, rate) = load_into(side, "part.db", &people, settings, workspace)?;
            rates[side].push(rate);
        }
        workspace.remove("part.db")?;
    }
    let what = format!("{rows} rows inserted in one transaction, commit included");
    let [ours, sqlite] = &rates;
    report.push(Metric::rate("insert_part", &what, "rows/s", ours, sqlite));
    Ok(())
}

/// `insert`, `size` and `size_open`: each load goes into a fresh database.
fn load(
    options: Options,
    settings: &Settings,
    workspace: &Workspace,
    rng: &mut fastrand::Rng,
    report: &mut Report,
) -> Result<()> {
    let people = data::people(rng, options.rows);
    let mut rates = [Vec::new(), Vec::new()];
    let mut open_bytes = [0, 0];
    for load in 1..=LOADS {
        let name = database(load);
        for side in toss(rng) {
            let (mut session, rate) = load_into(side, &name, &people, settings, workspace)?;
            rates[side].push(rate);
            if load == LOADS {
                session.checkpoint()?;
                open_bytes[side] = workspace.bytes(&ENGINES[side], &name)?;
            }
        }
        if load + 1 < LOADS {
            workspace.remove(&name)?;
        }
    }
    let what = "rows inserted in one transaction, commit included";
    report.push(Metric::rate("insert", what, "rows/s", &rates[0], &rates[1]));
    let size = |name: &str, what: &str, [ours, sqlite]: [u64; 2]| {
        let (ours, sqlite) = (ours as f64, sqlite as f64);
        Metric::single(name, what, Better::Lower, "bytes", ours, sqlite)
    };
    let closed = [
        workspace.bytes(&ENGINES[0], &database(LOADS))?,
        workspace.bytes(&ENGINES[1], &database(LOADS))?,
    ];
    report.push(size(
        "size",
        "all files after a checkpoint and close",
        closed,
    ));
    let what = "all files after a checkpoint, logs of the open database included";
    report.push(size("size_open", what, open_bytes));
    Ok(())
}

/// The tables of the other metrics, and warm caches.
fn prepare(sides: &mut Sides, rows: usize, rng: &mut fastrand::Rng) -> Result<()> {
    let sales: Vec<(i64, i64, i64)> = (1..=rows as i64)
        .map(|id| (id, rng.i64(0..100), rng.i64(0..1_000_000)))
        .collect();
    let orders: Vec<(i64, i64, i64)> = (1..=ORDERS as i64)
        .map(|id| (id, rng.i64(1..=USERS as i64), rng.i64(1..10_000)))
        .collect();
    let users: Vec<String> = data::people(rng, USERS)
        .into_iter()
        .map(|user| format!("({}, '{}')", user.id, user.name))
        .collect();
    for side in sides.iter_mut() {
        side.batch(REST)?;
        side.load_numbers(
            "INSERT INTO sales (id, region, amount) VALUES (?1, ?2, ?3)",
            &sales,
        )?;
        side.load_numbers(
            "INSERT INTO orders (id, user_id, amount) VALUES (?1, ?2, ?3)",
            &orders,
        )?;
        side.batch(&format!(
            "INSERT INTO users (id, name) VALUES {}",
            users.join(", ")
        ))?;
        side.checkpoint()?;
        side.batch("SELECT SUM(LENGTH(email)) FROM people")?;
    }
    Ok(())
}

struct Bench<'a> {
    options: Options,
    rng: &'a mut fastrand::Rng,
    report: &'a mut Report,
}

impl Bench<'_> {
    fn plan(&self, rounds: usize, operations: usize) -> Plan {
        Plan::new(self.options.effort, rounds, operations)
    }

    /// Measures one latency on both sides and reports it.
    fn latency<I>(
        &mut self,
        (name, what): (&str, &str),
        plan: Plan,
        sides: &mut Sides,
        inputs: impl FnMut(&mut fastrand::Rng) -> I,
        run: impl Fn(&mut dyn Side, &I, &mut Laps) -> Result<Sum> + Copy,
    ) -> Result<()> {
        let samples = interleave(plan, self.rng, inputs, contestants(sides, run))?;
        self.report
            .push(Metric::latency(name, what, &samples[0], &samples[1]));
        Ok(())
    }

    /// `commit`, and how far above the raw control each side is.
    fn commit(&mut self, sides: &mut Sides, workspace: &Workspace) -> Result<()> {
        let plan = self.plan(400, 25);
        let rows = self.options.rows;
        let mut control = Control::create(&workspace.root().join("control"))?;
        let inputs = |rng: &mut fastrand::Rng| -> Vec<(i64, String)> {
            let keys = data::keys(rng, rows, plan.operations);
            keys.into_iter().map(|key| (key, data::name(rng))).collect()
        };
        let [ours, sqlite] =
            contestants(sides, |side, input: &Vec<_>, laps| side.update(input, laps));
        let raw: Contestant<'_, Vec<(i64, String)>> = Box::new(|input, laps| {
            control.run(input.len(), laps)?;
            Ok(None)
        });
        let [ours, sqlite, raw] = interleave(plan, self.rng, inputs, [ours, sqlite, raw])?;
        let what = "prepared single-row UPDATE by key, full durability";
        self.report
            .push(Metric::latency("commit", what, &ours, &sqlite));
        let floor = raw.micros();
        let over = |samples: &crate::stats::Samples| samples.micros().zip(floor, |a, b| a / b);
        self.report.push(Metric::distribution(
            "commit_over_control",
            &format!(
                "commit / raw write + fdatasync, whose p50, p95, p99 are {:.1}, {:.1}, {:.1} µs",
                floor.p50, floor.p95, floor.p99
            ),
            "× raw",
            over(&ours),
            over(&sqlite),
        ));
        Ok(())
    }

    fn read(&mut self, name: &str, what: &str, sides: &mut Sides) -> Result<()> {
        let rows = self.options.rows;
        for side in sides.iter_mut() {
            side.batch("SELECT COUNT(*), SUM(LENGTH(email)) FROM people")?;
        }
        let plan = self.plan(400, 500);
        self.latency(
            (name, what),
            plan,
            sides,
            |rng| data::keys(rng, rows, plan.operations),
            |side, keys, laps| side.read(keys, laps),
        )
    }

    /// `read_text`: as `read`, but nothing is prepared.
    fn read_text(&mut self, sides: &mut Sides) -> Result<()> {
        let rows = self.options.rows;
        let plan = self.plan(400, 500);
        self.latency(
            (
                "read_text",
                "point SELECT of a text, given as SQL each time",
            ),
            plan,
            sides,
            |rng| data::keys(rng, rows, plan.operations),
            |side, keys, laps| side.read_text(keys, laps),
        )
    }

    /// `read_literal`: as `read_text`, with another text for each key.
    fn read_literal(&mut self, sides: &mut Sides) -> Result<()> {
        let rows = self.options.rows;
        let plan = self.plan(400, 500);
        self.latency(
            ("read_literal", "point SELECT of a text, its key in the SQL"),
            plan,
            sides,
            |rng| {
                let keys = data::keys(rng, rows, plan.operations);
                let text = |key| format!("SELECT name FROM people WHERE id = {key}");
                keys.into_iter().map(text).collect::<Vec<_>>()
            },
            |side, texts, laps| side.read_literal(texts, laps),
        )
    }

    /// `insert_literal`: as programs write that put their values into the SQL.
    fn insert_literal(&mut self, sides: &mut Sides) -> Result<()> {
        let plan = self.plan(100, 500);
        self.latency(
            (
                "insert_literal",
                "INSERT with its values in the SQL, 500 a transaction",
            ),
            plan,
            sides,
            |rng| {
                let person = |id| data::person(rng, id);
                let people = (0..plan.operations as i64).map(person);
                let text = |Person { id, name, .. }: Person| {
                    let name = name.replace('\'', "''");
                    format!("INSERT INTO events (actor, note) VALUES ({id}, '{name}')")
                };
                people.map(text).collect::<Vec<_>>()
            },
            |side, texts, laps| side.insert_literal(texts, laps),
        )
    }

    /// `read_unique`: a table of a fifth of the rows with a unique text.
    fn read_unique(&mut self, sides: &mut Sides) -> Result<()> {
        let rows = self.options.rows / 5;
        for side in sides.iter_mut() {
            side.batch(&format!(
                "CREATE TABLE handles (id INTEGER PRIMARY KEY, handle TEXT NOT NULL UNIQUE, \
                 name TEXT NOT NULL);
                 INSERT INTO handles SELECT id, 'handle-' || (id * 7919 % 1000003) || '-' || id, \
                 name FROM people WHERE id <= {rows}"
            ))?;
            side.checkpoint()?;
            side.batch("SELECT COUNT(*), SUM(LENGTH(name)) FROM handles")?;
        }
        let plan = self.plan(400, 500);
        self.latency(
            ("read_unique", "point SELECT of 3 columns by a UNIQUE text"),
            plan,
            sides,
            |rng| {
                let keys = data::keys(rng, rows, plan.operations);
                let handle = |id: i64| format!("handle-{}-{id}", id * 7919 % 1_000_003);
                keys.into_iter().map(handle).collect::<Vec<_>>()
            },
            |side, handles, laps| side.read_unique(handles, laps),
        )
    }

    fn join(&mut self, sides: &mut Sides) -> Result<()> {
        let what = "100 users × 1,000 orders, GROUP BY u.id, u.name, SUM";
        self.join_metric("join", what, sides)?;
        for side in sides.iter_mut() {
            side.batch("CREATE INDEX orders_user ON orders (user_id)")?;
        }
        self.join_metric(
            "join_indexed",
            "the same with an index on the orders' user",
            sides,
        )
    }

    fn join_metric(&mut self, name: &str, what: &str, sides: &mut Sides) -> Result<()> {
        let plan = self.plan(300, 5);
        self.latency(
            (name, what),
            plan,
            sides,
            |rng| (rng.i64(1..=ORDERS as i64), rng.i64(1..10_000)),
            |side, change, laps| side.join(JOIN, *change, plan.operations, laps),
        )
    }

    fn range(&mut self, sides: &mut Sides) -> Result<()> {
        let starts = self.options.rows.saturating_sub(100).max(1);
        let plan = self.plan(200, 50);
        self.latency(
            ("range", "100-row scan by key, 3 columns"),
            plan,
            sides,
            |rng| data::keys(rng, starts, plan.operations),
            |side, starts, laps| side.range(starts, laps),
        )
    }

    fn aggregate(&mut self, sides: &mut Sides) -> Result<()> {
        self.latency(
            (
                "aggregate",
                "SUM and COUNT over the whole table, filtered to about half",
            ),
            self.plan(40, 1),
            sides,
            |rng| vec![(rng.i64(0..500_000), rng.i64(500_000..1_000_000))],
            |side, bounds, laps| side.aggregate(bounds, laps),
        )
    }

    fn autocommit_insert(&mut self, sides: &mut Sides) -> Result<()> {
        let plan = self.plan(200, 25);
        let people = |rng: &mut fastrand::Rng| -> Vec<Person> {
            (0..plan.operations as i64)
                .map(|id| data::person(rng, id))
                .collect()
        };
        self.latency(
            (
                "autocommit_insert",
                "prepared single-row INSERT, full durability",
            ),
            plan,
            sides,
            people,
            |side, people, laps| side.insert_events(people, laps),
        )
    }

    /// `update_many`, `insert_many` and `delete_many`: a thousand rows a statement.
    fn many(&mut self, sides: &mut Sides) -> Result<()> {
        const UPDATE: &str = "UPDATE sales SET amount = amount + 1 WHERE id BETWEEN ?1 AND ?2";
        const INSERT: &str = "INSERT OR IGNORE INTO copies \
                              SELECT id, region, amount FROM sales WHERE id BETWEEN ?1 AND ?2";
        const DELETE: &str = "DELETE FROM copies WHERE id BETWEEN ?1 AND ?2";
        let starts = self.options.rows.saturating_sub(1_000).max(1);
        let plan = self.plan(60, 5);
        for (name, what, before, sql) in [
            (
                "update_many",
                "UPDATE of 1,000 rows by a range of keys",
                None,
                UPDATE,
            ),
            (
                "insert_many",
                "INSERT ... SELECT of 1,000 rows",
                Some(DELETE),
                INSERT,
            ),
            (
                "delete_many",
                "DELETE of 1,000 rows by a range of keys",
                Some(INSERT),
                DELETE,
            ),
        ] {
            self.latency(
                (name, what),
                plan,
                sides,
                |rng| data::keys(rng, starts, plan.operations),
                |side, starts, laps| side.thousands(before, sql, starts, laps),
            )?;
        }
        Ok(())
    }

    /// Point reads with a cache of a twentieth of the data; the operating
    /// system's own cache holds the files.
    fn read_cold(&mut self, workspace: &Workspace) -> Result<()> {
        let name = database(LOADS - 1);
        let bytes = workspace.bytes(&ENGINES[1], &name)?;
        let settings = Settings::new((bytes / 20) as usize, Durability::Full);
        let mut sides = workspace.open(&name, &settings)?;
        let what = format!(
            "point SELECT, cache of {} KiB: a 20th of the data",
            bytes / 20 / 1_024
        );
        self.read("read_cold", &what, &mut sides)
    }
}

fn contestants<'a, I>(
    sides: &'a mut Sides,
    run: impl Fn(&mut dyn Side, &I, &mut Laps) -> Result<Sum> + Copy + 'a,
) -> [Contestant<'a, I>; 2] {
    sides.each_mut().map(|side| -> Contestant<'a, I> {
        Box::new(move |input, laps| run(side.as_mut(), input, laps))
    })
}

/// Refuses sizes that the workloads cannot run on.
pub fn check(options: &Options) -> Result<()> {
    ensure!(options.rows >= 1_000, "--rows must be at least 1,000");
    ensure!(options.effort > 0.0, "--effort must be above zero");
    Ok(())
}
