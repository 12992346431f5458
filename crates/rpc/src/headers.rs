//! What the info headers of THeader frames carry: all that plain Thrift has no place for.
//!
//! | key, in any case | value |
//! |---|---|
//! | `l5d-dst` | the destination, a path |
//! | `l5d-dtab` and its kin | delegations, as the text of a dtab (see [`tables`]) |
//! | `l5d-ctx-deadline` | when the deadline was set, a space, when it passes: ns since 1970 |
//! | `client-id` | the calling service |
//! | `b3`, or `x-b3-traceid` and its kin | the trace (see [`b3`]) |
//!
//! All others are application headers: those of a request travel on as Mux's context `Request.headers`, those of a reply
//! come from `Response.headers` (mux spec, section 15.6), and the other way round. Of a repeated key of ours the last
//! readable value counts; delegations are joined. A trace, deadline or client id that cannot be read is none; a destination or delegations that
//! cannot be read fail their call, which would go to the wrong place without them.

pub mod b3;
pub mod tables;
#[cfg(test)]
mod tests;

use crate::{Context, Deadline, Failure, Request, Why};
use b3::B3;
use bytes::{BufMut, Bytes, BytesMut};
use muxgate_wire::mux::context;
use muxgate_wire::name::Path;
use muxgate_wire::pairs::{MAX_STR16, Pairs};
use muxgate_wire::thrift::theader;
use tables::Tables;
use tokio::time::Instant;

/// Key of the destination.
pub const DST: &[u8] = b"l5d-dst";
/// Key of the delegations.
pub const DTAB: &[u8] = b"l5d-dtab";
/// Key of the deadline.
pub const DEADLINE: &[u8] = b"l5d-ctx-deadline";
/// Key of the caller's name.
pub const CLIENT_ID: &[u8] = b"client-id";

/// Bytes of application headers that one context can carry, lengths included. Those behind are left out, as Finagle's
/// writer does; so are those for which a frame has no room (see [`theader::MAX_INFO`]).
pub const MAX_HEADERS: usize = MAX_STR16;

/// Info headers: keys and values in the order of the frame.
pub type Info = [(Bytes, Bytes)];

/// Reads the info headers of a request: its destination, its delegations, and the rest.
///
/// # Errors
/// [`Why::BadRequest`] for a destination or delegations that cannot be read.
pub fn from_info(info: &Info, now: Instant) -> Result<(Path, Pairs, Context), Failure> {
    let (mut dst, mut ctx) = (Path::default(), Context::default());
    let (mut tables, mut trace, mut others) = (Tables::default(), B3::default(), Headers::default());
    for (key, value) in info {
        let is = |ours: &[u8]| key.eq_ignore_ascii_case(ours);
        if is(DST) {
            dst = Path::from_bytes(value.clone()).map_err(|error| bad(DST, error))?;
        } else if is(DEADLINE) {
            let deadline = read_deadline(value);
            ctx.deadline = deadline.map(|(set, at)| Deadline::from_wire(set, at, now)).or(ctx.deadline);
        } else if is(CLIENT_ID) {
            if (1..=MAX_STR16).contains(&value.len()) {
                ctx.client_id = Some(value.clone());
            }
        } else if !trace.take(key, value) && !tables.take(key, value)? {
            others.put(key, value);
        }
    }
    ctx.trace = trace.read();
    ctx.rest.extend(others.context(context::REQUEST_HEADERS));
    let dtab = tables.read()?.to_pairs().map_err(|error| bad(DTAB, error))?;
    Ok((dst, dtab, ctx))
}

