//! No input makes a decoder hold more than a small multiple of its length and what it has a bound for: the most bytes
//! that are allocated at any one time, over all malformed vectors and all that the fuzzer has kept.

use bytes::{Bytes, BytesMut};
use muxgate_properties::TARGETS;
use muxgate_wire::detect::detect;
use muxgate_wire::mux::client::{ClientConfig, ClientSession};
use muxgate_wire::mux::context::{MuxFailure, TraceContext, decode_headers};
use muxgate_wire::mux::fragment::Reassembly;
use muxgate_wire::mux::frame::{Frame, Tag, next_frame};
use muxgate_wire::mux::limits::{MAX_IN_FLIGHT, MAX_INIT_HEADERS, MAX_TEXT};
use muxgate_wire::mux::lz4::next_block;
use muxgate_wire::mux::message::Message;
use muxgate_wire::mux::server::{ServerConfig, ServerSession};
use muxgate_wire::name::{Dtab, NameTree, Path, Prefix};
use muxgate_wire::pairs::Pairs;
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::ttwitter::{RequestHeader, ResponseHeader};
use muxgate_wire::thrift::{
    Cursor, Form, Kind, Protocol, Walk, classify, framing, peek, peek_partial, theader, translate, write_head,
};
use serde_json::Value;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

/// Limit for what may come of an input, where a decoder asks for one.
const LIMIT: usize = 1 << 20;
/// What a count of shared owners, a node of a table, or a text about an error takes; anyone may have a few.
const SMALL: usize = 1024;
/// State of the zlib decoder: its window, and its tables.
const ZLIB: usize = 64 << 10;
/// A server's table of tags, if somebody begins with the largest that it keeps densely.
const TAGS: usize = MAX_IN_FLIGHT * 32;
/// The headers of a Tinit, in a list that has grown to the most there may be.
const INIT: usize = MAX_INIT_HEADERS * 2 * size_of::<(Bytes, Bytes)>();
/// What a session writes before it has read anything, and room for its first answers.
const SESSION: usize = 16 << 10;

/// A decoder by name; how many bytes it may hold for each byte of input, and how many at any rate.
struct Decoder {
    name: &'static str,
    times: usize,
    plus: usize,
    run: fn(Bytes),
}

const fn decoder(name: &'static str, times: usize, plus: usize, run: fn(Bytes)) -> Decoder {
    Decoder { name, times, plus, run }
}

const DECODERS: &[Decoder] = &[
    decoder("detect", 0, 0, |input| {
        black_box(detect(&input));
    }),
    decoder("mux frames", 0, SMALL, frames),
    decoder("mux messages", 0, INIT, messages),
    decoder("mux pieces", 2, 64 << 10, pieces),
    decoder("mux server session", 4, TAGS + SESSION, server),
    decoder("mux client session", 4, SESSION + MAX_TEXT, client),
    decoder("contexts", 0, SMALL, contexts),
    decoder("pairs", 0, SMALL, |mut input| drop(black_box(Pairs::take(u16::MAX, &mut input)))),
    decoder("lz4 blocks", 0, LIMIT, |input| {
        let (mut input, mut out) = (BytesMut::from(input), BytesMut::new());
        while let Ok(muxgate_wire::mux::lz4::Next::Block) = next_block(&mut input, &mut out, LIMIT) {
            out.clear();
        }
    }),
    decoder("thrift heads", 0, 0, |input| {
        let _ = black_box((peek(&input), peek_partial(&input, LIMIT), classify(&input)));
    }),
    decoder("thrift walks", 0, 0, |input| {
        let _ = black_box(Walk::new(LIMIT).advance(&input));
        let _ = black_box(skip_struct(Protocol::Binary, &mut Cursor::whole(&input)));
        let _ = black_box(skip_struct(Protocol::Compact, &mut Cursor::whole(&input)));
    }),
    decoder("thrift frames", 0, SMALL, |input| {
        let mut input = BytesMut::from(input);
        while let Ok(Some(frame)) = framing::next_frame(&mut input, LIMIT) {
            black_box(frame);
        }
    }),
    decoder("ttwitter headers", 8, SMALL, |input| {
        for protocol in [Protocol::Binary, Protocol::Compact] {
            let _ = black_box(RequestHeader::decode(protocol, &input));
            let _ = black_box(ResponseHeader::decode(protocol, &input));
        }
    }),
    // A buffer that grows is there twice for a moment.
    decoder("theader", 1, ZLIB + 2 * LIMIT, |input| drop(black_box(theader::decode(input, LIMIT)))),
    // An i64 of one byte becomes one of eight, and the buffer doubles as it grows.
    decoder("translation", 24, SMALL, translation),
    decoder("paths", 2, SMALL, |input| {
        let _ = black_box((Path::parse(&input), Path::from_bytes(input.clone()), Prefix::parse(&input)));
    }),
    decoder("name trees", 128, SMALL, |input| drop(black_box(NameTree::parse(&input)))),
    decoder("tables of names", 128, SMALL, |input| drop(black_box(Dtab::parse(&input)))),
];

fn each_frame(input: Bytes, mut run: impl FnMut(Frame) -> bool) {
    let mut input = BytesMut::from(input);
    while let Ok(Some(frame)) = next_frame(&mut input, LIMIT as u32) {
        if !run(frame) {
            break;
        }
    }
}

