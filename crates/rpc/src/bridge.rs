//! The one place where a Thrift message or a Mux dispatch becomes a [`Request`], and an answer becomes bytes again
//! (thriftmux spec, sections 6.4, 8 and 18).

use crate::{Context, Deadline, Failure, Payload, Request, Why, headers};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::mux::context::{self, ContextWriter, Deadline as WireDeadline, MuxFailure, TraceContext};
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::name::Path;
use muxgate_wire::pairs::Pairs;
use muxgate_wire::thrift::{
    ApplicationExceptionType, Kind, MAX_NAME, Protocol, ThriftError, Why as WhyNotThrift, exception, peek,
    ttwitter,
};
use std::borrow::Cow;
use std::net::SocketAddr;
use tokio::time::Instant;

/// A message whose method and sequence id could be read, and that is no call that can be made: it can be answered, and only
/// it fails.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The message.
    pub call: Payload,
    /// What its caller is told.
    pub kind: ApplicationExceptionType,
    /// And why.
    pub text: String,
}

impl Refusal {
    fn protocol_error(call: Payload, failure: &Failure) -> Self {
        Self { call, kind: ApplicationExceptionType::ProtocolError, text: failure.to_string() }
    }

    /// The refusal as a whole message.
    pub fn to_exception(&self) -> Bytes {
        exception_of(&self.call, self.kind, &self.text)
    }
}

/// Reads a plain Thrift message.
///
/// # Errors
/// Outside: bytes that are no message, so that there is nobody to answer. Inside: a message that is no call.
pub fn from_thrift(
    message: Bytes,
    peer: Option<SocketAddr>,
) -> Result<Result<Request, Refusal>, ThriftError> {
    Ok(payload(message)?.map(|body| Request::new(body, Instant::now(), peer)))
}

/// Reads a TTwitter request: a header, then a message. A destination that is not a path fails the call alone; what is beyond the
/// limits is noted in `local.excess`.
///
/// # Errors
/// Outside: bytes that are not a header and a message, so that there is nobody to answer. Inside: a message that is no
/// call, or one with an unreadable destination.
pub fn from_ttwitter(
    mut frame: Bytes,
    protocol: Protocol,
    limits: &Limits,
    peer: Option<SocketAddr>,
) -> Result<Result<Request, Refusal>, ThriftError> {
    let (header, at, excess) = ttwitter::RequestHeader::decode_within(protocol, &frame, limits)?;
    frame.advance(at);
    let body = match payload(frame)? {
        Ok(body) => body,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let now = Instant::now();
    let contexts = header.to_contexts().map_err(|error| bad_request(format!("contexts: {error}")));
    let named = contexts.and_then(|contexts| Ok((contexts, destination(header.dest.unwrap_or_default())?)));
    Ok(match named {
        Ok((contexts, dst)) => {
            let mut request = Request::new(body, now, peer);
            request.dst = dst;
            request.dtab = header.delegations;
            request.ctx = read_contexts(&contexts, now);
            request.local.excess = excess.map(|excess| excess.what);
            Ok(request)
        }
        Err(failure) => Err(Refusal::protocol_error(body, &failure)),
    })
}

/// Reads the message of a THeader frame, with what its info headers say; of more of these than the limits allow nothing is read,
/// which is noted in `local.excess`.
///
/// # Errors
/// As [`from_ttwitter`].
pub fn from_theader(
    info: &headers::Info,
    message: Bytes,
    limits: &Limits,
    peer: Option<SocketAddr>,
) -> Result<Result<Request, Refusal>, ThriftError> {
    let now = Instant::now();
    let body = match payload(message)? {
        Ok(body) => body,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let bytes: usize = info.iter().map(|(key, value)| key.len() + value.len()).sum();
    // A destination alone has a limit of its own.
    if !limits.destination_only && (info.len() > limits.contexts || bytes > limits.context_bytes) {
        let mut request = Request::new(body, now, peer);
        request.local.excess = Some("contexts");
        return Ok(Ok(request));
    }
    Ok(match headers::from_info(info, now) {
        Ok((dst, dtab, ctx)) => {
            let mut request = Request::new(body, now, peer);
            (request.dst, request.dtab, request.ctx) = (dst, dtab, ctx);
            Ok(request)
        }
        Err(failure) => Err(Refusal::protocol_error(body, &failure)),
    })
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

/// The head of a message, which must be a call's.
fn payload(message: Bytes) -> Result<Result<Payload, Refusal>, ThriftError> {
    let head = match peek(&message) {
        Ok(head) => head,
        Err(error) => return no_kind(&message, error).map(Err),
    };
    let call = Payload::peeked(message, head);
    let kind = call.head().map_or(Kind::Call, |head| head.kind);
    Ok(match kind {
        Kind::Call | Kind::Oneway => Ok(call),
        Kind::Reply | Kind::Exception => Err(no_call(call, format!("a message of type {kind} is no call"))),
    })
}

fn no_call(call: Payload, text: String) -> Refusal {
    Refusal { call, kind: ApplicationExceptionType::InvalidMessageType, text }
}

/// Of a message whose type is not assigned, method and sequence id can be read all the same: as if it were a call.
///
/// # Errors
/// Another `error` than that, and a head that is not all there.
pub fn no_kind(message: &[u8], error: ThriftError) -> Result<Refusal, ThriftError> {
    let WhyNotThrift::UnknownKind(code) = error.why else { return Err(error) };
    let mut start = BytesMut::from(message.get(..MAX_HEAD).unwrap_or(message));
    let is_compact = start.first() == Some(&0x82);
    *start.get_mut(error.at).ok_or(error)? = if is_compact { 0x21 } else { 0x01 };
    let head = peek(&start)?;
    Ok(no_call(Payload::peeked(start.freeze(), head), format!("there is no message type {code}")))
}

/// No head of a message has more bytes than its name and these.
const MAX_HEAD: usize = MAX_NAME + 16;

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
    exception_of(call, kind, &failure.to_string())
}

fn exception_of(call: &Payload, kind: ApplicationExceptionType, text: &str) -> Bytes {
    call.head().map_or_else(Bytes::new, |head| {
        exception::to_bytes(head.form(), call.method_bytes(), head.seqid, kind, text)
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
