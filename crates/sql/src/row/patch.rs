//! Changing columns of a row of which only the start is at hand.

use super::read::RowReader;
use super::tag;
use super::write::append;
use crate::error::{Error, Result};
use crate::value::ValueRef;

/// Makes `out` what the start of a row becomes when these columns, which ascend, are
/// changed; what follows the start stays as it is. False where one of them does not lie in
/// the start, or is not stored.
///
/// # Errors
/// `SQLITE_TOOBIG` where columns would lie beyond 4 GiB.
pub fn patch<'v>(
    start: &[u8],
    changes: impl IntoIterator<Item = (usize, ValueRef<'v>)>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    out.clear();
    // What is damaged is told by who reads the row whole.
    let Ok(row) = RowReader::new(start) else {
        return Ok(false);
    };
    let body_start = start.len() - row.body.len();
    let tags_start = body_start - row.tags.len();
    out.extend_from_slice(start.get(..body_start).unwrap_or(&[]));
    let (mut next, mut at, mut grown) = (0, 0, 0);
    for (column, value) in changes {
        let extent = row
            .advance(next, column, at)
            .and_then(|begin| Ok((begin, row.advance(column, column + 1, begin)?)));
        let (Ok((begin, end)), Some(tag)) = (extent, row.tags.get(column)) else {
            return Ok(false);
        };
        if end > row.body.len() || tag::is_far(*tag) {
            return Ok(false);
        }
        out.extend_from_slice(row.body.get(at..begin).unwrap_or(&[]));
        let before = out.len();
        let tag = append(out, value)?;
        if tag::is_far(tag) {
            return Ok(false);
        }
        if let Some(slot) = out.get_mut(tags_start + column) {
            *slot = tag;
        }
        let longer = (out.len() - before) as i64 - (end - begin) as i64;
        move_groups(
            out,
            tags_start - row.offsets.len(),
            (column, row.len()),
            longer,
        )?;
        grown += longer;
        (next, at) = (column + 1, end);
    }
    out.extend_from_slice(row.body.get(at..).unwrap_or(&[]));
    debug_assert_eq!(out.len() as i64, start.len() as i64 + grown, "as it grew");
    Ok(true)
}

/// Moves the groups of columns behind one that grew.
fn move_groups(
    out: &mut [u8],
    offsets: usize,
    (column, count): (usize, usize),
    longer: i64,
) -> Result<()> {
    for group in column / tag::GROUP + 1..=tag::offsets(count) {
        let at = offsets + (group - 1) * tag::OFFSET_BYTES;
        let slot = out
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut::<4>());
        if let Some(slot) = slot {
            let moved = i64::from(u32::from_le_bytes(*slot)) + longer;
            let moved = u32::try_from(moved).map_err(|_| Error::too_big())?;
            *slot = moved.to_le_bytes();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowWriter;
    use crate::value::Value;

    fn row(values: &[Value]) -> Vec<u8> {
        let mut row = Vec::new();
        RowWriter::encode(&mut row, values.iter().map(Value::as_ref)).expect("encodes");
        row
    }

    fn value(i: usize, salt: usize) -> Value {
        match (i + salt) % 6 {
            0 => Value::Integer((i as i64) << (salt % 50)),
            1 => Value::Text(vec![b't'; (i * 7 + salt * 13) % 120]),
            2 => Value::Blob(vec![i as u8; (i * 3 + salt) % 40]),
            3 => Value::Real(i as f64 / 3.0),
            4 => Value::Integer(salt as i64 % 64),
            _ => Value::Null,
        }
    }

    #[test]
    fn a_patched_start_is_the_start_of_the_changed_row() {
        for count in [1, 2, 5, 16, 17, 40, 131] {
            for salt in 0..40 {
                let mut values: Vec<_> = (0..count).map(|i| value(i, 0)).collect();
                let large = salt % count;
                values[large] = Value::Blob(vec![9; 5_000]);
                let stored = row(&values);
                let step = 1 + salt % 5;
                let columns = (salt % 3..count).step_by(step).filter(|i| *i != large);
                let changes: Vec<_> = columns.map(|i| (i, value(i, salt))).collect();
                let before = stored.windows(50).position(|window| window == [9; 50]);
                let until = before.expect("a large column") + 100;
                let mut out = Vec::new();
                let borrowed = changes.iter().map(|(i, value)| (*i, value.as_ref()));
                let patched = patch(&stored[..until], borrowed, &mut out).expect("patches");
                assert!(patched, "{count} columns, salt {salt}");
                changes.into_iter().for_each(|(i, value)| values[i] = value);
                out.extend_from_slice(&stored[until..]);
                assert_eq!(out, row(&values), "{count} columns, salt {salt}");
            }
        }
    }

    #[test]
    fn large_columns_are_not_patched() {
        let stored = row(&[Value::Integer(7), Value::Text(vec![b't'; 1_000])]);
        let patched =
            |start, change| patch(&stored[..start], [change], &mut Vec::new()).expect("patches");
        assert!(patched(128, (0, ValueRef::Integer(1 << 40))));
        assert!(!patched(128, (1, ValueRef::Integer(8))));
        assert!(!patched(128, (0, ValueRef::Text(&[b'u'; 256]))));
        assert!(!patched(128, (2, ValueRef::Null)), "it is not stored");
        assert!(
            !patched(2, (0, ValueRef::Null)),
            "that is not the whole header"
        );
    }

    #[test]
    fn damaged_starts_are_left_alone_or_patched() {
        let whole = row(&(0..20).map(|i| value(i, 1)).collect::<Vec<_>>());
        let mut out = Vec::new();
        for at in 0..whole.len() {
            for byte in [0, 0x22, 0x7f, 0xff] {
                let mut start = whole.clone();
                start[at] = byte;
                let changes = [3, 17].map(|i| (i, ValueRef::Integer(1 << 40)));
                for cut in [start.len(), at] {
                    // Either is fine: nothing panics, and a refusal says where groups end.
                    if let Err(error) = patch(&start[..cut], changes, &mut out) {
                        assert_eq!(error.code(), crate::error::code::TOOBIG);
                    }
                }
            }
        }
    }
}
