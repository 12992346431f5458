//! First bytes to protocol: field case BC-05, recorded first frames, and the rules at their edges.

use crate::vectors::{bytes_of, case, framed, hex, name, named, unhex};
use muxgate_wire::detect::{Detected, MOST_BYTES, detect, detect_within};
use proptest::prelude::*;

/// The answer for a whole connection start; every shorter start asks for more or says the same.
fn detected(bytes: &[u8]) -> Detected {
    let last = detect(bytes);
    for end in 0..bytes.len() {
        match detect(&bytes[..end]) {
            Detected::NeedMore(total) => assert!(total > end && total <= MOST_BYTES, "{total} at {end}"),
            early => assert_eq!(early, last, "{end} bytes"),
        }
    }
    last
}

#[test]
fn bc_05_mux_marker_and_plain_thrift_on_one_port() {
    let case = case("bc-05-thriftmux-tinit-check");
    let inputs = case["input"].as_array().unwrap();
    let answers: Vec<_> = inputs.iter().map(|step| detected(&hex(&step["hex"]))).collect();
    use Detected::{FramedBinary, FramedCompact, Mux};
    // The marker; the Tinit and the Tdispatch, either of which may also come first; the two plain calls.
    assert_eq!(answers, [Mux, Mux, Mux, FramedBinary, FramedCompact]);
}

#[test]
fn theader_vectors() {
    // Apache's rule and ours, where they differ: non-strict binary is recognised, since Finagle's clients may send it.
    let expected = [
        ("theader-detect-framed-binary", Detected::FramedBinary),
        ("theader-detect-unframed-binary", Detected::UnframedBinary),
        ("theader-detect-framed-compact", Detected::FramedCompact),
        ("theader-detect-unframed-compact", Detected::UnframedCompact),
        ("theader-detect-nonstrict", Detected::FramedBinary),
        ("theader-header-larger-than-frame", Detected::THeader),
        ("theader-unknown-transform", Detected::THeader),
        // Its length is refused by the session, and counted as what it is.
        ("theader-frame-too-big", Detected::THeader),
        ("theader-frame-negative", Detected::Unknown("negative frame length")),
        ("theader-frame-too-small", Detected::THeader),
        ("theader-unknown-info", Detected::THeader),
    ];
    let vectors = named("malformed_and_edge", &["theader-"]);
    let ours: Vec<_> = vectors.iter().map(|vector| (name(vector), detected(&bytes_of(vector)))).collect();
    assert_eq!(ours, expected);
    let golden = named("golden", &["theader-"]);
    assert!(golden.iter().all(|vector| detected(&bytes_of(vector)) == Detected::THeader));
    assert!(golden.len() >= 5);
}

#[test]
fn thrift_that_reads_as_mux() {
    let vectors = named("malformed_and_edge", &["dec-thrift-"]);
    for vector in &vectors {
        let expected = match name(vector) {
            // Finagle's decoder takes the compact ONEWAY for a piece of a Mux message; we look for Thrift first.
            name if name.contains("compact") => Detected::FramedCompact,
            _ => Detected::FramedBinary,
        };
        assert_eq!(detected(&framed(&bytes_of(vector))), expected, "{}", name(vector));
    }
    assert_eq!(vectors.len(), 5);
}

/// Recorded first frames of connections and what we take them for. Not as Finagle: it takes compact ONEWAY and THeader
/// for a piece of a Mux message, a Thrift reply and a Mux error that is not the marker for Mux, and anything it cannot
/// read as Mux for Thrift, to close it later; we name the first two and refuse the others at once.
const FIRST_FRAMES: &[(&str, Detected)] = &[
    ("live-probe-good-rerr-type", Detected::Mux),
    ("live-probe-bad-rerr-type", Detected::Mux),
    ("live-probe-wrong-tag", Detected::Unknown("a Mux error that is not the marker")),
    ("live-probe-wrong-text", Detected::Unknown("a Mux error that is not the marker")),
    ("live-probe-then-dispatch", Detected::Mux),
    ("live-probe-twice", Detected::Mux),
    ("live-first-frame-is-fragment", Detected::Mux),
    ("live-plain-framed-call", Detected::FramedBinary),
    ("live-plain-framed-two-calls", Detected::FramedBinary),
    ("live-plain-oneway-first", Detected::FramedBinary),
    ("live-plain-nonstrict-call", Detected::FramedBinary),
    ("live-plain-reply-type-first", Detected::Unknown("a Thrift reply cannot open a connection")),
    ("live-plain-exception-type-first", Detected::Unknown("a Thrift reply cannot open a connection")),
    ("live-plain-fail", Detected::FramedBinary),
    ("live-plain-nack", Detected::FramedBinary),
    ("live-plain-rejected", Detected::FramedBinary),
    ("live-plain-nonretryable", Detected::FramedBinary),
    ("live-plain-texc", Detected::FramedBinary),
    ("live-plain-garbage-2", Detected::Unknown("no plausible method name length")),
    ("live-plain-empty-frame-first", Detected::Unknown("first frame too short for any message")),
    ("live-plain-pipelined-order", Detected::FramedBinary),
    ("live-plain-then-mux", Detected::FramedBinary),
    ("live-plain-never-then-close", Detected::FramedBinary),
    ("live-upgrade", Detected::FramedBinary),
    ("live-upgrade-oneway-type", Detected::FramedBinary),
    ("live-upgrade-as-second-frame", Detected::FramedBinary),
    ("live-upgrade-v2", Detected::FramedBinary),
    ("live-first-frame-mux-unknown-type", Detected::Unknown("no known first message")),
    ("live-first-frame-short-tdiscarded", Detected::Unknown("a Mux message of the wrong size")),
    ("live-first-frame-truncated-tdispatch", Detected::Mux),
    ("live-first-frame-rerr-65537-good-type", Detected::FramedBinary),
    ("live-first-frame-rerr-65537-bad-type", Detected::Unknown("a Mux error that is not the marker")),
    ("live-first-frame-compact-on-binary-server", Detected::FramedCompact),
    ("live-compact-call", Detected::FramedCompact),
    ("live-compact-fail", Detected::FramedCompact),
    ("live-compact-upgrade", Detected::FramedCompact),
    ("live-binary-call-on-compact-server", Detected::FramedBinary),
    ("live-plain-garbage", Detected::Unknown("no known first message")),
    ("live-plain-http-unframed", Detected::Http),
    ("live-first-frame-tping", Detected::Mux),
    ("live-first-frame-theader-magic", Detected::THeader),
    ("live-compact-oneway-first", Detected::FramedCompact),
    ("live-plain-unframed-thrift", Detected::UnframedBinary),
];

