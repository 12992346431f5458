//! What running Finagle clients wrote to a scripted server.

use crate::vectors::{hex, one, to_hex, unhex};
use bytes::{Bytes, BytesMut};
use muxgate_wire::pairs::Pairs;
use muxgate_wire::thrift::ttwitter::{self, CLIENT_ID_KEY, RequestHeader, TRACE_KEY};
use muxgate_wire::thrift::{Protocol, peek};
use serde_json::Value;

/// What one side of a transcript wrote, frame by frame.
fn frames(transcript: &str, side: &str) -> Vec<Vec<u8>> {
    let steps = one("transcripts", transcript)["steps"].as_array().unwrap();
    steps.iter().filter(|step| step[side] != Value::Null).map(|step| hex(&step[side])).collect()
}

fn headers_of(transcript: &str, protocol: Protocol) -> Vec<(RequestHeader, Bytes)> {
    let requests = frames(transcript, "finagle_client_sends").into_iter().map(Bytes::from);
    let upgraded = requests.filter(|request| peek(request).is_err());
    upgraded
        .map(|request| {
            let (header, at) = RequestHeader::decode(protocol, &request).unwrap();
            let mut out = BytesMut::new();
            header.encode(protocol, &mut out);
            assert_eq!(to_hex(&out), to_hex(&request[..at]), "{transcript}");
            peek(&request[at..]).unwrap();
            (header, request.slice(at..))
        })
        .collect()
}

fn find(pairs: &Pairs, key: &[u8]) -> Option<Bytes> {
    pairs.iter().filter(|(other, _)| other == key).map(|(_, value)| value).last()
}

#[test]
fn headers_of_finagle_clients_are_written_back_byte_for_byte() {
    let mut seen = 0;
    for (transcript, protocol) in [
        ("c-thrift-client-upgrade-and-full-header", Protocol::Binary),
        ("c-thrift-client-upgrade-128", Protocol::Binary),
        ("c-thrift-client-upgrade-oneway", Protocol::Binary),
        ("c-thrift-client-compact-upgrade", Protocol::Compact),
    ] {
        for (header, _) in headers_of(transcript, protocol) {
            // The trace is sent twice; what we make of the fields agrees with the entry of field 8.
            let entry = find(&header.contexts, TRACE_KEY).unwrap();
            let fields = header.trace_value();
            assert_eq!(to_hex(&fields.as_ref()[..32]), to_hex(&entry[..32]), "{transcript}");
            assert_eq!(find(&header.to_contexts().unwrap(), TRACE_KEY), Some(entry), "{transcript}");
            assert_eq!(header.to_contexts().unwrap().len(), header.contexts.len(), "{transcript}");
            seen += 1;
        }
    }
    assert_eq!(seen, 5);
}

#[test]
fn a_header_built_from_its_contexts_says_the_same() {
    let transcript = "c-thrift-client-upgrade-and-full-header";
    let (theirs, _) = headers_of(transcript, Protocol::Binary).remove(0);
    let ours = RequestHeader::from_mux(&theirs.contexts, &Bytes::new(), &theirs.delegations);
    // Finagle keeps the decision out of field 7, we keep the flags as they came: both amount to the same.
    assert_eq!(ours.trace_value(), theirs.trace_value());
    assert_eq!(RequestHeader { flags: theirs.flags, ..ours }, theirs);
}

#[test]
fn a_128_bit_trace_id_travels_in_field_8_only() {
    let (theirs, _) = headers_of("c-thrift-client-upgrade-128", Protocol::Binary).remove(0);
    assert_eq!(theirs.trace_id_high, None);
    let trace = find(&theirs.to_contexts().unwrap(), TRACE_KEY).unwrap();
    assert_eq!(trace.len(), 40);
    let ours = RequestHeader::from_mux(&theirs.contexts, &Bytes::new(), &Pairs::default());
    assert_eq!((ours.trace_id_high, find(&ours.contexts, TRACE_KEY)), (None, Some(trace)));
}

#[test]
fn an_upgrade_may_be_refused() {
    let refused = &frames("c-thrift-client-upgrade-refused", "scripted_server_sends")[0];
    assert_eq!(ttwitter::upgrade_accepted(refused), Ok(false));
    let accepted = &frames("c-thrift-client-upgrade-and-full-header", "scripted_server_sends")[0];
    assert_eq!(ttwitter::upgrade_accepted(accepted), Ok(true));
    for transcript in ["c-thrift-client-upgrade-refused", "c-thrift-client-compact-upgrade"] {
        let call = &frames(transcript, "finagle_client_sends")[0];
        assert!(ttwitter::is_upgrade_call(&peek(call).unwrap(), call), "{transcript}");
    }
    assert!(ttwitter::upgrade_accepted(b"junk").is_err());
}

#[test]
fn header_from_mux_and_back() {
    let trace = unhex("00000000000000330000000000000022000000000000001100000000000000060000000000000044");
    for (flags, sampled) in
        [(0u8, None), (1, Some(true)), (2, Some(false)), (6, Some(true)), (3, Some(true)), (4, None)]
    {
        let mut trace = trace.clone();
        trace[31] = flags;
        let contexts =
            Pairs::build([(TRACE_KEY, &trace[..]), (CLIENT_ID_KEY, b"web"), (b"unknown", b"\xff\0")])
                .unwrap();
        let dtab = Pairs::build([(&b"/s"[..], &b"/t"[..])]).unwrap();
        let header = RequestHeader::from_mux(&contexts, &Bytes::from_static(b"/s/web"), &dtab);
        assert_eq!((header.trace_id, header.span_id, header.parent_span_id), (0x11, 0x33, Some(0x22)));
        assert_eq!((header.sampled, header.flags), (sampled, Some(u64::from(flags))));
        assert_eq!(header.client_id.as_deref(), Some(&b"web"[..]));
        assert_eq!(header.to_contexts().unwrap(), contexts, "nothing is lost or changed");
        for protocol in [Protocol::Binary, Protocol::Compact] {
            let mut out = BytesMut::new();
            header.encode(protocol, &mut out);
            let bytes = out.freeze();
            assert_eq!(RequestHeader::decode(protocol, &bytes), Ok((header.clone(), bytes.len())));
        }
    }
}

#[test]
fn odd_contexts_make_no_ids() {
    let root = [0x33u64, 0x33, 0x33, 0].map(u64::to_be_bytes).concat();
    let contexts = Pairs::build([(TRACE_KEY, &root[..]), (CLIENT_ID_KEY, b"")]).unwrap();
    let header = RequestHeader::from_mux(&contexts, &Bytes::new(), &Pairs::default());
    assert_eq!(
        (header.parent_span_id, header.sampled, header.client_id, header.dest),
        (None, None, None, None)
    );
    let short = Pairs::build([(TRACE_KEY, &root[..24])]).unwrap();
    let header = RequestHeader::from_mux(&short, &Bytes::new(), &Pairs::default());
    assert_eq!((header.trace_id, header.flags), (0, None));
    assert_eq!(header.contexts, short, "a value that does not decode is passed on");
}
