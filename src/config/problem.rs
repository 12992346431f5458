//! What is wrong with a file, and how it is shown.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// Most mistakes that are shown; the rest are counted.
const MAX_SHOWN: usize = 20;

/// Longest piece of a line that is quoted, in characters.
const MAX_QUOTED: usize = 160;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Bytes of the file that are to blame.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// The mistakes found so far. Shared by all readers of one file, so that one mistake does not hide the next.
#[derive(Debug, Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    /// Notes a mistake.
    pub fn add(&self, at: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        let help = Some(help.into()).filter(|help| !help.is_empty());
        self.0.borrow_mut().push(Problem { at, message: message.into(), help });
    }

    /// What was read if nothing is wrong, or else the report.
    pub fn finish<T>(self, name: &str, text: &str, read: Option<T>) -> Result<T, Report> {
        let mut problems = self.0.into_inner();
        match read {
            Some(read) if problems.is_empty() => return Ok(read),
            None if problems.is_empty() => {
                problems.push(Problem { at: 0..0, message: "this file cannot be used".into(), help: None });
            }
            _ => {}
        }
        problems.sort_by_key(|problem| problem.at.start);
        problems.dedup();
        let (line, column) = position(text, problems.first().map_or(0, |first| first.at.start));
        Err(Report { name: name.into(), text: text.into(), line, column, problems })
    }
}

/// Everything that is wrong with a file. Shown in the manner of a compiler: message, place, line, caret, help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    name: String,
    text: String,
    line: usize,
    column: usize,
    problems: Vec<Problem>,
}

impl Report {
    /// Number of mistakes.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Line of the first mistake, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column of the first mistake in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

/// Line and column (in characters), both from 1, of a byte of the text.
pub(super) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() + 1)
}

impl Problem {
    fn show(&self, name: &str, text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = position(text, self.at.start);
        let quoted = text.lines().nth(line - 1).unwrap_or_default();
        // A blank stands for a tab and for whatever would disturb the terminal, so that the caret stays in its place.
        let quoted: String =
            quoted.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_QUOTED).collect();
        let width = text.get(self.at.clone()).unwrap_or_default();
        let width = width.lines().next().unwrap_or_default().trim_end().chars().count();
        let left = quoted.chars().count().saturating_sub(column - 1);
        let carets = "^".repeat(width.clamp(1, left.max(1)));
        let gutter = " ".repeat(line.to_string().len());
        writeln!(f, "error: {}", self.message)?;
        writeln!(f, "{gutter}--> {name}:{line}:{column}")?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{}", format!("{line} | {quoted}").trim_end())?;
        writeln!(f, "{gutter} | {}{carets}", " ".repeat(column - 1))?;
        match &self.help {
            Some(help) => writeln!(f, "{gutter} = help: {help}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            problem.show(&self.name, &self.text, f)?;
        }
        match self.problems.len() {
            1 => Ok(()),
            count if count > MAX_SHOWN => writeln!(f, "\n{count} errors, the first {MAX_SHOWN} are shown"),
            count => writeln!(f, "\n{count} errors"),
        }
    }
}

impl std::error::Error for Report {}
