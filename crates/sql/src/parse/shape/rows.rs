//! The rows of VALUES, while the text goes by: whether all are one text but for their
//! values, with nothing between them but commas.
//!
//! A row with parentheses in it is like no other: a subquery in it is evaluated for each.
//! Where one differs after others were taken out as alike, the text is to be gone through
//! again, for a shape with all of its rows.

use super::Kind;

/// See the module's header.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Rows {
    /// Rows that have ended.
    ended: usize,
    /// Where in the shape's text the row at hand begins, and values before it.
    begins: (usize, usize),
    /// Where the first one begins and ends.
    first: (usize, usize),
    /// Where the second one ends.
    second_end: usize,
    /// Values of one.
    each: usize,
    differ: bool,
    /// Some were taken out.
    fewer: bool,
}

impl Rows {
    /// All are taken for different.
    pub(super) fn never_repeated() -> Self {
        Self {
            differ: true,
            ..Self::default()
        }
    }

    /// Whether some were taken out that should be there.
    pub(super) fn are_lost(&self) -> bool {
        self.differ && self.fewer
    }

    /// How many there are, if they are two or more and alike.
    pub(super) fn repeated(&self) -> Option<usize> {
        (self.ended >= 2 && !self.differ).then_some(self.ended)
    }

    /// One begins at this place of the shape's text, behind so many values and this token.
    pub(super) fn begin(&mut self, at: usize, values: usize, before: Kind) {
        self.differ |= self.ended > 0 && before != Kind::Comma;
        self.begins = (at, values);
    }

    /// It ends with the text. One like the two before it is taken out again.
    pub(super) fn end(&mut self, text: &mut String, values: usize) {
        let (begins, values_before) = self.begins;
        let count = values - values_before;
        self.ended += 1;
        if self.ended == 1 {
            self.first = (begins, text.len());
            self.each = count;
            self.differ |= count == 0;
            return;
        }
        let (start, end) = self.first;
        self.differ |= count != self.each || text.get(start..end) != text.get(begins..);
        match self.ended {
            2 => self.second_end = text.len(),
            _ if self.differ => {}
            _ => {
                text.truncate(self.second_end);
                self.fewer = true;
            }
        }
    }

    /// A token outside of them, and the one before it.
    pub(super) fn between(&mut self, token: Kind, before: Kind) {
        self.differ |= match token {
            Kind::Comma | Kind::Word | Kind::End => before != Kind::Close,
            _ => true,
        };
    }

    /// Something is in a row that need not be the same in all.
    pub(super) fn differ(&mut self) {
        self.differ = true;
    }
}
