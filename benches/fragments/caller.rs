//! One session with small calls at a steady rate, and perhaps a large one.

use super::pace::Pace;
use super::service::{LARGE_ID, message, seqid};
use super::{LARGE, LIMIT};
use bytes::{Buf, Bytes};
use hdrhistogram::Histogram;
use muxgate_rpc::io::{ReadBuffer, keep_short};
use muxgate_wire::mux::client::{ClientConfig, ClientSession, DispatchHead, Event};
use muxgate_wire::mux::frame::next_frame;
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::mux::message::{Rdispatch, Status};
use muxgate_wire::pairs::Pairs;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// Bytes of a small call's argument.
const SMALL: usize = 64;

/// Longest time that is told apart, in microseconds.
const MOST: u64 = 60_000_000;

/// What a round showed.
pub struct Round {
    /// Microseconds.
    times: Histogram<u64>,
    /// Large calls that were answered.
    pub large: u32,
}

impl Default for Round {
    fn default() -> Self {
        let times = Histogram::new_with_bounds(1, MOST, 3).expect("lawful bounds");
        Self { times, large: 0 }
    }
}

impl Round {
    /// Milliseconds that so many percent of the small calls took at most.
    pub fn at(&self, percent: f64) -> f64 {
        self.times.value_at_percentile(percent) as f64 / 1000.0
    }

    /// Small calls.
    pub fn calls(&self) -> u64 {
        self.times.len()
    }

    /// Adds another round.
    pub fn join(&mut self, other: Self) {
        self.times.add(other.times).expect("both have the same range");
        self.large += other.large;
    }
}

/// When a small call was due; none for a large one.
type Token = Option<Instant>;

pub struct Caller {
    io: TcpStream,
    pace: Pace,
    session: ClientSession<Token>,
    read: ReadBuffer,
    begun: Instant,
    serial: u32,
    large: Bytes,
}

impl Caller {
    /// Connects, to write so many million bits a second at most (0: no bound); the handshake is made by the first round.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn connect(address: SocketAddr, megabits: u32) -> io::Result<Self> {
        let io = TcpStream::connect(address).await?;
        io.set_nodelay(true)?;
        keep_short(&io);
        let limits = Limits::DEFAULT.with_message_bytes(LIMIT);
        let config = ClientConfig {
            limits,
            max_queued_bytes: 4 * LIMIT,
            ping_interval: None,
            ..ClientConfig::default()
        };
        Ok(Self {
            io,
            pace: Pace::new(megabits),
            session: ClientSession::new(config),
            read: ReadBuffer::new(64 << 10),
            begun: Instant::now(),
            serial: 0,
            large: message(false, LARGE_ID, LARGE),
        })
    }

    /// Makes small calls for so long, and large ones one after another if asked to; then waits for the rest.
    ///
    /// # Errors
    /// A lost connection, or a call that is not answered as it must be.
    pub async fn round(&mut self, time: Duration, rate: u32, large: bool) -> io::Result<Round> {
        let mut round = Round::default();
        let begun = Instant::now();
        let period = Duration::from_secs(1) / rate;
        let mut due = begun;
        let mut timer = Box::pin(sleep_until(due));
        let mut asked = false;
        loop {
            let over = begun.elapsed() >= time;
            if over && self.session.in_flight() == 0 {
                return Ok(round);
            }
            if large && !asked && !over {
                self.call(None, self.large.clone())?;
                asked = true;
            }
            let is_due = poll_fn(|cx| {
                let outbox = self.session.outbox_mut();
                let wrote = match outbox.has_remaining() {
                    true => self.pace.poll_write(&mut self.io, cx, outbox)?.is_ready(),
                    false => false,
                };
                if !over && timer.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(true));
                }
                match self.read.poll_fill(&mut self.io, cx, 0) {
                    Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                    Poll::Ready(result) => Poll::Ready(result.map(|_| false)),
                    Poll::Pending if wrote => Poll::Ready(Ok(false)),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await?;
            if is_due {
                self.serial = self.serial.wrapping_add(1) % LARGE_ID;
                self.call(Some(due), message(false, self.serial, SMALL))?;
                due += period;
                timer.as_mut().reset(due);
                continue;
            }
            asked &= !self.take_replies(&mut round)?;
        }
    }

    fn call(&mut self, token: Token, body: Bytes) -> io::Result<()> {
        let head = DispatchHead { contexts: |_| {}, dst: b"/echo", dtab: &Pairs::default() };
        let sent = self.session.dispatch(token, head, body);
        sent.map(drop).map_err(|(_, refused)| io::Error::other(refused))
    }

    /// Whether a large call was answered.
    fn take_replies(&mut self, round: &mut Round) -> io::Result<bool> {
        let mut answered = false;
        while let Some(frame) = next_frame(self.read.bytes_mut(), LIMIT as u32).map_err(io::Error::other)? {
            let event = self.session.receive(frame, self.begun.elapsed()).map_err(io::Error::other)?;
            let Some(event) = event else { continue };
            let Event::Replied { token, reply: Rdispatch { status: Status::Ok, body, .. } } = event else {
                match event {
                    Event::Established(_) => continue,
                    other => return Err(io::Error::other(format!("{other:.200?}"))),
                }
            };
            match token {
                Some(due) if body.len() < LARGE && seqid(&body) < LARGE_ID => {
                    round.times.saturating_record(due.elapsed().as_micros() as u64);
                }
                None if body.len() > LARGE && seqid(&body) == LARGE_ID => {
                    round.large += 1;
                    answered = true;
                }
                _ => return Err(io::Error::other("a reply that is not that of its call")),
            }
        }
        Ok(answered)
    }
}
