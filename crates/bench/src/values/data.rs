//! Seeded bodies: bytes that no compression makes shorter, and texts like prose.

use crate::side::Body;

/// What bodies are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Random bytes
    Blob,
    /// Sentences of words, the common ones far oftener than the rare ones
    Text,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Text => "text",
        }
    }
}

/// Words of the vocabulary.
const WORDS: usize = 4_000;
const BEGINNINGS: [&str; 20] = [
    "b", "br", "c", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "th",
    "w", "",
];
const MIDDLES: [&str; 10] = ["a", "e", "i", "o", "u", "ea", "ou", "ai", "ee", "io"];
const ENDS: [&str; 16] = [
    "", "n", "r", "s", "t", "d", "l", "m", "nd", "rs", "st", "ck", "ng", "ly", "th", "ve",
];

/// Makes bodies of one kind and size.
#[derive(Debug)]
pub struct Bodies {
    kind: Kind,
    /// Bytes of each.
    pub size: usize,
    /// The most frequent words first.
    words: Vec<String>,
}

impl Bodies {
    pub fn new(kind: Kind, size: usize, rng: &mut fastrand::Rng) -> Self {
        let words = (0..WORDS).map(|at| word(rng, 1 + (at + 1).ilog2() / 5));
        Self {
            kind,
            size,
            words: words.collect(),
        }
    }

    pub fn make(&self, rng: &mut fastrand::Rng) -> Body {
        match self.kind {
            Kind::Blob => {
                let mut bytes = vec![0; self.size];
                rng.fill(&mut bytes);
                Body::Blob(bytes)
            }
            Kind::Text => Body::Text(self.prose(rng)),
        }
    }

    /// A condition on the body that few rows meet or none: all bodies are read to the end.
    pub fn condition(&self) -> String {
        match self.kind {
            Kind::Blob => "instr(body, x'66756C6775') > 0".into(),
            Kind::Text => {
                let [.., first, second] = &self.words[..] else {
                    return "body IS NULL".into();
                };
                format!("body LIKE '%{first} {second}%'")
            }
        }
    }

    fn prose(&self, rng: &mut fastrand::Rng) -> String {
        let mut text = String::with_capacity(self.size + 32);
        let mut left = 0;
        while text.len() < self.size {
            let draw = rng.f64();
            let word = &self.words[(draw.powi(5) * self.words.len() as f64) as usize];
            if left > 0 {
                text.push_str(if rng.u8(..) < 20 { ", " } else { " " });
                text.push_str(word);
            } else {
                if !text.is_empty() {
                    text.push_str(if rng.u8(..) < 40 { ".\n\n" } else { ". " });
                }
                let (first, rest) = word.split_at(1);
                text.push_str(&first.to_ascii_uppercase());
                text.push_str(rest);
                left = rng.usize(4..24);
            }
            left -= 1;
        }
        text.truncate(self.size);
        text
    }
}

/// A word of ASCII letters, one at least.
fn word(rng: &mut fastrand::Rng, syllables: u32) -> String {
    let mut word = String::new();
    for _ in 0..syllables {
        word.push_str(BEGINNINGS[rng.usize(..BEGINNINGS.len())]);
        word.push_str(MIDDLES[rng.usize(..MIDDLES.len())]);
    }
    word.push_str(ENDS[rng.usize(..ENDS.len())]);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_follow_from_the_seed_and_have_their_size() {
        for kind in [Kind::Blob, Kind::Text] {
            for size in [1, 100, 4_096] {
                let make = || {
                    let mut rng = fastrand::Rng::with_seed(7);
                    let bodies = Bodies::new(kind, size, &mut rng);
                    match (bodies.make(&mut rng), kind) {
                        (Body::Blob(bytes), Kind::Blob) => bytes,
                        (Body::Text(text), Kind::Text) => text.into_bytes(),
                        other => panic!("{other:?}"),
                    }
                };
                assert_eq!(make().len(), size);
                assert_eq!(make(), make());
            }
        }
    }
}
