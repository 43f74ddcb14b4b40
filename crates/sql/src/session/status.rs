//! PRAGMA wal_status: the counters of the log, of commits and of checkpoints,
//! a row each. What they mean stands at the fields of `fulgurite_store::Stats`; what
//! is without a limit there is 0 here.

use fulgurite_store::Store;

use crate::value::Value;

/// Name and value of each counter. A database without a log (in memory, or
/// opened for reading) shows those of the store only.
pub fn rows(store: &Store) -> Vec<Vec<Value>> {
    let stats = store.stats();
    let mut counters = vec![
        ("visible_commit", stats.visible),
        ("checkpointed_commit", stats.checkpoint),
        ("file_bytes", stats.file_bytes),
        ("free_bytes", stats.free_bytes),
        ("kept_nodes", stats.kept_nodes),
        ("commits_in_place", stats.commits_in_place),
        ("conflicts", stats.conflicts),
        (
            "writers_at_once",
            u64::from(stats.writers_at_once.unwrap_or(0)),
        ),
        ("unwritten_pages", stats.cache.unwritten),
        ("pages_written", stats.writes.pages),
        ("pages_written_by_waiters", stats.writes.helped),
        ("page_bytes_written", stats.writes.bytes),
        ("commit_lock_p50_ns", stats.commit_lock.p50_ns),
        ("commit_lock_p99_ns", stats.commit_lock.p99_ns),
        ("commit_lock_longest_ns", stats.commit_lock.longest_ns),
    ];
    if let Some(log) = stats.log {
        counters.extend([
            ("records", log.records),
            ("bytes", log.bytes),
            ("writes", log.writes),
            ("syncs", log.syncs),
            ("largest_group", log.largest_group),
            ("parks", log.parks),
            ("pressure_waits", log.pressure_waits),
            ("extensions", log.extensions),
            ("switches", log.switches),
            ("leases", log.leases),
            ("crowd_waits", log.crowd_waits),
            ("crowd_wait_ns", log.crowd_wait_nanos),
        ]);
    }
    counters
        .into_iter()
        .map(|(name, count)| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            vec![Value::text(name), Value::Integer(count)]
        })
        .collect()
}
