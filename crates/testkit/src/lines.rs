//! What a program has printed, line by line, and a way to wait for more of it without sleeping.

use parking_lot::{Condvar, Mutex};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Lines kept of one stream; a program that prints more has its later lines dropped, so that a test cannot eat all memory.
pub const MAX_LINES: usize = 500_000;
/// Lines shown of a stream when something has failed.
const TAIL: usize = 40;

/// The lines of one stream, filled by a thread that reads it to its end.
#[derive(Default)]
pub struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    /// Reads `stream` to its end on a thread of its own. Bytes that are not UTF-8 are replaced.
    pub fn of(stream: impl Read + Send + 'static) -> Arc<Self> {
        let lines = Arc::new(Self::default());
        let filled = lines.clone();
        std::thread::spawn(move || filled.fill(stream));
        lines
    }

    fn fill(&self, stream: impl Read) {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            line.clear();
            let mut state = self.state.lock();
            if state.lines.len() < MAX_LINES {
                state.lines.push(text);
            }
            self.changed.notify_all();
        }
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// How many lines there are by now: where a later [`find`](Self::find) may begin.
    pub fn len(&self) -> usize {
        self.state.lock().lines.len()
    }

    /// Whether nothing has been printed yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of all lines.
    pub fn all(&self) -> Vec<String> {
        self.state.lock().lines.clone()
    }

    /// The last lines, as one text for a message.
    pub fn tail(&self) -> String {
        let state = self.state.lock();
        let from = state.lines.len().saturating_sub(TAIL);
        state.lines.iter().skip(from).map(|l| format!("    {l}\n")).collect()
    }

    /// Shows each line from number `from` on to `look`, once, until it returns something.
    ///
    /// # Errors
    /// Why there was nothing: the stream ended, or `limit` passed.
    pub fn find<T>(
        &self,
        from: usize,
        limit: Duration,
        mut look: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, String> {
        let end = Instant::now() + limit;
        let mut next = from;
        let mut state = self.state.lock();
        loop {
            while let Some(line) = state.lines.get(next) {
                next += 1;
                if let Some(found) = look(line) {
                    return Ok(found);
                }
            }
            if state.ended {
                return Err("its output ended".into());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("not within {limit:?}"));
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Waits until the stream has ended, and so until all that it will ever hold is here.
    pub fn ended(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.state.lock();
        while !state.ended {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.changed.wait_for(&mut state, left);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_line_says_why_not_and_keeps_the_last_one_without_its_end() {
        let lines = Lines::of(&b"one\ntwo \xff\nthree"[..]);
        let limit = Duration::from_secs(10);
        assert_eq!(lines.find(0, limit, |l| l.starts_with("tw").then_some(l.len())), Ok(7));
        assert_eq!(lines.find(2, limit, |l| Some(l.to_owned())), Ok("three".to_owned()));
        let none: Result<(), _> = lines.find(0, limit, |_| None);
        assert_eq!(none, Err("its output ended".to_owned()));
        assert!(lines.ended(limit));
        assert_eq!(lines.len(), 3);
    }
}
