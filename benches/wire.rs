//! Bytes to meaning and back: what every call pays before and after all else.

use bytes::{Buf, Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput};
use muxgate_rpc::bridge::{read_contexts, write_contexts};
use muxgate_wire::detect::{Detected, detect};
use muxgate_wire::mux::context::{
    CLIENT_ID, ContextWriter, DEADLINE, Deadline, RETRIES, TRACE, TraceContext,
};
use muxgate_wire::mux::frame::{Tag, kind, next_frame};
use muxgate_wire::mux::limits::MAX_FRAME;
use muxgate_wire::mux::message::{Rdispatch, Status, Tdispatch};
use muxgate_wire::mux::outbox::{EncodeError, Outbox};
use muxgate_wire::pairs::Pairs;
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::translate;
use muxgate_wire::thrift::ttwitter::{RequestHeader, ResponseHeader};
use muxgate_wire::thrift::{
    Cursor, Entries, Items, Kind, MAX_MESSAGE, Protocol, Type, Write, binary, classify, compact, peek,
    write_head,
};
use std::hint::black_box;
use tokio::time::Instant;

/// Bytes that one read brings at most.
const READ: usize = 64 << 10;
/// Bytes of the argument.
const ARGUMENT: usize = 64;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    frames(&mut criterion);
    outbox(&mut criterion);
    contexts(&mut criterion);
    thrift(&mut criterion);
    ttwitter(&mut criterion);
    translate(&mut criterion);
    criterion.final_summary();
}

/// A call or reply of `echo`; `field` is 1 in a call, 0 in a reply.
fn message(protocol: Protocol, kind: Kind, field: u8) -> Bytes {
    let mut out = BytesMut::new();
    write_head(protocol, kind, b"echo", 7, &mut out);
    match (protocol, field) {
        (Protocol::Binary, _) => out.extend_from_slice(&[0x0b, 0, field, 0, 0, 0, ARGUMENT as u8]),
        // The id of a field is written as the step from the last one, and a step of 0 in full.
        (Protocol::Compact, 0) => out.extend_from_slice(&[0x08, 0, ARGUMENT as u8]),
        (Protocol::Compact, _) => out.extend_from_slice(&[field << 4 | 0x08, ARGUMENT as u8]),
    }
    out.extend_from_slice(&[b'x'; ARGUMENT]);
    out.extend_from_slice(&[0]);
    out.freeze()
}

fn trace() -> TraceContext {
    TraceContext { span_id: 1, parent_id: 2, trace_id: 3, trace_id_high: Some(4), flags: 6 }
}

fn deadline() -> Deadline {
    Deadline { timestamp: 1_700_000_000_000_000_000, deadline: 4_000_000_000_000_000_000 }
}

/// What a Finagle service sends with a call, and one pair that nobody here knows.
fn pairs() -> Pairs {
    let (trace, len) = trace().encode();
    Pairs::build([
        (TRACE, &trace[..len]),
        (DEADLINE, &deadline().encode()),
        (RETRIES, &0i32.to_be_bytes()),
        (CLIENT_ID, b"web.prod"),
        (b"com.example.Tenant", b"blue"),
    ])
    .expect("short pairs")
}

fn tdispatch() -> Tdispatch {
    Tdispatch {
        contexts: pairs(),
        dst: Bytes::from_static(b"/s/users"),
        dtab: Pairs::build([(&b"/s"[..], &b"/srv/staging"[..])]).expect("short pairs"),
        body: message(Protocol::Binary, Kind::Call, 1),
    }
}

fn rdispatch() -> Rdispatch {
    Rdispatch {
        status: Status::Ok,
        contexts: Pairs::default(),
        body: message(Protocol::Binary, Kind::Reply, 0),
    }
}

