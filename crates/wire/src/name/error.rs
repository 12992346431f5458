//! Why a text is no name: where, what was wrong, and the text around it with the offending character marked.

use std::fmt;

/// Bytes of the text that are quoted on each side of the offending character.
const QUOTED: usize = 40;

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Something else had to stand here.
    Expected(&'static str),
    /// A backslash without `x` and two hex digits behind it.
    Escape,
    /// A slash with no element behind it.
    EmptyElement,
    /// A `*` beside other characters of an element.
    Wildcard,
    /// A weight that is no plain decimal number, or weights whose sum is too large.
    Weight,
    /// Longer than this many bytes.
    TooLong(usize),
    /// Parentheses nested deeper than this.
    TooDeep(usize),
    /// More entries than this in a table.
    TooManyEntries(usize),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::Escape => f.write_str("an escape is \\x and two hex digits"),
            Self::EmptyElement => f.write_str("an element must not be empty"),
            Self::Wildcard => f.write_str("a * must be a whole element of a prefix"),
            Self::Weight => f.write_str("not a weight"),
            Self::TooLong(most) => write!(f, "longer than {most} bytes"),
            Self::TooDeep(most) => write!(f, "parentheses nested deeper than {most}"),
            Self::TooManyEntries(most) => write!(f, "more than {most} entries"),
        }
    }
}

/// A text that is no path, prefix, tree or table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// Offset in bytes from the start of the text (of the pair's prefix or tree, if it came as pairs).
    pub at: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What was wrong there.
    pub what: What,
    /// The pair, from 0, for a table that came as pairs.
    pub pair: Option<usize>,
    quote: Box<str>,
}

impl NameError {
    /// Describes what is wrong at byte `at` of `text`.
    pub(super) fn new(text: &[u8], at: usize, what: What) -> Self {
        let at = at.min(text.len());
        let (before, after) = text.split_at(at);
        let start_of_line = before.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let from = start_of_line.max(at.saturating_sub(QUOTED));
        let quote = quote(before.get(from..).unwrap_or_default(), after);
        Self { at, line, column: 1 + at - start_of_line, what, pair: None, quote: quote.into() }
    }

    /// The same error, found in pair number `pair` of a list.
    pub(super) fn in_pair(self, pair: usize) -> Self {
        Self { pair: Some(pair), ..self }
    }
}

/// `before[c]after`, of one line, with odd bytes escaped; `[end]` when the text is over.
fn quote(before: &[u8], after: &[u8]) -> String {
    let before = before.escape_ascii();
    let width = match after.first() {
        None => return format!("{before}[end]"),
        Some(first) if *first < 0x80 => 1,
        // The whole character, if it is one: a mark inside of it would garble the message.
        Some(first) => (first.leading_ones() as usize).clamp(1, 4),
    };
    let (marked, rest) = after.split_at(width.min(after.len()));
    let (marked, rest) = if std::str::from_utf8(marked).is_ok() { (marked, rest) } else { after.split_at(1) };
    let rest = rest.split(|b| *b == b'\n').next().unwrap_or_default();
    let rest = rest.get(..QUOTED).unwrap_or(rest).escape_ascii();
    match std::str::from_utf8(marked) {
        Ok(c) if !c.chars().any(char::is_control) => format!("{before}[{c}]{rest}"),
        _ => format!("{before}[{}]{rest}", marked.escape_ascii()),
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pair) = self.pair {
            write!(f, "pair {pair}: ")?;
        }
        write!(
            f,
            "{} at byte {} (line {}, column {}): {}",
            self.what, self.at, self.line, self.column, self.quote
        )
    }
}

impl std::error::Error for NameError {}
