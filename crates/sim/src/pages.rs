//! Bytes of a file in shared pieces, so that copies of a whole disk are cheap:
//! a simulated crash costs a reference a piece, not a copy of the file.

use std::sync::{Arc, LazyLock};

const PIECE_BYTES: usize = 4096;

type Piece = [u8; PIECE_BYTES];

static ZEROS: LazyLock<Arc<Piece>> = LazyLock::new(|| Arc::new([0; PIECE_BYTES]));

/// A file's bytes. Behind `len` all bytes of the last piece are zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages {
    pieces: Vec<Arc<Piece>>,
    len: usize,
}

impl Pages {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sets the length; new bytes are zero.
    pub(crate) fn resize(&mut self, len: usize) {
        self.pieces
            .resize_with(len.div_ceil(PIECE_BYTES), || Arc::clone(&ZEROS));
        let tail = len % PIECE_BYTES;
        if len < self.len
            && tail > 0
            && let Some(last) = self.pieces.last_mut()
        {
            Arc::make_mut(last)[tail..].fill(0);
        }
        self.len = len;
    }

    /// Writes within the file.
    pub(crate) fn write(&mut self, mut at: usize, mut bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.len);
        while !bytes.is_empty() {
            let start = at % PIECE_BYTES;
            let count = bytes.len().min(PIECE_BYTES - start);
            let (now, later) = bytes.split_at(count);
            let piece = &mut self.pieces[at / PIECE_BYTES];
            if count == PIECE_BYTES && *now == ZEROS[..] {
                *piece = Arc::clone(&ZEROS);
            } else if piece[start..start + count] != *now {
                Arc::make_mut(piece)[start..start + count].copy_from_slice(now);
            }
            (at, bytes) = (at + count, later);
        }
    }

    /// Reads as much of the range as the file has; the rest of `out` is untouched.
    pub(crate) fn read(&self, mut at: usize, out: &mut [u8]) {
        let count = out.len().min(self.len.saturating_sub(at));
        let mut rest = &mut out[..count];
        while !rest.is_empty() {
            let start = at % PIECE_BYTES;
            let count = rest.len().min(PIECE_BYTES - start);
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&self.pieces[at / PIECE_BYTES][start..start + count]);
            (at, rest) = (at + count, later);
        }
    }

    /// Whether the position lies in a piece known to be all zeros.
    pub(crate) fn is_zero_piece(&self, at: usize) -> bool {
        self.pieces
            .get(at / PIECE_BYTES)
            .is_none_or(|piece| Arc::ptr_eq(piece, &ZEROS))
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Changes one byte; false if there is none.
    pub(crate) fn change(&mut self, at: usize, change: &mut dyn FnMut(&mut u8)) -> bool {
        if at >= self.len {
            return false;
        }
        change(&mut Arc::make_mut(&mut self.pieces[at / PIECE_BYTES])[at % PIECE_BYTES]);
        true
    }
}
