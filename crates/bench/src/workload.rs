//! Every workload, written once against `rusqlite`'s interface and compiled a
//! second time against ours: the module above says which library `db` is.

use super::db::types::{Value, ValueRef};
use super::db::{Connection, MAIN_DB, Row, Rows, params};
use crate::data::Person;
use crate::measure::Laps;
use crate::side::{Body, CommitLock, Commits, Crossing, End, Part, Side, Sum, Transactions};
use anyhow::Result;
use std::time::{Duration, Instant};

/// A warm connection to one database.
pub struct Session {
    connection: Connection,
}

impl Session {
    pub fn over(connection: Connection) -> Self {
        Self { connection }
    }
}

impl Session {
    /// Does something with each, and laps at each commit.
    fn committing<T>(
        &self,
        commits: Commits,
        items: &[T],
        laps: &mut Laps,
        mut run: impl FnMut(&Connection, &T) -> Result<()>,
    ) -> Result<()> {
        laps.start();
        if commits == Commits::One {
            self.connection.execute_batch("BEGIN")?;
        }
        for item in items {
            run(&self.connection, item)?;
            if commits == Commits::Each {
                laps.lap();
            }
        }
        if commits == Commits::One {
            self.connection.execute_batch("COMMIT")?;
            laps.lap();
        }
        Ok(())
    }
}

