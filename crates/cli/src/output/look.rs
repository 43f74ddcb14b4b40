//! How results are to look: what `.mode` and the settings beside it say.

use super::Mode;

/// The settings; those that are not set are the mode's own.
#[derive(Debug, Clone)]
pub struct Look {
    /// How results are shown.
    pub mode: Mode,
    /// Whether the columns' names come first.
    pub headers: Option<bool>,
    /// What stands for NULL.
    pub null: Option<String>,
    /// What stands between the values of a row.
    pub separator: Option<String>,
    /// What stands behind each row.
    pub row_separator: Option<String>,
    /// Columns' widths in characters: 0 for as wide as its values, below 0 for values to
    /// the right.
    pub widths: Vec<i32>,
    /// The table that INSERT statements name.
    pub table: String,
}

impl Look {
    /// That of a mode.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            headers: None,
            null: None,
            separator: None,
            row_separator: None,
            widths: Vec::new(),
            table: "table".to_owned(),
        }
    }

    /// Goes on with another mode and its own separators.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.separator = None;
        self.row_separator = None;
    }

    /// Whether the columns' names come first.
    pub fn has_headers(&self) -> bool {
        let own = matches!(
            self.mode,
            Mode::Box | Mode::Table | Mode::Column | Mode::Markdown
        );
        self.headers.unwrap_or(own)
    }

    /// What stands for NULL.
    pub fn null(&self) -> &str {
        let own = match self.mode {
            Mode::Box | Mode::Line => "NULL",
            _ => "",
        };
        self.null.as_deref().unwrap_or(own)
    }

    /// What stands between the values of a row.
    pub fn separator(&self) -> &str {
        let own = match self.mode {
            Mode::Csv | Mode::Quote => ",",
            Mode::Tabs => "\t",
            Mode::Ascii => "\x1f",
            _ => "|",
        };
        self.separator.as_deref().unwrap_or(own)
    }

    /// What stands behind each row.
    pub fn row_separator(&self) -> &str {
        let own = match self.mode {
            Mode::Ascii => "\x1e",
            _ => "\n",
        };
        self.row_separator.as_deref().unwrap_or(own)
    }
}
