//! LIKE and GLOB patterns of nothing but ASCII texts and runs, taken apart once for many
//! texts: what a text begins with, what it has behind that one after the other, and what it
//! ends with.
//!
//! No character but itself holds a byte of ASCII, so that bytes can be compared, whatever
//! else is in the text. Other patterns are walked through ([`super::pattern`]).

use memchr::{memchr_iter, memchr2_iter, memmem};

use super::utf8::until_nul;

/// Bytes of a text up to which a single byte is searched for.
const SHORT: usize = 256;

/// See the module.
pub struct Segments {
    /// Letters in any case.
    folds: bool,
    /// What comes before the first run, or all.
    prefix: Vec<u8>,
    /// What stands between runs.
    inner: Vec<Needle>,
    /// What comes behind the last run; None where there is no run.
    suffix: Option<Vec<u8>>,
}

impl Segments {
    /// Of a LIKE pattern with letters in any case, or as they are written. None where it has
    /// something else than ASCII texts and runs.
    pub fn of_like(pattern: &[u8], escape: Option<u32>, folds: bool) -> Option<Self> {
        let mut parts = vec![Vec::new()];
        let mut rest = until_nul(pattern).iter();
        while let Some(byte) = rest.next() {
            let literal = match *byte {
                it if Some(u32::from(it)) == escape => *rest.next()?,
                b'%' => {
                    parts.push(Vec::new());
                    continue;
                }
                b'_' => return None,
                it => it,
            };
            add(&mut parts, literal)?;
        }
        Some(Self::of_parts(parts, folds))
    }

    /// Of a GLOB pattern, as above.
    pub fn of_glob(pattern: &[u8]) -> Option<Self> {
        let mut parts = vec![Vec::new()];
        for byte in until_nul(pattern) {
            match *byte {
                b'*' => parts.push(Vec::new()),
                b'?' | b'[' => return None,
                it => add(&mut parts, it)?,
            }
        }
        Some(Self::of_parts(parts, false))
    }

    fn of_parts(mut parts: Vec<Vec<u8>>, folds: bool) -> Self {
        let suffix = if parts.len() > 1 { parts.pop() } else { None };
        let mut parts = parts.into_iter();
        let prefix = parts.next().unwrap_or_default();
        let inner = parts.filter(|part| !part.is_empty());
        Self {
            folds,
            prefix,
            inner: inner.map(|part| Needle::new(part, folds)).collect(),
            suffix,
        }
    }

    /// Whether a text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some((start, rest)) = text.split_at_checked(self.prefix.len()) else {
            return false;
        };
        if !self.is_equal(start, &self.prefix) {
            return false;
        }
        let Some(suffix) = &self.suffix else {
            return until_nul(rest).is_empty();
        };
        if suffix.is_empty() && self.inner.is_empty() {
            return true;
        }
        let rest = until_nul(rest);
        let Some(middle) = rest.len().checked_sub(suffix.len()) else {
            return false;
        };
        let (mut middle, end) = rest.split_at(middle);
        if !self.is_equal(end, suffix) {
            return false;
        }
        self.inner.iter().all(|needle| {
            let behind = needle.find(middle).map(|at| at + needle.bytes.len());
            match behind.and_then(|behind| middle.get(behind..)) {
                Some(left) => {
                    middle = left;
                    true
                }
                None => false,
            }
        })
    }

    #[inline]
    fn is_equal(&self, text: &[u8], part: &[u8]) -> bool {
        match self.folds {
            // To compare nothing may take longer than to look for something.
            _ if part.is_empty() => true,
            true => text.eq_ignore_ascii_case(part),
            false => text == part,
        }
    }
}

/// Adds a byte to the last part; None where it is no ASCII.
fn add(parts: &mut [Vec<u8>], byte: u8) -> Option<()> {
    parts.last_mut().filter(|_| byte.is_ascii())?.push(byte);
    Some(())
}

/// A part that is searched for: by its rarest byte, in a long text as a whole where case
/// matters.
struct Needle {
    bytes: Vec<u8>,
    /// Where the rarest byte stands.
    at: usize,
    /// That byte in both cases, where case does not matter.
    cases: Option<[u8; 2]>,
    rarest: u8,
    finder: memmem::Finder<'static>,
}

