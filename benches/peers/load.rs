//! Callers in a closed loop. They use none of the gateway's codecs, send no payload twice, and compare every reply.

use super::{ARGUMENT, CALL, FIELD_ID, Proto};
use bytes::{BufMut, BytesMut};
use muxgate_rpc::io::{Io, poll_write_all};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::io::poll_read_buf;

/// Bytes asked for by one read.
const CHUNK: usize = 64 << 10;
/// The marker by which a Mux client finds out whether its server shakes hands: an Rerr, tag 1.
const PROBE: &[u8] = b"\0\0\0\x0f\x7f\0\0\x01tinit check";
/// Tinit, tag 1, version 1, no headers: the server may not cut what it sends.
const TINIT: &[u8] = b"\0\0\0\x06\x44\0\0\x01\0\x01";
/// The type of an Rinit.
const RINIT: u8 = 0xbc;
/// The type of an Rdispatch.
const RDISPATCH: u8 = 0xfe;
/// The tag of the first slot.
const FIRST_TAG: usize = 2;
/// 1 January 2100, in ns since 1970.
const FAR: i64 = 4_102_444_800_000_000_000;

/// Every call of a process has its own number, and its payload repeats that.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// What became of calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls that were answered.
    pub calls: u64,
    /// Those among them whose reply was not theirs.
    pub wrong: u64,
}

/// One connection and its calls.
pub struct Caller<T> {
    io: T,
    proto: Proto,
    size: usize,
    read: BytesMut,
    write: BytesMut,
    /// What comes before the message in a Tdispatch: contexts, destination, dtab.
    front: Vec<u8>,
    /// The reply that each slot waits for; empty when it waits for none.
    slots: Vec<Vec<u8>>,
    waiting: usize,
    tally: Tally,
}

impl<T: Io> Caller<T> {
    /// Shakes hands. Each call carries `size` bytes; `in_flight` calls are made at once, of framed Thrift only one.
    ///
    /// # Errors
    /// Those of the connection, or a server that does not shake hands.
    pub async fn start(mut io: T, proto: Proto, size: usize, in_flight: usize) -> io::Result<Self> {
        if proto == Proto::Mux {
            shake(&mut io).await?;
        }
        Ok(Self {
            io,
            proto,
            size,
            read: BytesMut::new(),
            write: BytesMut::new(),
            front: front(),
            slots: vec![Vec::new(); in_flight],
            waiting: 0,
            tally: Tally::default(),
        })
    }

    /// Makes calls, each slot its next one when the last was answered, for as long as `more` says so; then waits for
    /// the rest.
    ///
    /// # Errors
    /// A lost connection, or bytes that are no reply at all.
    pub async fn run(&mut self, more: impl Fn() -> bool) -> io::Result<Tally> {
        self.tally = Tally::default();
        for slot in 0..self.slots.len() {
            if more() {
                self.call(slot);
            }
        }
        while self.waiting > 0 {
            let got = poll_fn(|cx| {
                if let Poll::Ready(Err(error)) = poll_write_all(&mut self.io, cx, &mut self.write) {
                    return Poll::Ready(Err(error));
                }
                if self.read.capacity() - self.read.len() < CHUNK / 2 {
                    self.read.reserve(CHUNK);
                }
                poll_read_buf(Pin::new(&mut self.io), cx, &mut self.read)
            });
            if got.await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while let Some(len) = self.read.first_chunk().map(|len| 4 + u32::from_be_bytes(*len) as usize)
                && self.read.len() >= len
            {
                let frame = self.read.split_to(len);
                self.take_reply(&frame[4..], &more)?;
            }
        }
        Ok(self.tally)
    }

    fn call(&mut self, slot: usize) {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let reply = &mut self.slots[slot];
        reply.put_slice(CALL);
        reply.put_u32(serial as u32);
        reply.put_slice(ARGUMENT);
        reply.put_u32(self.size as u32);
        let text = format!("{serial:016x}");
        let end = reply.len() + self.size;
        while reply.len() < end {
            reply.put_slice(&text.as_bytes()[..text.len().min(end - reply.len())]);
        }
        reply.put_u8(0);
        match self.proto {
            Proto::Framed => self.write.put_u32(reply.len() as u32),
            Proto::Mux => {
                self.write.put_u32((4 + self.front.len() + reply.len()) as u32);
                self.write.put_u32(2 << 24 | (slot + FIRST_TAG) as u32);
                self.write.put_slice(&self.front);
            }
        }
        self.write.put_slice(reply);
        reply[3] = 2;
        reply[FIELD_ID + 1] = 0;
        self.waiting += 1;
    }

    fn take_reply(&mut self, frame: &[u8], more: &impl Fn() -> bool) -> io::Result<()> {
        let (slot, message) = match self.proto {
            Proto::Framed => (0, frame),
            Proto::Mux => rdispatch(frame).ok_or_else(|| unexpected(frame))?,
        };
        let awaited =
            self.slots.get_mut(slot).filter(|slot| !slot.is_empty()).ok_or_else(|| unexpected(frame))?;
        self.tally.calls += 1;
        self.tally.wrong += u64::from(awaited != message);
        awaited.clear();
        self.waiting -= 1;
        if more() {
            self.call(slot);
        }
        Ok(())
    }
}

async fn shake(io: &mut impl Io) -> io::Result<()> {
    io.write_all(PROBE).await?;
    let mut echo = vec![0; PROBE.len()];
    io.read_exact(&mut echo).await?;
    io.write_all(TINIT).await?;
    let mut rinit = vec![0; io.read_u32().await? as usize];
    io.read_exact(&mut rinit).await?;
    match echo == PROBE && rinit.first() == Some(&RINIT) {
        true => Ok(()),
        false => Err(unexpected(&rinit)),
    }
}

/// What a Finagle client sends before the message: a trace, a deadline, its name; a destination; no dtab.
fn front() -> Vec<u8> {
    let mut trace = [7; 32];
    trace[24..].fill(0);
    let deadline = [0i64.to_be_bytes(), FAR.to_be_bytes()].concat();
    let contexts: [(&[u8], &[u8]); 3] = [
        (b"com.twitter.finagle.tracing.TraceContext", &trace),
        (b"com.twitter.finagle.Deadline", &deadline),
        (b"com.twitter.finagle.thrift.ClientIdContext", b"bench"),
    ];
    let mut front = Vec::new();
    front.put_u16(contexts.len() as u16);
    for text in contexts.iter().flat_map(|(key, value)| [key, value]).chain([&&b"/echo"[..]]) {
        front.put_u16(text.len() as u16);
        front.put_slice(text);
    }
    front.put_u16(0);
    front
}

/// Slot and message of an Rdispatch whose status is OK.
fn rdispatch(frame: &[u8]) -> Option<(usize, &[u8])> {
    let (&[RDISPATCH, a, b, c, 0, high, low], mut rest) = frame.split_first_chunk()? else { return None };
    for _ in 0..u32::from(u16::from_be_bytes([high, low])) * 2 {
        let (len, text) = rest.split_first_chunk()?;
        rest = text.get(usize::from(u16::from_be_bytes(*len))..)?;
    }
    let tag = u32::from_be_bytes([0, a, b, c]) as usize;
    Some((tag.checked_sub(FIRST_TAG)?, rest))
}

fn unexpected(frame: &[u8]) -> io::Error {
    let front = &frame[..frame.len().min(200)];
    io::Error::other(format!("neither awaited nor a reply: {}", front.escape_ascii()))
}