impl Side for Session {
    fn batch(&mut self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql)?)
    }

    fn checkpoint(&mut self) -> Result<()> {
        super::checkpoint(&self.connection)
    }

    fn load_people(&mut self, verb: &str, people: &[Person]) -> Result<Duration> {
        let started = Instant::now();
        let transaction = self.connection.transaction()?;
        {
            let text = format!("{verb} INTO people (id, name, email) VALUES (?1, ?2, ?3)");
            let mut insert = transaction.prepare_cached(&text)?;
            for person in people {
                insert.execute(params![person.id, person.name, person.email])?;
            }
        }
        transaction.commit()?;
        Ok(started.elapsed())
    }

    fn load_people_by(&mut self, rows: usize, people: &[Person]) -> Result<Duration> {
        let started = Instant::now();
        let transaction = self.connection.transaction()?;
        for people in people.chunks(rows) {
            let values = vec!["(?, ?, ?)"; people.len()].join(", ");
            let text = format!("INSERT INTO people (id, name, email) VALUES {values}");
            let mut insert = transaction.prepare_cached(&text)?;
            for (at, person) in people.iter().enumerate() {
                insert.raw_bind_parameter(3 * at + 1, person.id)?;
                insert.raw_bind_parameter(3 * at + 2, &person.name)?;
                insert.raw_bind_parameter(3 * at + 3, &person.email)?;
            }
            insert.raw_execute()?;
        }
        transaction.commit()?;
        Ok(started.elapsed())
    }

    fn load_numbers(&mut self, sql: &str, rows: &[(i64, i64, i64)]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare(sql)?;
            for (a, b, c) in rows {
                insert.execute(params![a, b, c])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, changes: &[(i64, String)], laps: &mut Laps) -> Result<Sum> {
        let mut update = self
            .connection
            .prepare_cached("UPDATE people SET name = ?1 WHERE id = ?2")?;
        let mut changed = 0;
        laps.start();
        for (id, name) in changes {
            changed += update.execute(params![name, id])?;
            laps.lap();
        }
        Ok(Some(changed as u64))
    }

    fn read(&mut self, keys: &[i64], laps: &mut Laps) -> Result<Sum> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id, name, email FROM people WHERE id = ?1")?;
        let mut sum = 0u64;
        laps.start();
        for key in keys {
            let (id, name, email) = select.query_row([key], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                ))
            })?;
            sum = sum.wrapping_mul(31) + id as u64 + (name.len() + email.len()) as u64;
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn read_text(&mut self, keys: &[i64], laps: &mut Laps) -> Result<Sum> {
        let mut sum = 0u64;
        laps.start();
        for key in keys {
            let sql = "SELECT name FROM people WHERE id = ?1";
            let name: String = self.connection.query_row(sql, [key], |row| row.get(0))?;
            sum = sum.wrapping_mul(31) + name.len() as u64;
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn read_literal(&mut self, texts: &[String], laps: &mut Laps) -> Result<Sum> {
        let mut sum = 0u64;
        laps.start();
        for sql in texts {
            let name: String = self.connection.query_row(sql, [], |row| row.get(0))?;
            sum = sum.wrapping_mul(31) + name.len() as u64;
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn insert_literal(&mut self, texts: &[String], laps: &mut Laps) -> Result<Sum> {
        self.batch("BEGIN")?;
        laps.start();
        for sql in texts {
            self.connection.execute(sql, [])?;
            laps.lap();
        }
        self.batch("COMMIT")?;
        Ok(Some(self.connection.last_insert_rowid() as u64))
    }

    fn statements(&mut self, sql: &str, keys: &[i64], end: End, laps: &mut Laps) -> Result<Sum> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut changed = 0;
        laps.start();
        self.connection.execute_batch("BEGIN")?;
        for key in keys {
            changed += statement.execute([key])?;
        }
        if end == End::Commit {
            self.connection.execute_batch("COMMIT")?;
        }
        laps.lap();
        if end == End::Rollback {
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(Some(changed as u64))
    }

    fn compile(&mut self, texts: &[String], laps: &mut Laps) -> Result<Sum> {
        let mut columns = 0;
        laps.start();
        for sql in texts {
            columns += self.connection.prepare(sql)?.column_count();
            laps.lap();
        }
        Ok(Some(columns as u64))
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<String>> {
        let mut select = self.connection.prepare(sql)?;
        let columns = select.column_count();
        let mut rows = select.query([])?;
        let mut texts = Vec::new();
        while let Some(row) = rows.next()? {
            let values: Result<Vec<Value>> = (0..columns).map(|i| Ok(row.get(i)?)).collect();
            texts.push(format!("{:?}", values?));
        }
        Ok(texts)
    }

    fn query(&mut self, sql: &str, ordered: bool, laps: &mut Laps) -> Result<Sum> {
        let mut select = self.connection.prepare_cached(sql)?;
        let columns = select.column_count();
        laps.start();
        let sum = read_all(select.query([])?, columns, ordered)?;
        laps.lap();
        Ok(Some(sum))
    }

    fn lookups(&mut self, sql: &str, keys: &[i64], laps: &mut Laps) -> Result<Sum> {
        let mut select = self.connection.prepare_cached(sql)?;
        let columns = select.column_count();
        let mut sum = 0u64;
        laps.start();
        for key in keys {
            let of_key = read_all(select.query([key])?, columns, false)?;
            sum = sum.wrapping_mul(31).wrapping_add(of_key);
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn changes(
        &mut self,
        sql: &str,
        rows: &[(i64, Option<Body>)],
        commits: Commits,
        laps: &mut Laps,
    ) -> Result<Sum> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut changed = 0;
        self.committing(commits, rows, laps, |_, (key, body)| {
            changed += match body {
                Some(Body::Blob(bytes)) => statement.execute(params![key, bytes])?,
                Some(Body::Text(text)) => statement.execute(params![key, text])?,
                None => statement.execute([key])?,
            };
            Ok(())
        })?;
        Ok(Some(changed as u64))
    }

    fn read_parts(&mut self, keys: &[i64], part: Part, laps: &mut Laps) -> Result<Sum> {
        let (Part::Middle(length) | Part::All(length)) = part;
        let mut buffer = vec![0; length];
        let mut sum = 0u64;
        laps.start();
        for key in keys {
            let blob = self
                .connection
                .blob_open(MAIN_DB, "documents", "body", *key, true)?;
            let mut at = match part {
                Part::Middle(_) => blob.len() / 2,
                Part::All(_) => 0,
            };
            loop {
                let read = blob.read_at(&mut buffer, at)?;
                at += read;
                let ends = [buffer.first(), buffer[..read].last()];
                for byte in ends.into_iter().flatten() {
                    sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
                }
                if read == 0 || matches!(part, Part::Middle(_)) {
                    break;
                }
            }
            sum = sum.wrapping_mul(31).wrapping_add(at as u64);
            blob.close()?;
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn write_parts(
        &mut self,
        keys: &[i64],
        bytes: &[u8],
        commits: Commits,
        laps: &mut Laps,
    ) -> Result<Sum> {
        let mut sum = 0;
        self.committing(commits, keys, laps, |connection, key| {
            let mut blob = connection.blob_open(MAIN_DB, "documents", "body", *key, false)?;
            sum += blob.len() as u64;
            blob.write_at(bytes, blob.len() / 2)?;
            Ok(blob.close()?)
        })?;
        Ok(Some(sum))
    }

    fn digest(&mut self, sql: &str) -> Result<u64> {
        let mut select = self.connection.prepare(sql)?;
        let columns = select.column_count();
        let mut rows = select.query([])?;
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let value = row.get_ref(column)?;
                let (kind, fixed, bytes): (u8, u64, &[u8]) = match value {
                    ValueRef::Null => (0, 0, &[]),
                    ValueRef::Integer(n) => (1, n as u64, &[]),
                    ValueRef::Real(x) => (2, x.to_bits(), &[]),
                    ValueRef::Text(bytes) => (3, bytes.len() as u64, bytes),
                    ValueRef::Blob(bytes) => (4, bytes.len() as u64, bytes),
                };
                digest.update(&[kind]);
                digest.update(&fixed.to_le_bytes());
                digest.update(bytes);
            }
        }
        Ok(digest.finalize())
    }

    fn read_unique(&mut self, handles: &[String], laps: &mut Laps) -> Result<Sum> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id, name, handle FROM handles WHERE handle = ?1")?;
        let mut sum = 0u64;
        laps.start();
        for handle in handles {
            let (id, name, handle) = select.query_row([handle], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                ))
            })?;
            sum = sum.wrapping_mul(31) + id as u64 + (name.len() + handle.len()) as u64;
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn range(&mut self, starts: &[i64], laps: &mut Laps) -> Result<Sum> {
        let mut select = self.connection.prepare_cached(
            "SELECT id, name, email FROM people WHERE id >= ?1 AND id < ?2 ORDER BY id",
        )?;
        let mut sum = 0u64;
        laps.start();
        for start in starts {
            let mut rows = select.query(params![start, start + 100])?;
            while let Some(row) = rows.next()? {
                let (name, email) = (row.get::<_, String>(1)?, row.get::<_, String>(2)?);
                sum = sum.wrapping_mul(31) + row.get::<_, i64>(0)? as u64;
                sum += (name.len() + email.len()) as u64;
            }
            drop(rows);
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn aggregate(&mut self, bounds: &[(i64, i64)], laps: &mut Laps) -> Result<Sum> {
        let mut select = self.connection.prepare_cached(
            "SELECT SUM(amount), COUNT(*) FROM sales WHERE amount >= ?1 AND amount < ?2",
        )?;
        let mut sum = 0u64;
        laps.start();
        for (from, to) in bounds {
            let (total, count) = select.query_row(params![from, to], |row| {
                Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?))
            })?;
            sum = sum.wrapping_mul(31) + total.unwrap_or(0) as u64 + count as u64;
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn join(
        &mut self,
        sql: &str,
        change: (i64, i64),
        times: usize,
        laps: &mut Laps,
    ) -> Result<Sum> {
        self.connection
            .prepare_cached("UPDATE orders SET amount = ?1 WHERE id = ?2")?
            .execute(params![change.1, change.0])?;
        let mut select = self.connection.prepare_cached(sql)?;
        let mut sum = 0u64;
        laps.start();
        for _ in 0..times {
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let name = row.get::<_, String>(1)?;
                let number = row.get::<_, i64>(0)? as u64 * 1_000 + row.get::<_, i64>(2)? as u64;
                sum = sum.wrapping_add(number * name.len() as u64);
            }
            drop(rows);
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn thousands(
        &mut self,
        before: Option<&str>,
        sql: &str,
        starts: &[i64],
        laps: &mut Laps,
    ) -> Result<Sum> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut changed = 0;
        for start in starts {
            let keys = [*start, start + 999];
            if let Some(before) = before {
                self.connection.prepare_cached(before)?.execute(keys)?;
            }
            laps.start();
            changed += statement.execute(keys)?;
            laps.lap();
        }
        Ok(Some(changed as u64))
    }

    fn insert_events(&mut self, people: &[Person], laps: &mut Laps) -> Result<Sum> {
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO events (actor, note) VALUES (?1, ?2)")?;
        laps.start();
        for person in people {
            insert.execute(params![person.id, person.name])?;
            laps.lap();
        }
        drop(insert);
        Ok(Some(self.connection.last_insert_rowid() as u64))
    }

    fn insert_until(&mut self, sql: &str, actor: i64, end: Instant, laps: &mut Laps) -> Result<()> {
        let mut insert = self.connection.prepare_cached(sql)?;
        laps.start();
        while Instant::now() < end {
            insert.execute(params![actor, "a note of some length"])?;
            laps.lap();
        }
        Ok(())
    }

    fn insert_now_and_then(
        &mut self,
        sql: &str,
        actor: i64,
        seed: u64,
        end: Instant,
        laps: &mut Laps,
    ) -> Result<()> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut insert = self.connection.prepare_cached(sql)?;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_micros(rng.u64(50..250)));
            laps.start();
            insert.execute(params![actor, "a note of some length"])?;
            laps.lap();
        }
        Ok(())
    }

    fn update_until(&mut self, sql: &str, end: Instant, laps: &mut Laps) -> Result<()> {
        let mut update = self.connection.prepare_cached(sql)?;
        laps.start();
        while Instant::now() < end {
            update.execute([])?;
            laps.lap();
        }
        Ok(())
    }

    fn transactions_until(
        &mut self,
        kind: Transactions,
        seed: u64,
        end: Instant,
        laps: &mut Laps,
    ) -> Result<u64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let begin = match kind {
            Transactions::Immediate { .. } => "BEGIN IMMEDIATE",
            Transactions::Updates { .. }
            | Transactions::Inserts { .. }
            | Transactions::Indexed { .. } => super::BEGIN,
        };
        let mut begin = self.connection.prepare_cached(begin)?;
        let mut commit = self.connection.prepare_cached("COMMIT")?;
        let (sql, each, rows) = match kind {
            Transactions::Updates { each, rows } | Transactions::Immediate { each, rows } => {
                let sql = "UPDATE accounts SET balance = balance + ?1 WHERE id = ?2";
                (sql, each, rows)
            }
            Transactions::Inserts { each } => {
                let sql = "INSERT INTO w0 (actor, note) VALUES (?2, 'note ' || ?1)";
                (sql, each, 1_000)
            }
            Transactions::Indexed { each } => {
                let sql = "INSERT INTO indexed (actor, place, moment, note) \
                    VALUES (?2 % 5000, ?2 % 20, ?2, 'note ' || ?1)";
                (sql, each, 1_000_000_000)
            }
        };
        let mut change = self.connection.prepare_cached(sql)?;
        let mut ids = vec![0; each];
        let mut lost = 0;
        laps.start();
        while Instant::now() < end {
            ids.fill_with(|| 1 + rng.u64(..rows) as i64);
            loop {
                begin.execute([])?;
                for (by, id) in (-2i64..).zip(&ids) {
                    change.execute(params![by, id])?;
                }
                match is_lost(commit.execute([]))? {
                    true => lost += 1,
                    false => break,
                }
            }
            laps.lap();
        }
        Ok(lost)
    }

    fn cross_until(
        &mut self,
        kind: Crossing,
        rows: u64,
        seed: u64,
        end: Instant,
        laps: &mut Laps,
    ) -> Result<u64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let begin = match kind {
            Crossing::OneWay | Crossing::BothWays => None,
            Crossing::Transaction => Some(super::BEGIN),
        };
        let prepare = |sql: &str| self.connection.prepare_cached(sql);
        let mut begin = begin.map(prepare).transpose()?;
        let mut commit = prepare("COMMIT")?;
        let mut copies = [
            prepare("UPDATE east SET n = (SELECT n FROM west WHERE id = ?2) + 1 WHERE id = ?1")?,
            prepare("UPDATE west SET n = (SELECT n FROM east WHERE id = ?2) + 1 WHERE id = ?1")?,
        ];
        let mut moves = [
            prepare("UPDATE east SET n = n - 1 WHERE id = ?1")?,
            prepare("UPDATE west SET n = n + 1 WHERE id = ?1")?,
        ];
        let mut lost = 0;
        laps.start();
        while Instant::now() < end {
            let ids = [(); 2].map(|()| 1 + rng.u64(..rows) as i64);
            match &mut begin {
                None => {
                    let ways = if kind == Crossing::OneWay { 1 } else { 2 };
                    copies[rng.usize(..ways)].execute(ids)?;
                }
                Some(begin) => loop {
                    begin.execute([])?;
                    for (change, id) in moves.iter_mut().zip(ids) {
                        change.execute([id])?;
                    }
                    match is_lost(commit.execute([]))? {
                        true => lost += 1,
                        false => break,
                    }
                },
            }
            laps.lap();
        }
        Ok(lost)
    }

    fn commit_lock(&self) -> Option<CommitLock> {
        super::commit_lock(&self.connection)
    }

    fn grow(&mut self, first: i64, rows: usize, payload: &[u8]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO heap (id, payload) VALUES (?1, ?2)")?;
            for i in 0..rows {
                let from = (crate::data::scattered(first as u64 + i as u64) as usize)
                    % (payload.len() / 2);
                let slice = &payload[from..from + payload.len() / 2];
                insert.execute(params![first + i as i64, slice])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn visit(&mut self, keys: &[i64]) -> Result<u64> {
        let mut select = self
            .connection
            .prepare_cached("SELECT payload FROM heap WHERE id = ?1")?;
        let mut sum = 0;
        for key in keys {
            let payload = select.query_row([key], |row| row.get::<_, Vec<u8>>(0))?;
            sum += payload.len() as u64;
        }
        Ok(sum)
    }
}

/// Whether a commit lost, and has rolled back.
fn is_lost(committed: super::db::Result<usize>) -> Result<bool> {
    const SNAPSHOT_LOST: i32 = 517;
    match committed {
        Ok(_) => Ok(false),
        Err(e) if e.sqlite_extended_error_code() == Some(SNAPSHOT_LOST) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// A sum over all values of all rows.
fn read_all(mut rows: Rows<'_>, columns: usize, ordered: bool) -> Result<u64> {
    let mut sum = 0u64;
    while let Some(row) = rows.next()? {
        let of_row = sum_of(row, columns)?;
        if ordered {
            sum = sum.wrapping_mul(31);
        }
        sum = sum.wrapping_add(of_row);
    }
    Ok(sum)
}

/// Texts and blobs count by their first bytes and their length: what is measured is not the
/// sum.
fn sum_of(row: &Row<'_>, columns: usize) -> Result<u64> {
    let mut sum = 0u64;
    for column in 0..columns {
        let value = match row.get_ref(column)? {
            ValueRef::Null => 1,
            ValueRef::Integer(n) => n as u64,
            ValueRef::Real(x) => x.to_bits(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                let head = bytes
                    .first_chunk()
                    .map_or(0, |head| u64::from_le_bytes(*head));
                head.wrapping_add(bytes.len() as u64)
            }
        };
        sum = sum.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(value);
    }
    Ok(sum)
}
