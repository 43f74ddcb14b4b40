//! Where statements end.
//!
//! A statement ends at a semicolon outside of quotes and comments, or, if it
//! creates a trigger, at the semicolon after END. Text is fed in pieces and each
//! byte is looked at once, whatever the pieces.

/// Cuts text into statements.
#[derive(Debug, Default)]
pub struct Splitter {
    /// What has been fed and not been handed out.
    text: String,
    /// How far `text` has been scanned.
    at: usize,
    inside: Inside,
    grammar: Grammar,
    /// Start of the word being scanned.
    word: Option<usize>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inside {
    #[default]
    Nothing,
    /// Until this byte; doubled ones re-open at once.
    Quotes(u8),
    LineComment,
    /// Whether the last byte was an asterisk.
    BlockComment(bool),
}

/// What matters of the statement's words so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Grammar {
    #[default]
    Start,
    Explain,
    Create,
    Ordinary,
    /// In a trigger's head or in one of its statements.
    Trigger,
    /// After a semicolon in a trigger.
    TriggerSemicolon,
    /// After END following such a semicolon.
    TriggerEnd,
}

impl Grammar {
    fn word(self, word: &str) -> Self {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        match self {
            Grammar::Start if is("EXPLAIN") => Grammar::Explain,
            Grammar::Explain if is("QUERY") || is("PLAN") => Grammar::Explain,
            Grammar::Start | Grammar::Explain if is("CREATE") => Grammar::Create,
            Grammar::Create if is("TEMP") || is("TEMPORARY") => Grammar::Create,
            Grammar::Create if is("TRIGGER") => Grammar::Trigger,
            Grammar::TriggerSemicolon if is("END") => Grammar::TriggerEnd,
            Grammar::Trigger | Grammar::TriggerSemicolon | Grammar::TriggerEnd => Grammar::Trigger,
            Grammar::Start | Grammar::Explain | Grammar::Create | Grammar::Ordinary => {
                Grammar::Ordinary
            }
        }
    }

    /// Something that is neither a word nor a semicolon.
    fn other(self) -> Self {
        self.word("")
    }
}

impl Splitter {
    /// Adds text.
    pub fn feed(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Nothing but space and comments is waiting.
    pub fn is_blank(&self) -> bool {
        self.grammar == Grammar::Start
            && self.word.is_none()
            && !matches!(self.inside, Inside::Quotes(_))
    }

    /// The next complete statement, with its semicolon.
    pub fn next(&mut self) -> Option<String> {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            let next = self.text.as_bytes().get(self.at + 1).copied();
            if self.scan(byte, next) {
                return Some(self.take(self.at));
            }
        }
        None
    }

    /// What is left when there is no more text: a statement without its
    /// semicolon, or None if it is blank.
    pub fn rest(&mut self) -> Option<String> {
        self.end_word();
        let blank = self.is_blank();
        let rest = self.take(self.text.len());
        (!blank).then_some(rest)
    }

    fn take(&mut self, end: usize) -> String {
        let rest = self.text.split_off(end);
        let statement = std::mem::replace(&mut self.text, rest);
        (self.at, self.inside, self.grammar, self.word) =
            (0, Inside::Nothing, Grammar::Start, None);
        statement
    }

    /// Looks at one byte and moves on; true if it ends a statement.
    fn scan(&mut self, byte: u8, next: Option<u8>) -> bool {
        match self.inside {
            Inside::Quotes(end) if byte == end => self.inside = Inside::Nothing,
            Inside::LineComment if byte == b'\n' => self.inside = Inside::Nothing,
            Inside::BlockComment(true) if byte == b'/' => self.inside = Inside::Nothing,
            Inside::BlockComment(_) => self.inside = Inside::BlockComment(byte == b'*'),
            Inside::Quotes(_) | Inside::LineComment => {}
            Inside::Nothing => return self.scan_plain(byte, next),
        }
        self.at += 1;
        false
    }

    fn scan_plain(&mut self, byte: u8, next: Option<u8>) -> bool {
        let at = self.at;
        self.at += 1;
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
            self.word.get_or_insert(at);
            return false;
        }
        self.end_word_at(at);
        match byte {
            b';' => return self.semicolon(),
            b'-' if next == Some(b'-') => self.inside = Inside::LineComment,
            b'/' if next == Some(b'*') => {
                // The asterisk is taken too, so that it does not end the comment.
                self.at += 1;
                self.inside = Inside::BlockComment(false);
            }
            b'\'' | b'"' | b'`' => {
                self.grammar = self.grammar.other();
                self.inside = Inside::Quotes(byte);
            }
            b'[' => {
                self.grammar = self.grammar.other();
                self.inside = Inside::Quotes(b']');
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.grammar = self.grammar.other(),
        }
        false
    }

    fn semicolon(&mut self) -> bool {
        match self.grammar {
            Grammar::Trigger | Grammar::TriggerSemicolon => {
                self.grammar = Grammar::TriggerSemicolon;
                false
            }
            _ => true,
        }
    }

    fn end_word(&mut self) {
        self.end_word_at(self.at);
    }

    fn end_word_at(&mut self, end: usize) {
        if let Some(start) = self.word.take() {
            self.grammar = self
                .grammar
                .word(self.text.get(start..end).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements and rest, fed whole and byte by byte.
    fn split(text: &str) -> Vec<String> {
        let run = |pieces: &[&str]| {
            let mut splitter = Splitter::default();
            let mut all = Vec::new();
            for piece in pieces {
                splitter.feed(piece);
                while let Some(statement) = splitter.next() {
                    all.push(statement.trim().to_owned());
                }
            }
            all.extend(splitter.rest().map(|s| s.trim().to_owned()));
            all
        };
        let whole = run(&[text]);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!(run(&lines), whole);
        whole
    }

    #[test]
    fn semicolons_end_statements() {
        assert_eq!(
            split("SELECT 1; SELECT 2;\nSELECT 3"),
            ["SELECT 1;", "SELECT 2;", "SELECT 3"]
        );
        assert_eq!(split("  \n -- nothing\n /* at all; */ "), [""; 0]);
        assert_eq!(split(";;"), [";", ";"]);
    }

    #[test]
    fn quotes_and_comments_hide_them() {
        assert_eq!(
            split("SELECT ';', \"a;b\", [c;d], `e;f`;"),
            ["SELECT ';', \"a;b\", [c;d], `e;f`;"]
        );
        assert_eq!(split("SELECT 'it''s;' ; x"), ["SELECT 'it''s;' ;", "x"]);
        assert_eq!(
            split("SELECT 1 -- a; b\n; /* ; */ SELECT 2"),
            ["SELECT 1 -- a; b\n;", "/* ; */ SELECT 2"]
        );
        assert_eq!(split("/*/ ; */ SELECT 2;"), ["/*/ ; */ SELECT 2;"]);
        assert_eq!(split("SELECT 'open; "), ["SELECT 'open;"]);
    }

    #[test]
    fn triggers_end_with_end() {
        let trigger =
            "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = 1; DELETE FROM c; END;";
        assert_eq!(
            split(&format!("{trigger} SELECT 1;")),
            [trigger, "SELECT 1;"]
        );
        assert_eq!(
            split("CREATE TABLE trigger_end (x); END;"),
            ["CREATE TABLE trigger_end (x);", "END;"]
        );
    }
}