#[test]
fn first_frames_that_servers_were_sent() {
    let prefixes =
        ["live-first-frame-", "live-plain-", "live-compact-", "live-upgrade", "live-binary-", "live-probe-"];
    let vectors = named("malformed_and_edge", &prefixes);
    for vector in &vectors {
        let name = name(vector);
        let first = &vector["send"][0];
        let bytes = if first["frame"].is_null() { hex(&first["raw"]) } else { framed(&hex(&first["frame"])) };
        let ours = detected(&bytes);
        let listed = FIRST_FRAMES.iter().find(|(listed, _)| *listed == name);
        let (_, expected) = listed.unwrap_or_else(|| panic!("{name}: {ours:?}"));
        assert_eq!(ours, *expected, "{name}");
    }
    assert_eq!((vectors.len(), FIRST_FRAMES.len()), (43, 43));
}

#[test]
fn other_protocols() {
    assert_eq!(detected(&unhex("160301020001")), Detected::Tls);
    for request in
        [&b"GET / HTTP/1.1\r\n"[..], b"PUT /x", b"POST /", b"HEAD /", b"PRI * HTTP/2.0", b"CONNECT a:1"]
    {
        assert_eq!(detected(request), Detected::Http, "{request:?}");
    }
}

#[test]
fn the_frame_limit_is_the_listeners() {
    let call = framed(&unhex("80010001000000016100000001000000"));
    let dispatch = framed(&unhex("0200000200000000000080010001"));
    let too_long = Detected::Unknown("frame longer than the limit");
    // Beyond it, only who speaks Thrift can be told so.
    assert_eq!([16, 15].map(|max| detect_within(&call, max)), [Detected::FramedBinary; 2]);
    assert_eq!([14, 13].map(|max| detect_within(&dispatch, max)), [Detected::Mux, too_long]);
    for (first, spoken) in [
        ("00fa0000020000020000", Detected::Mux),
        ("00fa0001020000020000", too_long),
        ("00fa000180010001", Detected::FramedBinary),
        ("00fa000180010002", too_long),
        ("00fa000182210108", Detected::FramedCompact),
        ("00fa00010fff0000", Detected::THeader),
        ("00fa000100000004", Detected::FramedBinary),
        ("00fa0001deadbeef", too_long),
    ] {
        assert_eq!(detect(&unhex(first)), spoken, "{first}");
    }
}

#[test]
fn a_piece_of_a_dispatch_may_come_first() {
    assert_eq!(detected(&framed(&unhex("028000020000"))), Detected::Mux);
    assert_eq!(detected(&framed(&unhex("01800002"))), Detected::Mux);
    assert!(matches!(detected(&framed(&unhex("418000020000"))), Detected::Unknown(_)));
}

#[test]
fn only_the_exact_marker_is_the_marker() {
    let marker = [&unhex("7f000001")[..], b"tinit check"].concat();
    assert_eq!(detected(&framed(&marker)), Detected::Mux);
    let new_number = [&unhex("80000001")[..], b"tinit check"].concat();
    assert_eq!(detected(&framed(&new_number)), Detected::Mux);
    for other in [
        [&unhex("7f000002")[..], b"tinit check"].concat(),
        [&unhex("7f000001")[..], b"tinit chock"].concat(),
        [&unhex("7f000001")[..], b"tinit check "].concat(),
        unhex("7f000001"),
    ] {
        assert_eq!(detected(&framed(&other)), Detected::Unknown("a Mux error that is not the marker"));
    }
}

proptest! {
    #[test]
    fn any_bytes_get_a_steady_answer(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let answer = detected(&bytes);
        if bytes.len() >= MOST_BYTES {
            prop_assert!(!matches!(answer, Detected::NeedMore(_)));
        }
    }

    #[test]
    fn small_frames_get_a_steady_answer(len in 0u32..40, bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        detected(&[&len.to_be_bytes()[..], &bytes].concat());
    }
}
