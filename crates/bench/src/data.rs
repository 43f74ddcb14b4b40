//! Seeded inputs: rows that look like people's, and random keys.

/// A row of the main table.
#[derive(Debug, Clone)]
pub struct Person {
    pub id: i64,
    pub name: String,
    pub email: String,
}

/// First and last names that are common somewhere.
const FIRST: [&str; 64] = [
    "Mary", "James", "Maria", "John", "Anna", "Robert", "Linda", "Michael", "Fatima", "David",
    "Elena", "William", "Susan", "Richard", "Yuki", "Joseph", "Sofia", "Thomas", "Karen", "Carlos",
    "Nancy", "Daniel", "Lisa", "Matthew", "Chen", "Anthony", "Emily", "Mark", "Ingrid", "Paul",
    "Laura", "Steven", "Olga", "Andrew", "Amira", "Kenneth", "Julia", "George", "Hannah", "Joshua",
    "Aisha", "Kevin", "Greta", "Brian", "Nina", "Edward", "Clara", "Ronald", "Priya", "Timothy",
    "Lucia", "Jason", "Marta", "Jeffrey", "Eva", "Ryan", "Ines", "Jacob", "Leila", "Gary", "Rosa",
    "Nicolas", "Vera", "Eric",
];
const LAST: [&str; 80] = [
    "Smith",
    "Johnson",
    "Garcia",
    "Brown",
    "Miller",
    "Kim",
    "Martinez",
    "Davis",
    "Nguyen",
    "Lopez",
    "Wilson",
    "Anderson",
    "Tanaka",
    "Thomas",
    "Taylor",
    "Moore",
    "Jackson",
    "Martin",
    "Lee",
    "Perez",
    "Thompson",
    "White",
    "Harris",
    "Sanchez",
    "Clark",
    "Ramirez",
    "Lewis",
    "Robinson",
    "Walker",
    "Young",
    "Allen",
    "King",
    "Wright",
    "Scott",
    "Torres",
    "Nowak",
    "Hill",
    "Flores",
    "Green",
    "Adams",
    "Nelson",
    "Baker",
    "Hall",
    "Rivera",
    "Campbell",
    "Mitchell",
    "Carter",
    "Roberts",
    "Muller",
    "Phillips",
    "Evans",
    "Turner",
    "Diaz",
    "Parker",
    "Cruz",
    "Edwards",
    "Collins",
    "Reyes",
    "Stewart",
    "Morris",
    "Morales",
    "Murphy",
    "Cook",
    "Rogers",
    "Gutierrez",
    "Ortiz",
    "Morgan",
    "Cooper",
    "Peterson",
    "Bailey",
    "Reed",
    "Kelly",
    "Howard",
    "Ramos",
    "Schmidt",
    "Cox",
    "Ward",
    "Ivanova",
    "Watson",
    "Andersson",
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

/// One person with a random name and an address made from it.
pub fn person(rng: &mut fastrand::Rng, id: i64) -> Person {
    let (first, last) = (pick(rng, &FIRST), pick(rng, &LAST));
    let (number, host) = (rng.u32(..10_000), pick(rng, &HOSTS));
    Person {
        id,
        name: format!("{first} {last}"),
        email: format!("{first}.{last}{number}@{host}").to_ascii_lowercase(),
    }
}

/// A full name, to rename somebody.
pub fn name(rng: &mut fastrand::Rng) -> String {
    format!("{} {}", pick(rng, &FIRST), pick(rng, &LAST))
}

fn pick(rng: &mut fastrand::Rng, from: &[&'static str]) -> &'static str {
    from[rng.usize(..from.len())]
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
