//! Following a path through a text while it is read, without making JSONB of more than
//! what is at its end.
//!
//! Only paths that a reader can follow forwards: of labels and of places counted from an
//! array's start. The text is read to its end all the same: what is wrong with it behind
//! the element is an error as well.

use super::jsonb::{is_unescaped, kind};
use super::path::{Index, Step, step};
use super::sink::{Blob, Sink};
use super::text::Label;

/// Most steps that are followed so.
const STEPS_MAX: usize = 8;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The element at the end of the path.
    Seeking,
    /// The end of the container that it is, with so many more open in it.
    Taking(usize),
    /// Nothing any more.
    Done,
}

/// See the module.
pub struct Seek<'p, 'o> {
    steps: [Option<Step<'p>>; STEPS_MAX],
    len: usize,
    /// Containers that are open, up to where the search is done.
    level: usize,
    /// How many of them, from the outermost, are on the path.
    on_path: usize,
    /// In the innermost container on the path: the number of the element that comes next.
    place: u64,
    /// There: the label before the next element is the one.
    is_label: bool,
    state: State,
    out: &'o mut Vec<u8>,
}

impl<'p, 'o> Seek<'p, 'o> {
    /// Puts the element at the end of a path, which is without its `$`, into `out`, which
    /// stays empty where there is none. None: the path is none of those.
    pub fn new(mut path: &'p [u8], out: &'o mut Vec<u8>) -> Option<Self> {
        let mut steps = [None; STEPS_MAX];
        let mut len = 0;
        while !path.is_empty() {
            let found = step(&mut path).ok()?;
            if matches!(found, Step::Index(Index::FromEnd(_))) {
                return None;
            }
            *steps.get_mut(len)? = Some(found);
            len += 1;
        }
        out.clear();
        Some(Self {
            steps,
            len,
            level: 0,
            on_path: 0,
            place: 0,
            is_label: false,
            state: State::Seeking,
            out,
        })
    }

    /// The step that chooses among the elements of the innermost container.
    #[inline]
    fn choosing(&self) -> Option<Step<'p>> {
        let at = self.level.checked_sub(1)?;
        self.steps.get(at).copied().flatten()
    }

    /// Whether the element that comes now is on the path.
    #[inline]
    fn is_chosen(&mut self) -> bool {
        if self.on_path < self.level {
            return false;
        }
        match self.choosing() {
            None => true,
            Some(Step::Label(_)) => std::mem::take(&mut self.is_label),
            Some(Step::Index(index)) => {
                self.place += 1;
                index == Index::FromStart(self.place - 1)
            }
        }
    }
}

impl Sink for Seek<'_, '_> {
    #[inline]
    fn scalar(&mut self, kind: u8, payload: &[u8]) {
        match self.state {
            State::Done => {}
            State::Taking(_) => Blob(self.out).scalar(kind, payload),
            State::Seeking => {
                if self.is_chosen() {
                    self.state = State::Done;
                    if self.level == self.len {
                        Blob(self.out).scalar(kind, payload);
                    }
                }
            }
        }
    }

    #[inline]
    fn label(&mut self, kind: u8, text: &[u8]) {
        match self.state {
            State::Done => {}
            State::Taking(_) => Blob(self.out).scalar(kind, text),
            State::Seeking => {
                if self.on_path == self.level
                    && let Some(Step::Label(wanted)) = self.choosing()
                {
                    let is_raw = is_unescaped(kind);
                    self.is_label = wanted.is_same(Label { text, is_raw });
                }
            }
        }
    }

    #[inline]
    fn begin(&mut self, kind: u8, left: usize) -> usize {
        match &mut self.state {
            State::Done => return 0,
            State::Taking(within) => {
                *within += 1;
                return Blob(self.out).begin(kind, left);
            }
            State::Seeking => {}
        }
        if self.is_chosen() {
            if self.level == self.len {
                self.state = State::Taking(0);
                return Blob(self.out).begin(kind, left);
            }
            let next = self.steps.get(self.level).copied().flatten();
            let is_right = matches!(
                (next, kind),
                (Some(Step::Label(_)), kind::OBJECT) | (Some(Step::Index(_)), kind::ARRAY)
            );
            if !is_right {
                self.state = State::Done;
                return 0;
            }
            self.on_path += 1;
            (self.place, self.is_label) = (0, false);
        }
        self.level += 1;
        0
    }

    #[inline]
    fn end(&mut self, begun: usize) {
        match &mut self.state {
            State::Done => {}
            State::Taking(0) => {
                Blob(self.out).end(begun);
                self.state = State::Done;
            }
            State::Taking(within) => {
                *within -= 1;
                Blob(self.out).end(begun);
            }
            // Where the path led into the container there is nothing else for it.
            State::Seeking if self.on_path == self.level => self.state = State::Done,
            State::Seeking => self.level -= 1,
        }
    }
}
