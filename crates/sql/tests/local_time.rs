//! `localtime` and `utc` beside SQLite, in several time zones. The zone is a process's, so
//! each is asked about in a process of its own.

mod support;

use support::{run, session, sqlite};

const ZONES: [&str; 4] = [
    "UTC0",
    "EST5EDT,M3.2.0,M11.1.0",
    "<+0530>-5:30",
    "NZST-12NZDT,M9.5.0,M4.1.0/3",
];

#[test]
fn zones_are_as_in_sqlite() {
    let program = std::env::current_exe().unwrap();
    for zone in ZONES {
        let done = std::process::Command::new(&program)
            .args(["--exact", "in_the_zone_of_the_process", "--ignored"])
            .env("TZ", zone)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("1 passed"), "{zone}: {said}");
    }
}

#[test]
#[ignore = "run once per zone by zones_are_as_in_sqlite"]
fn in_the_zone_of_the_process() {
    // Years that the library is not asked about, hours that are skipped or come twice,
    // times that are known to be UTC, and one that has not been read as one yet.
    const TIMES: [&str; 14] = [
        "'2024-03-10 02:30'",
        "'2024-11-03 01:30:15.250'",
        "'2024-04-07 02:30'",
        "'2024-09-29 02:15'",
        "'2024-07-01 12:00Z'",
        "'2024-07-01 12:00+00:00'",
        "'2024-07-01 12:00:00-03:00'",
        "'12:34'",
        "'1969-12-31 23:59:59'",
        "'1850-02-28 20:00'",
        "'2038-01-18 00:00:00.5'",
        "'9998-12-31 00:00'",
        "1700000000, 'unixepoch'",
        "2460000.5",
    ];
    const MODIFIERS: [&str; 10] = [
        "'localtime'",
        "'utc'",
        "'LOCALTIME'",
        "'Utc'",
        "'+1 month'",
        "'start of day'",
        "'-90 minutes'",
        "'subsec'",
        "'weekday 0'",
        "'nothing'",
    ];
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let session = session();
    for time in TIMES {
        for first in MODIFIERS {
            for second in MODIFIERS {
                for third in MODIFIERS {
                    let sql = format!("SELECT datetime({time}, {first}, {second}, {third})");
                    assert_eq!(run(&session, &sql), sqlite(&connection, &sql), "{sql}");
                }
            }
        }
    }
}
