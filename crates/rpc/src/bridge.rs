//! The one place where a Thrift message or a Mux dispatch becomes a [`Request`], and an answer becomes bytes again
//! (thriftmux spec, sections 6.4, 8 and 18).

use crate::{Context, Deadline, Failure, Payload, Request, Why};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::mux::context::{self, ContextWriter, Deadline as WireDeadline, MuxFailure, TraceContext};
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::name::Path;
use muxgate_wire::pairs::Pairs;
use muxgate_wire::thrift::{
    ApplicationExceptionType, Kind, Protocol, ThriftError, exception, peek, ttwitter,
};
use std::borrow::Cow;
use std::net::SocketAddr;
use tokio::time::Instant;

/// A call that could be read as a message, but not in all: it can be answered, and only it fails.
pub type Refused = (Payload, Failure);

/// Reads a plain Thrift message.
///
/// # Errors
/// Bytes that are not a call: there is nobody to answer.
pub fn from_thrift(frame: Bytes, peer: Option<SocketAddr>) -> Result<Request, ThriftError> {
    Ok(Request::new(payload(frame)?, Instant::now(), peer))
}

/// Reads a TTwitter request: a header, then a message. A destination that is not a path fails the call alone; what is beyond the
/// limits is noted in `local.excess`.
///
/// # Errors
/// Bytes that are not a header and a call: there is nobody to answer.
pub fn from_ttwitter(
    mut frame: Bytes,
    protocol: Protocol,
    limits: &Limits,
    peer: Option<SocketAddr>,
) -> Result<Result<Request, Refused>, ThriftError> {
    let (header, at, excess) = ttwitter::RequestHeader::decode_within(protocol, &frame, limits)?;
    frame.advance(at);
    let body = payload(frame)?;
    let now = Instant::now();
    let contexts = match header.to_contexts() {
        Ok(contexts) => contexts,
        Err(error) => return Ok(Err((body, bad_request(format!("contexts: {error}"))))),
    };
    let dst = match destination(header.dest.unwrap_or_default()) {
        Ok(dst) => dst,
        Err(failure) => return Ok(Err((body, failure))),
    };
    let mut request = Request::new(body, now, peer);
    request.dst = dst;
    request.dtab = header.delegations;
    request.ctx = read_contexts(&contexts, now);
    request.local.excess = excess.map(|excess| excess.what);
    Ok(Ok(request))
}

/// Reads the parts of a Tdispatch. Its body need not be Thrift: Mux carries anything.
///
/// # Errors
/// A destination that is not a path: the call fails, the session lives on.
pub fn from_tdispatch(
    contexts: &Pairs,
    dst: Bytes,
    dtab: Pairs,
    body: Bytes,
    peer: Option<SocketAddr>,
    now: Instant,
) -> Result<Request, Failure> {
    let mut request = Request::new(Payload::opaque(body), now, peer);
    request.dst = destination(dst)?;
    request.dtab = dtab;
    request.ctx = read_contexts(contexts, now);
    Ok(request)
}

fn payload(frame: Bytes) -> Result<Payload, ThriftError> {
    let head = peek(&frame)?;
    match head.kind {
        Kind::Call | Kind::Oneway => Ok(Payload::peeked(frame, head)),
        Kind::Reply | Kind::Exception => {
            Err(ThriftError { at: 0, why: muxgate_wire::thrift::Why::WrongKind(head.kind) })
        }
    }
}

fn destination(dst: Bytes) -> Result<Path, Failure> {
    Path::from_bytes(dst).map_err(|error| bad_request(format!("destination: {error}")))
}

fn bad_request(text: String) -> Failure {
    Failure::new(Why::BadRequest, text)
}

/// Sorts contexts into those that are understood and the rest. Of a repeated key the last value stands; a malformed
/// value of a known key is no value, and travels on as it is (mux spec, section 15).
pub fn read_contexts(contexts: &Pairs, now: Instant) -> Context {
    let mut read = Context::default();
    for (key, value) in contexts.iter() {
        // The last of a repeated key stands alone, whether its value can be read or not.
        let is_read = match &key[..] {
            context::TRACE => {
                read.trace = TraceContext::decode(&value);
                read.trace.is_some()
            }
            context::DEADLINE => {
                let deadline = WireDeadline::decode(&value);
                read.deadline = deadline.map(|d| Deadline::from_wire(d.timestamp, d.deadline, now));
                read.deadline.is_some()
            }
            // Per hop: each hop counts its own retries from 0 (mux spec, section 15.3).
            context::RETRIES => context::decode_retries(&value).is_some(),
            context::CLIENT_ID => {
                read.client_id = (!value.is_empty()).then(|| value.clone());
                read.client_id.is_some()
            }
            _ => false,
        };
        if is_read {
            read.rest.retain(|(other, _)| *other != key);
            continue;
        }
        if let Some(earlier) = read.rest.iter_mut().find(|(other, _)| *other == key) {
            earlier.1 = value;
        } else {
            read.rest.push((key, value));
        }
    }
    read
}

