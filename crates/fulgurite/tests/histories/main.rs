//! Random concurrent transactions over lists, registers and a growing set, and a
//! search for dependency cycles in what they saw: on SQL and on the key-value
//! interface, at both levels. `serializable` must leave nothing; `snapshot` may
//! leave write skew and nothing else, and leaves some, which shows that the
//! checker finds it.
//!
//! Histories of one thread that interleaves sessions follow from their seed alone
//! (printed on failure). Those of real threads do not; their seeds fix what each
//! thread asks for. `FULGURITE_HISTORY_SEEDS` is the number of seeds for each
//! combination.

mod checker;
mod history;
mod key_value;
mod run;
mod sql;

use checker::{Anomaly, Counts, check};
use fulgurite_store::Isolation;
use history::{Event, History, Transaction};
use run::{Ask, Begin, Beginning, Target, interleaved, threaded};

fn seeds(quick: u64) -> u64 {
    std::env::var("FULGURITE_HISTORY_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(quick)
}

const KINDS: [(&str, Beginning); 4] = [
    ("SQL", Beginning::Snapshot),
    ("key-value", Beginning::Snapshot),
    ("SQL", Beginning::Hold),
    ("key-value", Beginning::Hold),
];

fn target(
    (kind, beginning): (&str, Beginning),
    isolation: Isolation,
    seed: u64,
) -> Box<dyn Target> {
    match kind {
        "SQL" => Box::new(sql::Sql::new(isolation, beginning, seed.is_multiple_of(2))),
        _ => Box::new(key_value::KeyValue::new(isolation, beginning)),
    }
}

fn examine(name: &str, quick: u64, record: impl Fn(&dyn Target, u64) -> History) {
    for kind in KINDS {
        let seeds = seeds(quick);
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            let (mut total, mut skews) = (Counts::default(), 0);
            for seed in 0..seeds {
                let history = record(target(kind, isolation, seed).as_ref(), seed);
                let (anomalies, counts) = check(&history);
                total += counts;
                for anomaly in anomalies {
                    let allowed = isolation == Isolation::Snapshot
                        && matches!(anomaly, Anomaly::WriteSkew(_));
                    assert!(
                        allowed,
                        "{name}, {kind:?}, {isolation:?}, seed {seed}: {anomaly:?} in {history:#?}"
                    );
                    skews += 1;
                }
            }
            println!(
                "{name}, {kind:?}, {isolation:?}: {seeds} seeds, {} transactions, {} committed, \
                 {} reads, {} dependencies, {skews} histories with write skew",
                total.transactions, total.committed, total.reads, total.edges
            );
            assert!(
                isolation == Isolation::Serializable || skews > 0,
                "the checker finds no write skew where there must be some"
            );
        }
    }
}

#[test]
fn interleaved_sessions() {
    examine("interleaved", 400, interleaved);
}

#[test]
fn real_threads() {
    examine("threads", 60, threaded);
}

/// What the histories of sessions that hold are about does happen.
#[test]
fn sessions_that_are_used_to_it_begin_without_a_snapshot() {
    for kind in KINDS {
        let target = target(kind, Isolation::Serializable, 0);
        let (mut used, mut other) = (target.session(), target.session());
        let mut meanwhile = |ask| {
            other.begin(Begin::Autocommit);
            other.run(ask);
        };
        used.begin(Begin::Optimistic);
        used.run(Ask::Append(0, 1));
        meanwhile(Ask::Add(2));
        let rows = match kind.1 {
            Beginning::Snapshot => vec![],
            Beginning::Hold => vec![2],
        };
        let seen = used.run(Ask::ReadSet(0, 9));
        assert_eq!(seen, [Event::ReadSet(0, 9, rows)], "{kind:?}");
        meanwhile(Ask::Add(3));
        assert_eq!(used.run(Ask::ReadSet(0, 9)), seen, "{kind:?}");
        assert!(!used.commit(), "what it read has changed");
    }
}

/// A transaction that ran beside all others of its history.
fn beside(events: &[Event]) -> Transaction {
    Transaction {
        events: events.to_vec(),
        committed: true,
        began: 0,
        ended: 100,
    }
}

fn anomalies(transactions: Vec<Transaction>) -> Vec<Anomaly> {
    check(&History { transactions }).0
}

#[test]
fn the_checker_knows_each_anomaly() {
    use Event::{Add, Append, Read, ReadList, ReadSet, Write};
    let found = anomalies(vec![
        beside(&[Read(1, 0), Write(1, 11)]),
        beside(&[Read(1, 0), Write(1, 12)]),
    ]);
    assert!(
        found.iter().any(|a| matches!(a, Anomaly::Lost(_))),
        "{found:?}"
    );
    let skew = [
        beside(&[Read(1, 0), Read(2, 0), Write(1, 11)]),
        beside(&[Read(1, 0), Read(2, 0), Write(2, 12)]),
    ];
    let found = anomalies(skew.to_vec());
    assert!(
        matches!(found.as_slice(), [Anomaly::WriteSkew(_)]),
        "{found:?}"
    );
    let found = anomalies(vec![
        beside(&[ReadSet(0, 9, vec![]), Add(3)]),
        beside(&[ReadSet(0, 9, vec![]), Add(4)]),
    ]);
    assert!(
        matches!(found.as_slice(), [Anomaly::WriteSkew(_)]),
        "{found:?}"
    );
    let found = anomalies(vec![
        beside(&[Append(1, 5), Append(2, 6)]),
        beside(&[ReadList(1, vec![5]), ReadList(2, vec![])]),
        beside(&[ReadList(1, vec![5]), ReadList(2, vec![6])]),
    ]);
    assert!(
        matches!(found.as_slice(), [Anomaly::SingleSkew(_)]),
        "{found:?}"
    );
    let found = anomalies(vec![
        beside(&[Append(1, 5), ReadList(2, vec![6])]),
        beside(&[Append(2, 6), ReadList(1, vec![5])]),
    ]);
    assert!(
        matches!(found.as_slice(), [Anomaly::Circular(_)]),
        "{found:?}"
    );
    let mut aborted = beside(&[Append(1, 5)]);
    aborted.committed = false;
    let found = anomalies(vec![aborted, beside(&[ReadList(1, vec![5])])]);
    assert!(found.contains(&Anomaly::AbortedRead(5)), "{found:?}");
    let found = anomalies(vec![
        beside(&[Append(1, 5), Append(1, 6)]),
        beside(&[ReadList(1, vec![5])]),
        beside(&[ReadList(1, vec![5, 6])]),
    ]);
    assert!(found.contains(&Anomaly::IntermediateRead(5)), "{found:?}");
    let found = anomalies(vec![beside(&[
        ReadList(1, vec![]),
        Append(1, 5),
        ReadList(1, vec![]),
    ])]);
    assert!(found.contains(&Anomaly::Internal(0)), "{found:?}");
    // A stale read: the write had returned before the reader began.
    let mut late = beside(&[Read(1, 0)]);
    (late.began, late.ended) = (200, 300);
    let found = anomalies(vec![beside(&[Read(1, 0), Write(1, 11)]), late]);
    assert!(
        matches!(found.as_slice(), [Anomaly::SingleSkew(_)]),
        "{found:?}"
    );
    let found = anomalies(vec![
        beside(&[Read(1, 0), Write(1, 11), Append(3, 7)]),
        beside(&[Read(1, 11), ReadSet(0, 9, vec![]), ReadList(3, vec![7])]),
    ]);
    assert_eq!(found, []);
}