fn frames(input: Bytes) {
    each_frame(input, |frame| {
        black_box(frame);
        true
    });
}

fn messages(input: Bytes) {
    for kind in i8::MIN..=i8::MAX {
        let _ = black_box(Message::decode(kind, input.clone()));
    }
}

fn pieces(input: Bytes) {
    let mut all = Reassembly::default();
    let mut number = 0;
    // Any piece of it on any tag.
    for piece in input.chunks(1 + input.len() / 50) {
        number += 1;
        let _ = all.push(Tag::new(number % 40).expect("a small tag"), piece, Duration::ZERO);
    }
    each_frame(input, |frame| all.push(frame.tag, &frame.body, Duration::ZERO).is_ok());
}

fn server(input: Bytes) {
    let mut session: ServerSession<()> = ServerSession::new(ServerConfig::default());
    each_frame(input, |frame| session.receive(frame, Duration::ZERO).is_ok());
}

fn client(input: Bytes) {
    let config = ClientConfig { handshake: input.len().is_multiple_of(2), ..ClientConfig::default() };
    let mut session: ClientSession<()> = ClientSession::new(config);
    each_frame(input, |frame| session.receive(frame, Duration::ZERO).is_ok());
}

fn contexts(input: Bytes) {
    let _ = black_box((TraceContext::decode(&input), MuxFailure::decode(&input), decode_headers(input)));
}

fn translation(input: Bytes) {
    for form in [Form::Strict, Form::Old, Form::Compact] {
        if let Ok(head) = peek(&input) {
            let _ = black_box(translate::message(&input, &head, form, LIMIT));
        }
    }
}

/// All malformed vectors, and all files of all targets.
fn inputs() -> Vec<(String, Bytes)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("tests/golden/vectors.json")).expect("vectors");
    let vectors: Value = serde_json::from_str(&text).expect("JSON");
    let malformed = vectors["malformed_and_edge"].as_array().expect("a list");
    let hex = |text: &str| -> Option<Vec<u8>> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
    };
    let mut all: Vec<_> = malformed
        .iter()
        .filter_map(|vector| {
            let bytes = hex(vector["hex"].as_str()?.trim_end_matches("..."))?;
            Some((vector["name"].as_str()?.to_owned(), bytes.into()))
        })
        .collect();
    assert!(all.len() > 60, "{} malformed vectors", all.len());
    for (target, _) in TARGETS {
        for entry in fs::read_dir(root.join("fuzz/corpus").join(target)).expect("a corpus") {
            let path = entry.expect("a file").path();
            all.push((path.display().to_string(), fs::read(path).expect("a file").into()));
        }
    }
    all.extend(bombs());
    all
}

/// What claims much and has little, or is little and becomes much.
fn bombs() -> Vec<(String, Bytes)> {
    let body = |form: Form, body: &[u8]| {
        let mut out = BytesMut::new();
        write_head(form, Kind::Call, b"m", 7, &mut out);
        out.extend_from_slice(body);
        out.freeze()
    };
    let zeros = vec![0; 50_000];
    let header = theader::Header { flags: 0, seqid: 7, protocol: Protocol::Binary, zlib: true, info: vec![] };
    let (head, payload) = theader::encode(&header, vec![0; 16 << 20].into()).expect("a frame");
    let names = |text: &str, count: usize| Bytes::from(text.repeat(count));
    let all = [
        (
            "a compact list of 50000 numbers",
            body(Form::Compact, &[&b"\x19\xf6\xd0\x86\x03"[..], &zeros, &[0]].concat()),
        ),
        (
            "a compact list of empty maps",
            body(Form::Compact, &[&b"\x19\xfb\xd0\x86\x03"[..], &zeros, &[0]].concat()),
        ),
        ("a list of 2^31 structs", body(Form::Strict, b"\x0f\0\x01\x0c\x7f\xff\xff\xff")),
        ("a string of 2^31 bytes", body(Form::Strict, b"\x0b\0\x01\x7f\xff\xff\xffx")),
        ("nested structs", body(Form::Compact, &[0x1c; 50_000])),
        ("a zlib bomb", [&head[..], &payload[..]].concat().into()),
        (
            "a block of lz4 that claims 1 MiB",
            Bytes::from_static(b"LZ4Block\x2a\x01\0\0\0\0\0\x10\0\0\0\0\0\0"),
        ),
        ("65535 empty pairs", Bytes::from(zeros)),
        ("many prefixes", names("/a=>/b;", 5000)),
        ("many alternatives", names("/a|", 5000)),
        ("many weights", names("1*/a&", 5000)),
        ("many parentheses", names("(", 50_000)),
    ];
    all.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[test]
fn nobody_holds_more_than_in_proportion() {
    let inputs = inputs();
    let mut wrong = Vec::new();
    for Decoder { name, times, plus, run } in DECODERS {
        let (mut share, mut most) = (0.0f64, 0);
        for (input, bytes) in &inputs {
            let copy = Bytes::copy_from_slice(bytes);
            let len = copy.len();
            let peak = allocation_counter::measure(|| run(copy)).bytes_max as usize;
            if peak > times * len + plus {
                wrong.push(format!("{name} holds {peak} bytes for {len} of {input}"));
            }
            share = share.max(peak.saturating_sub(*plus) as f64 / len.max(1) as f64);
            most = most.max(peak);
        }
        println!("{name}: {share:.1} of {times} times; {most} bytes at most, {plus} at any rate");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