/// Writes the contexts of a call for the next hop. What is ours comes last: of a repeated key a reader takes the last, and
/// a malformed value that travels on must not hide it.
pub fn write_contexts(ctx: &Context, attempt: u32, out: &mut ContextWriter<'_>) {
    for (key, value) in &ctx.rest {
        out.put(key, value);
    }
    if let Some(trace) = &ctx.trace {
        out.put_trace(trace);
    }
    if let Some(deadline) = ctx.deadline {
        let (timestamp, deadline) = deadline.to_wire();
        out.put_deadline(WireDeadline { timestamp, deadline });
    }
    out.put_retries(i32::try_from(attempt).unwrap_or(i32::MAX));
    if let Some(client_id) = &ctx.client_id {
        out.put(context::CLIENT_ID, client_id);
    }
}

/// The delegations for a Mux service: without those whose prefix has a `*`. Mux readers take prefixes as plain paths and end
/// the whole session over a star (mux spec, section 22; naming spec, section 11). Our own lookup has used them by then.
pub fn mux_dtab(dtab: &Pairs) -> Cow<'_, Pairs> {
    let is_wild =
        |(prefix, _): &(Bytes, Bytes)| prefix.split(|byte| *byte == b'/').any(|element| element == b"*");
    if !dtab.iter().any(|entry| is_wild(&entry)) {
        return Cow::Borrowed(dtab);
    }
    let plain: Vec<_> = dtab.iter().filter(|entry| !is_wild(entry)).collect();
    // Fewer and no longer than what was read: it fits.
    Cow::Owned(Pairs::build(plain.iter().map(|(prefix, dst)| (&prefix[..], &dst[..]))).unwrap_or_default())
}

/// The TTwitter header for a call: what it carries as contexts, and again in the fields that have a place of their own.
///
/// # Errors
/// Contexts that do not fit the format's 16-bit lengths.
pub fn ttwitter_header(request: &Request, protocol: Protocol) -> Result<BytesMut, Failure> {
    let mut region = BytesMut::new();
    let mut writer = ContextWriter::new(&mut region);
    write_contexts(&request.ctx, request.local.attempt, &mut writer);
    let too_long = |error| bad_request(format!("contexts: {error}"));
    writer.finish().map_err(too_long)?;
    let mut region = region.freeze();
    let count = region.try_get_u16().unwrap_or_default();
    let contexts = Pairs::take(count, &mut region).map_err(too_long)?;
    let dst = if request.dst.is_empty() { Bytes::new() } else { request.dst.as_bytes().clone() };
    let header = ttwitter::RequestHeader::from_mux(&contexts, &dst, &request.dtab);
    let mut out = BytesMut::new();
    header.encode(protocol, &mut out);
    Ok(out)
}

/// A failure in the form every Thrift client understands: a TApplicationException with the call's own method and
/// sequence id.
pub fn exception(call: &Payload, failure: &Failure) -> Bytes {
    let kind = match failure.why() {
        Why::BadRequest => ApplicationExceptionType::ProtocolError,
        _ => ApplicationExceptionType::InternalError,
    };
    call.head().map_or_else(Bytes::new, |head| {
        exception::to_bytes(head.form(), call.method_bytes(), head.seqid, kind, &failure.to_string())
    })
}

/// The flags of a failure as a `MuxFailure` context; none when there is nothing to tell.
pub fn mux_failure(failure: &Failure) -> Option<MuxFailure> {
    match failure.flags().to_mux() {
        0 => None,
        bits => Some(MuxFailure(bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(entries: &[(&'static str, &'static str)]) -> Option<Pairs> {
        Pairs::build(entries.iter().map(|(prefix, dst)| (prefix.as_bytes(), dst.as_bytes()))).ok()
    }

    #[test]
    fn mux_services_get_the_delegations_without_a_star() {
        let plain = [("/a", "/b*"), ("/a*/*b", "/*"), ("/**", "/x"), ("", "/y")];
        let (dtab, wild) =
            (pairs(&plain), pairs(&[("/a/*", "/b"), ("/*", "/c"), ("*", "/d"), ("/*/e", "/f")]));
        let is_same = |dtab: &Pairs| matches!(mux_dtab(dtab), Cow::Borrowed(_));
        assert_eq!(dtab.as_ref().map(is_same), Some(true));
        assert_eq!(wild.map(|wild| mux_dtab(&wild).iter().count()), Some(0));
        let mixed = pairs(&[plain[0], ("/*/x", "/z"), plain[1], plain[2], ("/x/*", "/z"), plain[3]]);
        let read = |pairs: &Pairs| pairs.iter().collect::<Vec<_>>();
        assert_eq!(mixed.map(|mixed| read(&mux_dtab(&mixed))), dtab.as_ref().map(read));
    }
}