/// The info headers of a call for the next hop. Application headers that bear the name of one of ours are left out; what
/// contexts carry beyond these cannot be said in info headers.
pub fn to_info(request: &Request) -> Vec<(Bytes, Bytes)> {
    let mut info = Vec::new();
    let mut put = |key: &'static [u8], value: Bytes| info.push((Bytes::from_static(key), value));
    if !request.dst.is_empty() {
        put(DST, request.dst.as_bytes().clone());
    }
    if !request.dtab.is_empty() {
        put(DTAB, dtab_text(&request.dtab));
    }
    if let Some(deadline) = request.ctx.deadline {
        let (set, at) = deadline.to_wire();
        put(DEADLINE, Bytes::from(format!("{set} {at}")));
    }
    if let Some(client_id) = &request.ctx.client_id {
        put(CLIENT_ID, client_id.clone());
    }
    if let Some(trace) = &request.ctx.trace {
        b3::write(trace, put);
    }
    let others = application(&request.ctx.rest, context::REQUEST_HEADERS);
    fill(&mut info, others.filter(|(key, _)| !is_ours(key)));
    info
}

/// The info headers of a reply with these contexts. Other contexts than `Response.headers` cannot be carried.
pub fn reply_to_info(contexts: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    let mut info = Vec::new();
    fill(&mut info, application(contexts, context::RESPONSE_HEADERS));
    info
}

/// The contexts of a reply with these info headers.
pub fn reply_from_info(info: &Info) -> Vec<(Bytes, Bytes)> {
    let mut headers = Headers::default();
    info.iter().for_each(|(key, value)| headers.put(key, value));
    headers.context(context::RESPONSE_HEADERS).into_iter().collect()
}

/// Adds application headers as long as a frame has room for them.
fn fill(info: &mut Vec<(Bytes, Bytes)>, others: impl Iterator<Item = (Bytes, Bytes)>) {
    let size = |(key, value): &(Bytes, Bytes)| key.len() + value.len();
    let mut bytes: usize = info.iter().map(size).sum();
    for pair in others {
        bytes += size(&pair);
        if info.len() >= theader::MAX_INFO || bytes > theader::MAX_INFO_BYTES {
            return;
        }
        info.push(pair);
    }
}

fn is_ours(key: &[u8]) -> bool {
    [DST, DEADLINE, CLIENT_ID].iter().any(|ours| key.eq_ignore_ascii_case(ours))
        || tables::is_key(key)
        || b3::is_key(key)
}

fn bad(key: &[u8], error: impl std::fmt::Display) -> Failure {
    Failure::new(Why::BadRequest, format!("info header {}: {error}", key.escape_ascii()))
}

/// `TIMESTAMP DEADLINE`, two whole numbers.
fn read_deadline(value: &[u8]) -> Option<(i64, i64)> {
    let (set, at) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
    Some((number(set)?, number(at)?))
}

/// Delegations as they came, in the text form of a dtab.
fn dtab_text(dtab: &Pairs) -> Bytes {
    let mut text = BytesMut::new();
    for (prefix, dst) in dtab.iter() {
        if !text.is_empty() {
            text.put_slice(b";");
        }
        text.put_slice(&prefix);
        text.put_slice(b"=>");
        text.put_slice(&dst);
    }
    text.freeze()
}

/// The application headers among contexts; none if their list is broken.
fn application(contexts: &[(Bytes, Bytes)], key: &[u8]) -> impl Iterator<Item = (Bytes, Bytes)> + use<> {
    let value = contexts.iter().rev().find(|(other, _)| other == key).map(|(_, value)| value.clone());
    let pairs = value.and_then(|value| context::decode_headers(value).ok()).unwrap_or_default();
    let pairs: Vec<_> = pairs.iter().collect();
    pairs.into_iter()
}

/// Application headers as the value of a context, at most [`MAX_HEADERS`] bytes.
#[derive(Default)]
struct Headers {
    region: BytesMut,
    full: bool,
}

impl Headers {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        let more = key.len().saturating_add(value.len()).saturating_add(4);
        self.full |= self.region.len().saturating_add(more) > MAX_HEADERS;
        if self.full {
            return;
        }
        for text in [key, value] {
            self.region.put_u16(text.len() as u16);
            self.region.put_slice(text);
        }
    }

    fn context(self, key: &'static [u8]) -> Option<(Bytes, Bytes)> {
        (!self.region.is_empty()).then(|| (Bytes::from_static(key), self.region.freeze()))
    }
}
