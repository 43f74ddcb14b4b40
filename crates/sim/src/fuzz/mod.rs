//! Fuzzers that run anywhere: inputs made up from a seed, fed to everything that
//! reads what others wrote. A number and a target name one input for ever.
//!
//! | target | input | what must hold |
//! | --- | --- | --- |
//! | `database` | a database file with stretches changed, moved, repeated | the right answer, or an error that says so |
//! | `log` | log files likewise, and records with valid checksums around nonsense | a typed error, or some state whose structure is sound |
//! | `sql` | statements of the corpus, cut up and put together | a result or an error with a code; the schema stays sound |
//! | `forged` | SQL databases with forged rows, index entries and schemas in sound trees | a typed error or an answer; what fails changes nothing; `integrity_check` tells of what makes wrong answers |
//! | `codes` | keys and rows, valid and not | what is valid comes back; what is not is `SQLITE_CORRUPT` |

mod codes;
mod files;
mod forged;
mod text;

use crate::Rng;
use crate::proof::{Failure, Tally, guarded};

/// What is fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A database file.
    Database,
    /// Its log.
    Log,
    /// SQL text.
    Sql,
    /// Keys and rows.
    Codes,
    /// What a database holds.
    Forged,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Database,
        Self::Log,
        Self::Sql,
        Self::Codes,
        Self::Forged,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Log => "log",
            Self::Sql => "sql",
            Self::Codes => "codes",
            Self::Forged => "forged",
        }
    }
}

/// What the targets work on: made once, since it takes longer than an input.
pub struct Bench {
    files: files::Samples,
    statements: Vec<&'static str>,
    watch: text::Watch,
    forged: forged::Forged,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            files: files::Samples::new(),
            statements: text::statements(),
            watch: text::Watch::new(),
            forged: forged::Forged::new(),
        }
    }
}

impl Bench {
    /// Runs one input.
    ///
    /// # Errors
    /// What was wrong.
    pub fn run(&self, target: Target, number: u64, tally: &mut Tally) -> Result<(), Failure> {
        let mut rng = Rng::new(number ^ (target as u64) << 56);
        tally.executions += 1;
        let at = format!("fuzz --target {} --only {number}", target.name());
        guarded(&at, || match target {
            Target::Database => self.files.database(&mut rng),
            Target::Log => self.files.log(&mut rng),
            Target::Sql => text::run(&self.statements, &self.watch, &mut rng),
            Target::Codes => codes::run(&mut rng),
            Target::Forged => self.forged.run(&self.watch, &mut rng),
        })
    }
}