impl Needle {
    fn new(bytes: Vec<u8>, folds: bool) -> Self {
        let rarest = bytes.iter().enumerate().min_by_key(|(_, b)| frequency(**b));
        let (at, rarest) = rarest.map_or((0, 0), |(at, byte)| (at, *byte));
        let folds = folds && bytes.iter().any(u8::is_ascii_alphabetic);
        Self {
            at,
            cases: folds.then(|| [rarest.to_ascii_lowercase(), rarest.to_ascii_uppercase()]),
            rarest,
            finder: memmem::Finder::new(&bytes).into_owned(),
            bytes,
        }
    }

    /// Its first place.
    #[inline]
    fn find(&self, text: &[u8]) -> Option<usize> {
        let last = text.len().checked_sub(self.bytes.len())?;
        let places = text.get(self.at..=last + self.at)?;
        let there = |place: usize| text.get(place..place + self.bytes.len());
        match self.cases {
            Some([lower, upper]) => memchr2_iter(lower, upper, places)
                .find(|at| there(*at).is_some_and(|it| it.eq_ignore_ascii_case(&self.bytes))),
            None if text.len() > SHORT => self.finder.find(text),
            None => memchr_iter(self.rarest, places)
                .find(|at| there(*at).is_some_and(|it| it == self.bytes)),
        }
    }
}

/// How often a byte is guessed to occur in texts: letters as in English, in both cases.
fn frequency(byte: u8) -> usize {
    const FROM_RARE: &[u8] = b"qzxjkvbpygfwmucldhrsnioate ";
    match byte {
        b'0'..=b'9' => 20,
        _ => {
            let byte = byte.to_ascii_lowercase();
            let at = FROM_RARE.iter().position(|b| *b == byte);
            at.map_or(0, |at| at + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Segments;
    use crate::value::{glob, like, like_exact};

    /// Every text of up to so many of these characters.
    fn texts(characters: &[&str], length: u32) -> Vec<Vec<u8>> {
        let count = characters.len();
        let mut out = Vec::new();
        for length in 0..=length {
            for number in 0..count.pow(length) {
                let mut rest = number;
                let mut text = Vec::new();
                for _ in 0..length {
                    text.extend_from_slice(characters[rest % count].as_bytes());
                    rest /= count;
                }
                out.push(text);
            }
        }
        out
    }

    #[test]
    fn patterns_taken_apart_match_as_those_walked_through() {
        let patterns = texts(&["a", "B", "%", "*", "1", "\0", "!"], 4);
        let texts = texts(&["a", "A", "b", "1", "\0", "é"], 4);
        let mut compared = 0;
        for pattern in &patterns {
            let escape = Some(u32::from(b'!'));
            let folded = Segments::of_like(pattern, escape, true);
            let exact = Segments::of_like(pattern, None, false);
            let globbed = Segments::of_glob(pattern);
            for text in texts.iter().step_by(3) {
                let shown = || format!("{pattern:?} over {text:?}");
                if let Some(it) = &folded {
                    assert_eq!(it.matches(text), like(pattern, text, escape), "{}", shown());
                    compared += 1;
                }
                if let Some(it) = &exact {
                    let walked = like_exact(pattern, text, None);
                    assert_eq!(it.matches(text), walked, "{}", shown());
                }
                if let Some(it) = &globbed {
                    assert_eq!(it.matches(text), glob(pattern, text), "{}", shown());
                }
            }
        }
        assert!(compared > 500_000);
    }

    #[test]
    fn needles_longer_than_a_register_are_found_in_any_case() {
        let text =
            "Mary had a little lamb, its fleece was white as SNOW; everywhere that Mary went";
        let is_like = |pattern: &str| {
            Segments::of_like(pattern.as_bytes(), None, true).map(|it| it.matches(text.as_bytes()))
        };
        assert_eq!(is_like("%ITS FLEECE was%snow;%mary%WENT"), Some(true));
        assert_eq!(is_like("%its fleece was%snow%snow%"), Some(false));
        assert_eq!(is_like("mary%that mary%mary went"), Some(false));
        assert_eq!(is_like("mar_%"), None);
        assert_eq!(is_like("%é%"), None);
    }
}
