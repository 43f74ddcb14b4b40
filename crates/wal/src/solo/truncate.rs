//! Moving the log's beginning.

use super::core::Core;
use super::entry::Lsn;
use super::error::Result;
use super::locks::lock;
use super::reader::{Walk, no_record};
use crate::primitives::Ordering;

impl Core {
    pub(super) fn truncate(&self, before: Lsn) -> Result<()> {
        let before = before.0;
        let mut head = lock(&self.head);
        self.check()?;
        if before <= head.header.first {
            return Ok(());
        }
        let mut header = head.header;
        let (end, next_seq) = {
            let tail = self.tail.lock();
            (tail.lsn, tail.seq)
        };
        if before > end {
            return Err(no_record(before, &header, end));
        }
        if before == end {
            header.first_seq = next_seq;
            header.first_life = header.life;
        } else {
            self.wait_written(end)?;
            let mut walk = Walk::new(self, header, end)?;
            let start =
                self.on_any_side(&mut walk, end, |walk| walk.entry_from(before, &head.lives))?;
            let Some(start) = start else {
                return Err(no_record(before, &header, end));
            };
            header.first_seq = start.seq;
            header.first_life = start.life;
        }
        header.first = before;
        header.update += 1;
        self.write_header(&mut head, header)?;
        // A life whose successor began before the head is not needed any more.
        while head.lives.get(1).is_some_and(|next| next.start <= before) {
            head.lives.remove(0);
        }
        self.head_lsn.store(before, Ordering::Release);
        self.update_room();
        Ok(())
    }
}
