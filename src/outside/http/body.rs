//! An answer that goes on, line by line.

use super::{Chain, HttpError};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;

/// Longest line, in bytes.
pub const MAX_LINE: usize = 16 << 20;

/// The lines of an answer.
pub struct Lines {
    body: Incoming,
    read: BytesMut,
    /// How much of what was read holds no end of a line.
    seen: usize,
    what: String,
}

impl Lines {
    pub(super) fn new(body: Incoming, what: String) -> Self {
        Self { body, read: BytesMut::new(), seen: 0, what }
    }

    /// The next line, without its end; none when the answer is over. Waits for ever: see [`Lines::next_within`].
    ///
    /// # Errors
    /// The connection broke, or a line is longer than [`MAX_LINE`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let end = self.read.iter().skip(self.seen).position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let mut line = self.read.split_to(self.seen + end + 1);
                self.seen = 0;
                line.truncate(line.len() - 1);
                if line.last() == Some(&b'\r') {
                    line.truncate(line.len() - 1);
                }
                return Ok(Some(line.freeze()));
            }
            self.seen = self.read.len();
            if self.seen > MAX_LINE {
                return Err(self.error(&format!("a line of more than {MAX_LINE} bytes")));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(self.error(&Chain(&error).to_string())),
                None if self.read.is_empty() => return Ok(None),
                None => {
                    self.seen = 0;
                    return Ok(Some(self.read.split().freeze()));
                }
            }
        }
    }

    /// The next line, if it comes in time.
    ///
    /// # Errors
    /// Those of [`Lines::next`], and silence for longer than `within`.
    pub async fn next_within(&mut self, within: Duration) -> Result<Option<Bytes>, HttpError> {
        let next = timeout(within, self.next()).await;
        next.unwrap_or_else(|_| Err(self.error(&format!("silent for {} s", within.as_secs_f64()))))
    }

    fn error(&self, why: &str) -> HttpError {
        HttpError { status: None, text: format!("{}: {why}", self.what) }
    }
}
