//! Seeded inputs: rows that look like people's, and random keys.

/// A row of the main table.
#[derive(Debug, Clone)]
pub struct Person {
    pub id: i64,
    pub name: String,
    pub email: String,
}

const SYLLABLES: [&str; 24] = [
    "ba", "cor", "den", "el", "fi", "gar", "ha", "in", "jo", "ka", "lu", "mar", "ne", "or", "pe",
    "ri", "sa", "ta", "ul", "va", "wen", "xi", "yo", "zan",
];
const HOSTS: [&str; 6] = [
    "example.com",
    "example.org",
    "example.net",
    "mail.example",
    "post.example",
    "office.example",
];

/// `count` people with the keys 1 to `count`.
pub fn people(rng: &mut fastrand::Rng, count: usize) -> Vec<Person> {
    (1..=count as i64).map(|id| person(rng, id)).collect()
}

/// One person with a random name.
pub fn person(rng: &mut fastrand::Rng, id: i64) -> Person {
    let (first, last) = (word(rng, 2), word(rng, 3));
    let host = HOSTS[rng.usize(..HOSTS.len())];
    Person {
        id,
        email: format!("{first}.{last}{}@{host}", rng.u32(..1_000)),
        name: format!("{} {}", capital(&first), capital(&last)),
    }
}

/// A full name, to rename somebody.
pub fn name(rng: &mut fastrand::Rng) -> String {
    format!("{} {}", capital(&word(rng, 2)), capital(&word(rng, 3)))
}

fn word(rng: &mut fastrand::Rng, syllables: usize) -> String {
    (0..syllables)
        .map(|_| SYLLABLES[rng.usize(..SYLLABLES.len())])
        .collect()
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(chars)
        .collect()
}

/// `count` keys of a table with the keys 1 to `rows`.
pub fn keys(rng: &mut fastrand::Rng, rows: usize, count: usize) -> Vec<i64> {
    (0..count).map(|_| rng.i64(1..=rows as i64)).collect()
}

/// Keys in an order that is anything but ascending, each one once: a full-cycle
/// linear congruential walk over the numbers below 2^64.
pub fn scattered(index: u64) -> u64 {
    index.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D
}
