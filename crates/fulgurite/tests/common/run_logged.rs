//! What programs over either crate write down of a statement.

/// Defines `Log` and `run` over the crate `$db`.
macro_rules! run_logged {
    ($db:ident) => {
        pub type Log = Vec<String>;

        /// Runs a statement and writes down its rows, or code and message of its error.
        fn run(log: &mut Log, db: &$db::Connection, sql: &str) {
            let rows = || -> $db::Result<Vec<String>> {
                let mut statement = db.prepare(sql)?;
                let width = statement.column_count();
                let mut rows = statement.query([])?;
                let mut out = Vec::new();
                while let Some(row) = rows.next()? {
                    for column in 0..width {
                        out.push(format!("{:?}", row.get_ref(column)?));
                    }
                }
                Ok(out)
            };
            let outcome = rows().map_err(|error| match error {
                $db::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg),
                $db::Error::SqliteFailure(error, msg) => {
                    (error.extended_code, msg.unwrap_or_default())
                }
                other => (0, other.to_string()),
            });
            log.push(format!("{sql}: {outcome:?}"));
        }
    };
}
