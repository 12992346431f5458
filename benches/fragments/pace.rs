//! Writing no faster than a network would take it.

use bytes::Buf;
use muxgate_rpc::io::poll_write;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// Most bytes written in one go.
const BURST: f64 = 128.0 * 1024.0;
/// And fewest, of what is longer: a network brings no crumbs.
const LEAST: f64 = BURST / 2.0;
/// As fine as the runtime's timer is.
const TICK: Duration = Duration::from_millis(1);

/// A rate, and what may be written of it now.
pub struct Pace {
    /// Bytes a second; none for as fast as the socket takes them.
    rate: Option<f64>,
    credit: f64,
    counted: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Pace {
    /// So many million bits a second; 0 for no bound.
    pub fn new(megabits: u32) -> Self {
        Self {
            rate: (megabits > 0).then(|| f64::from(megabits) * 125_000.0),
            credit: BURST,
            counted: Instant::now(),
            timer: Box::pin(sleep(Duration::ZERO)),
        }
    }

    /// Writes once, if it is time to.
    pub fn poll_write(
        &mut self,
        io: &mut TcpStream,
        cx: &mut Context<'_>,
        out: &mut impl Buf,
    ) -> Poll<io::Result<usize>> {
        let Some(rate) = self.rate else { return poll_write(io, cx, out) };
        loop {
            let now = Instant::now();
            self.credit = BURST.min(self.credit + (now - self.counted).as_secs_f64() * rate);
            self.counted = now;
            if self.credit >= LEAST.min(out.remaining() as f64) {
                let written = poll_write(io, cx, &mut out.take(self.credit as usize));
                if let Poll::Ready(Ok(count)) = &written {
                    self.credit -= *count as f64;
                }
                return written;
            }
            self.timer.as_mut().reset(now + TICK);
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