/// As many frames as one read brings, and their number.
fn full_read(kind: i8, body: &[u8]) -> (Vec<u8>, u64) {
    let mut outbox = Outbox::default();
    let mut count = 0;
    loop {
        let tag = Tag::new(2 + count as u32).expect("a small tag");
        let pushed = outbox.push_whole(kind, tag, Bytes::copy_from_slice(body), |_| {});
        pushed.expect("a short message");
        if outbox.remaining() > READ {
            break;
        }
        count += 1;
    }
    let mut read = outbox.copy_to_bytes(outbox.remaining()).to_vec();
    read.truncate(READ);
    (read, count)
}

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire/decode_64k");
    let mut body = BytesMut::new();
    tdispatch().encode(&mut body);
    let (read, count) = full_read(kind::TDISPATCH, &body);
    group.throughput(Throughput::Elements(count));
    group.bench_function("tdispatch", |bencher| {
        let setup = || BytesMut::from(&read[..]);
        let decode = |mut read: BytesMut| {
            let mut seen = 0;
            while let Ok(Some(frame)) = next_frame(&mut read, MAX_FRAME) {
                black_box(Tdispatch::decode(frame.body).expect("a Tdispatch"));
                seen += 1;
            }
            assert_eq!(seen, count);
            read
        };
        bencher.iter_batched(setup, decode, BatchSize::SmallInput);
    });
    body.clear();
    rdispatch().encode(&mut body);
    let (read, count) = full_read(kind::RDISPATCH, &body);
    group.throughput(Throughput::Elements(count));
    group.bench_function("rdispatch", |bencher| {
        let setup = || BytesMut::from(&read[..]);
        let decode = |mut read: BytesMut| {
            let mut seen = 0;
            while let Ok(Some(frame)) = next_frame(&mut read, MAX_FRAME) {
                black_box(Rdispatch::decode(frame.body).expect("an Rdispatch"));
                seen += 1;
            }
            assert_eq!(seen, count);
            read
        };
        bencher.iter_batched(setup, decode, BatchSize::SmallInput);
    });
}

/// Tdispatches appended to an outbox, which is emptied as a socket would.
fn outbox(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire/encode");
    let contexts = read_contexts(&pairs(), Instant::now());
    for (name, body) in [
        ("tdispatch_64", message(Protocol::Binary, Kind::Call, 1)),
        ("tdispatch_16k", Bytes::from(vec![b'x'; 16 << 10])),
    ] {
        group.throughput(Throughput::Elements(1));
        group.bench_function(name, |bencher| {
            let mut outbox = Outbox::default();
            bencher.iter(|| {
                let head = |out: &mut BytesMut| -> Result<(), EncodeError> {
                    let mut writer = ContextWriter::new(out);
                    write_contexts(&contexts, 0, &mut writer);
                    writer.finish()?;
                    out.extend_from_slice(b"\0\x08/s/users\0\0");
                    Ok(())
                };
                outbox.push(kind::TDISPATCH, Tag::FIRST, body.clone(), head).expect("a short message");
                while outbox.has_remaining() {
                    let chunk = black_box(outbox.chunk()).len();
                    outbox.advance(chunk);
                }
            });
        });
    }
}

fn contexts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire/contexts");
    let pairs = pairs();
    let now = Instant::now();
    group.bench_function("read", |bencher| bencher.iter(|| read_contexts(black_box(&pairs), now)));
    let read = read_contexts(&pairs, now);
    group.bench_function("write", |bencher| {
        let mut out = BytesMut::with_capacity(1024);
        bencher.iter(|| {
            out.clear();
            let mut writer = ContextWriter::new(&mut out);
            write_contexts(black_box(&read), 0, &mut writer);
            writer.finish().expect("short contexts");
            black_box(out.len())
        });
    });
}

fn thrift(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire/thrift");
    for (name, protocol) in [("binary", Protocol::Binary), ("compact", Protocol::Compact)] {
        let call = message(protocol, Kind::Call, 1);
        assert_eq!(peek(&call).map(|head| head.name_in(&call).to_vec()).as_deref(), Ok(&b"echo"[..]));
        group.bench_function(format!("peek_{name}"), |bencher| bencher.iter(|| peek(black_box(&call))));
        let reply = message(protocol, Kind::Reply, 0);
        assert_eq!(classify(&reply), Ok(muxgate_wire::thrift::ReplyClass::Result));
        group.bench_function(format!("classify_{name}"), |bencher| {
            bencher.iter(|| classify(black_box(&reply)));
        });
        let mut first = BytesMut::from(&(call.len() as u32).to_be_bytes()[..]);
        first.extend_from_slice(&call);
        assert!(matches!(detect(&first), Detected::FramedBinary | Detected::FramedCompact));
        group.bench_function(format!("detect_and_peek_{name}"), |bencher| {
            bencher.iter(|| {
                let first = black_box(&first[..]);
                (detect(first), peek(&first[4..]))
            });
        });
    }
}

