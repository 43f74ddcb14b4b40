//! What a text's elements are told to while it is read. [`Blob`] makes JSONB of them: a
//! container's header is written when it begins, as long as what is left of the text might
//! need, and put right when it ends. [`Nothing`] makes nothing, where it is only asked
//! whether a text is well-formed; [`Seek`](super::seek::Seek) follows a path.

use super::jsonb;

/// What is told of the elements.
pub trait Sink {
    /// An element that is no container.
    fn scalar(&mut self, kind: u8, payload: &[u8]);

    /// A label.
    fn label(&mut self, kind: u8, text: &[u8]) {
        self.scalar(kind, text);
    }

    /// A container begins; `left` bytes of the text are left. What [`Sink::end`] gets.
    fn begin(&mut self, kind: u8, left: usize) -> usize;

    /// The innermost container ends.
    fn end(&mut self, begun: usize);
}

/// Appends JSONB.
pub struct Blob<'o>(pub &'o mut Vec<u8>);

impl Sink for Blob<'_> {
    #[inline]
    fn scalar(&mut self, kind: u8, payload: &[u8]) {
        jsonb::push(self.0, kind, payload);
    }

    #[inline]
    fn begin(&mut self, kind: u8, left: usize) -> usize {
        let head = self.0.len();
        jsonb::push_header(self.0, kind, left);
        head
    }

    #[inline]
    fn end(&mut self, head: usize) {
        let start = jsonb::header_end(self.0, head);
        jsonb::set_payload(self.0, head, self.0.len() - start);
    }
}

/// Keeps nothing.
pub struct Nothing;

impl Sink for Nothing {
    #[inline]
    fn scalar(&mut self, _kind: u8, _payload: &[u8]) {}

    #[inline]
    fn begin(&mut self, _kind: u8, _left: usize) -> usize {
        0
    }

    #[inline]
    fn end(&mut self, _begun: usize) {}
}
