//! What a call brings beside its message, in the ways that different forms carry it.

use crate::hex;
use crate::link::Dialect;
use crate::mux::Pairs;
use bytes::{Buf, BufMut, Bytes, BytesMut};

const TRACE: &str = "com.twitter.finagle.tracing.TraceContext";
const DEADLINE: &str = "com.twitter.finagle.Deadline";
const CLIENT_ID: &str = "com.twitter.finagle.thrift.ClientIdContext";
const REQUEST_HEADERS: &str = "com.twitter.finagle.thrift.Request.headers";
const RESPONSE_HEADERS: &str = "com.twitter.finagle.thrift.Response.headers";
/// The same as info headers of THeader.
const INFO_TRACE: &str = "x-b3-traceid";
const INFO_SPAN: &str = "x-b3-spanid";
const INFO_DEADLINE: &str = "l5d-ctx-deadline";
const INFO_CLIENT_ID: &str = "client-id";

/// Luggage; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Luggage {
    /// The trace's id. Spans are each hop's own.
    pub trace: Option<u64>,
    /// When the deadline was set, and when it passes: ns since 1970.
    pub deadline: Option<(u64, u64)>,
    /// Who calls.
    pub client_id: Option<Bytes>,
    /// The application's headers.
    pub headers: Pairs,
}

impl Luggage {
    /// As contexts.
    pub fn contexts(&self) -> Pairs {
        let mut out = Pairs::new();
        let mut put = |key: &'static str, value: Bytes| out.push((Bytes::from_static(key.as_bytes()), value));
        if let Some(trace) = self.trace {
            let mut ids = BytesMut::new();
            for id in [trace, trace, trace, 0] {
                ids.put_u64(id);
            }
            put(TRACE, ids.freeze());
        }
        if let Some((set, at)) = self.deadline {
            put(DEADLINE, Bytes::from([set.to_be_bytes(), at.to_be_bytes()].concat()));
        }
        if let Some(client_id) = &self.client_id {
            put(CLIENT_ID, client_id.clone());
        }
        if !self.headers.is_empty() {
            put(REQUEST_HEADERS, list(&self.headers));
        }
        out
    }

    /// As the keys of a Treq, which has room for the trace only.
    pub fn keys(&self) -> Bytes {
        let Some(trace) = self.trace else { return Bytes::from_static(&[0]) };
        let mut out = BytesMut::from(&[1, 1, 24][..]);
        for id in [trace, trace, trace] {
            out.put_u64(id);
        }
        out.freeze()
    }

    /// As info headers.
    pub fn info(&self) -> Pairs {
        let mut out = self.headers.clone();
        let mut put = |key: &'static str, value: Bytes| out.push((Bytes::from_static(key.as_bytes()), value));
        if let Some(trace) = self.trace {
            let id = Bytes::from(hex::encode(&trace.to_be_bytes()));
            put(INFO_TRACE, id.clone());
            put(INFO_SPAN, id);
        }
        if let Some((set, at)) = self.deadline {
            put(INFO_DEADLINE, Bytes::from(format!("{set} {at}")));
        }
        if let Some(client_id) = &self.client_id {
            put(INFO_CLIENT_ID, client_id.clone());
        }
        out
    }

    /// What a call brought in this dialect, as contexts or info.
    pub fn read(dialect: Dialect, pairs: &Pairs) -> Self {
        let value = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
        if dialect == Dialect::Header {
            let trace = value(INFO_TRACE).and_then(|id| {
                let id = std::str::from_utf8(&id).ok()?.get(..)?;
                u64::from_str_radix(id.get(id.len().checked_sub(16)?..)?, 16).ok()
            });
            let deadline = value(INFO_DEADLINE).and_then(|text| {
                let (set, at) = std::str::from_utf8(&text).ok()?.split_once(' ')?;
                Some((set.parse().ok()?, at.parse().ok()?))
            });
            let ours = ["x-b3-", "l5d-", INFO_CLIENT_ID];
            let is_ours = |key: &Bytes| ours.iter().any(|start| key.starts_with(start.as_bytes()));
            let headers = pairs.iter().filter(|(key, _)| !is_ours(key)).cloned().collect();
            return Self { trace, deadline, client_id: value(INFO_CLIENT_ID), headers };
        }
        Self {
            trace: value(TRACE).and_then(|ids| ids.get(16..24)?.try_get_u64().ok()),
            deadline: value(DEADLINE)
                .and_then(|mut value| Some((value.try_get_u64().ok()?, value.try_get_u64().ok()?))),
            client_id: value(CLIENT_ID),
            headers: value(REQUEST_HEADERS).and_then(unlist).unwrap_or_default(),
        }
    }
}

/// The contexts of a reply with these application headers.
pub fn response_contexts(headers: &Pairs) -> Pairs {
    vec![(Bytes::from_static(RESPONSE_HEADERS.as_bytes()), list(headers))]
}

/// The application headers of a reply with these contexts.
pub fn response_headers(contexts: &Pairs) -> Pairs {
    let value = contexts.iter().find(|(key, _)| key == RESPONSE_HEADERS).map(|(_, value)| value.clone());
    value.and_then(unlist).unwrap_or_default()
}

fn list(pairs: &Pairs) -> Bytes {
    let mut out = BytesMut::new();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        out.put_u16(text.len() as u16);
        out.put_slice(text);
    }
    out.freeze()
}

fn unlist(mut list: Bytes) -> Option<Pairs> {
    let mut text = || {
        let length = usize::from(list.try_get_u16().ok()?);
        (length <= list.len()).then(|| list.split_to(length))
    };
    let mut pairs = Pairs::new();
    while let Some(key) = text() {
        pairs.push((key, text()?));
    }
    list.is_empty().then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luggage_is_packed_and_unpacked() {
        let pair = |key, value| (Bytes::from_static(key), Bytes::from_static(value));
        let luggage = Luggage {
            trace: Some(7),
            deadline: Some((1, u64::MAX >> 1)),
            client_id: Some(Bytes::from_static(b"me")),
            headers: vec![pair(b"k", b"v"), pair(b"", b"\xff")],
        };
        assert_eq!(Luggage::read(Dialect::Mux, &luggage.contexts()), luggage);
        assert_eq!(Luggage::read(Dialect::Header, &luggage.info()), luggage);
        assert_eq!(Luggage::default().contexts(), Pairs::new());
        assert_eq!(response_headers(&response_contexts(&luggage.headers)), luggage.headers);
    }
}
