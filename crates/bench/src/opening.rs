//! `open` and `open_write`: short lives of a small database, from opening it to having
//! closed it, in one process.

use crate::compare::{Options, PEOPLE};
use crate::data;
use crate::measure::{Contestant, Laps, Plan, interleave, toss};
use crate::report::{Metric, Report};
use crate::side::{Durability, ENGINES, Engine, Settings, Workspace};
use anyhow::Result;

const NAME: &str = "short.db";
const ROWS: usize = 2;

/// Measures both and adds them to the report.
pub fn run(
    options: Options,
    workspace: &Workspace,
    rng: &mut fastrand::Rng,
    report: &mut Report,
) -> Result<()> {
    let settings = Settings::new(options.cache_bytes, Durability::Full);
    let people = data::people(rng, ROWS);
    for side in toss(rng) {
        let path = workspace.database(&ENGINES[side], NAME);
        let mut side = (ENGINES[side].open)(&path, &settings)?;
        side.batch(PEOPLE)?;
        side.load_people("INSERT", &people)?;
    }
    let plan = Plan::new(options.effort, 100, 5);
    for (name, what, writes) in [
        (
            "open",
            "open a database of two rows, read one, close",
            false,
        ),
        ("open_write", "the same, and one row updated", true),
    ] {
        let inputs = |rng: &mut fastrand::Rng| -> Vec<(i64, String)> {
            let keys = data::keys(rng, ROWS, plan.operations);
            keys.into_iter().map(|key| (key, data::name(rng))).collect()
        };
        let life = |engine: &'static Engine| -> Contestant<'_, Vec<(i64, String)>> {
            let path = workspace.database(engine, NAME);
            Box::new(move |input, laps| {
                let mut sum = 0;
                laps.start();
                for change in input {
                    let mut side = (engine.open)(&path, &settings)?;
                    let mut within = Laps::with_capacity(2);
                    sum += side.read(&[change.0], &mut within)?.unwrap_or(0);
                    if writes {
                        side.update(std::slice::from_ref(change), &mut within)?;
                    }
                    drop(side);
                    laps.lap();
                }
                Ok(Some(sum))
            })
        };
        let [ours, sqlite] = interleave(plan, rng, inputs, [life(&ENGINES[0]), life(&ENGINES[1])])?;
        report.push(Metric::latency(name, what, &ours, &sqlite));
    }
    workspace.remove(NAME)
}