fn ttwitter(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire/ttwitter");
    let header = RequestHeader::from_mux(&pairs(), &Bytes::from_static(b"/s/users"), &Pairs::default());
    for (name, protocol) in [("binary", Protocol::Binary), ("compact", Protocol::Compact)] {
        let mut frame = BytesMut::new();
        header.encode(protocol, &mut frame);
        let frame = frame.freeze();
        assert!(RequestHeader::decode(protocol, &frame).is_ok());
        group.bench_function(format!("read_request_{name}"), |bencher| {
            bencher.iter(|| RequestHeader::decode(protocol, black_box(&frame)));
        });
        group.bench_function(format!("write_request_{name}"), |bencher| {
            let mut out = BytesMut::with_capacity(1024);
            bencher.iter(|| {
                out.clear();
                black_box(&header).encode(protocol, &mut out);
                black_box(out.len())
            });
        });
    }
    group.bench_function("skip_response", |bencher| {
        bencher.iter(|| ResponseHeader::skip(Protocol::Binary, black_box(&[0, 0x80, 1])));
    });
}

/// One user: a name, numbers, flags, a few tags. About 64 bytes.
fn write_user(out: &mut impl Write, id: i64) {
    out.field(0, 1, Type::I64);
    out.i64(id);
    out.field(1, 2, Type::String);
    out.string(b"somebody@example.com");
    out.bool_field(2, 3, true);
    out.field(3, 4, Type::I32);
    out.i32(-70_000);
    out.field(4, 5, Type::Double);
    out.double(0x3ff8_0000_0000_0000);
    out.field(5, 6, Type::List);
    out.items(Items { ty: Type::I16, count: 3 });
    for tag in [1, 300, -5] {
        out.i16(tag);
    }
    out.stop();
}

/// A call with one user; or with a map of many, about 16 KiB.
fn write_users(out: &mut impl Write, many: Option<u32>) {
    match many {
        None => write_user(out, 1 << 40),
        Some(count) => {
            out.field(0, 1, Type::Map);
            out.entries(Entries { key: Type::I32, value: Type::Struct, count });
            for id in 0..count {
                out.i32(id as i32);
                write_user(out, i64::from(id) << 20);
            }
            out.stop();
        }
    }
}

/// What a message costs that has to be in the other protocol, beside what only walking over it costs.
fn translate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire/translate");
    for (size, many) in [("64", None), ("16k", Some(220))] {
        for (name, from, to) in [
            ("binary", Protocol::Binary, Protocol::Compact),
            ("compact", Protocol::Compact, Protocol::Binary),
        ] {
            let mut call = BytesMut::new();
            write_head(from, Kind::Call, b"echo", 7, &mut call);
            match from {
                Protocol::Binary => write_users(&mut binary::Writer(&mut call), many),
                Protocol::Compact => write_users(&mut compact::Writer(&mut call), many),
            }
            let head = peek(&call).expect("a head");
            group.throughput(Throughput::Bytes(call.len() as u64));
            group.bench_function(format!("skip_{name}_{size}"), |bencher| {
                bencher.iter(|| {
                    let mut cursor = Cursor::whole(black_box(&call));
                    cursor.seek(head.body_at);
                    skip_struct(from, &mut cursor).expect("a struct");
                    cursor.at()
                });
            });
            group.bench_function(format!("from_{name}_{size}"), |bencher| {
                bencher.iter(|| {
                    translate::message(black_box(&call), &head, to.into(), MAX_MESSAGE).expect("a message")
                });
            });
        }
    }
}
