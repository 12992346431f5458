//! What each kind of caller is told, and what its connection lives through (thriftmux spec, sections 8, 15 and 16).

use super::*;

/// Sends bytes and reads replies (without frames: all that comes) until the input's end.
async fn replies(framing: Framing, params: ServerParams, input: &[u8]) -> (Vec<Bytes>, Vec<&'static str>) {
    let mut house = house(framing, params);
    house.send(input).await;
    let mut rest = house.rest().await;
    let mut replies = Vec::new();
    while !rest.is_empty() {
        let reply = if framing == Framing::Buffered {
            let (_, len) = muxgate_wire::thrift::Walk::new(1 << 20).advance(&rest).expect("a message");
            rest.split_to(len)
        } else {
            let head = rest.split_to(4);
            rest.split_to(u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize)
        };
        replies.push(reply);
    }
    (replies, house.ends().await)
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_exception_with_the_calls_own_method_and_number() {
    for form in [Form::Strict, Form::Old, Form::Compact] {
        let calls = ["boom", "missing", "fine"].map(|name| message(form, Kind::Call, name, -9));
        for framing in [Framing::Framed, Framing::Buffered] {
            let input: Vec<_> = match framing {
                Framing::Framed => calls.iter().map(|call| framed(call)).collect(),
                _ => calls.to_vec(),
            };
            let (replies, counts) = replies(framing, params(), &input.concat()).await;
            let read: Vec<_> = replies.iter().map(read).collect();
            let unknown = refused("missing", -9, Type::UnknownMethod);
            assert_eq!(read, [refused("boom", -9, Type::InternalError), unknown, replied("fine", -9)]);
            assert!(replies.iter().all(|reply| peek(reply).expect("a message").form() == form));
            assert!(counts.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_no_calls_are_refused_and_the_next_is_answered() {
    for form in [Form::Strict, Form::Old, Form::Compact] {
        for kind in [Kind::Reply, Kind::Exception] {
            for framing in [Framing::Framed, Framing::Buffered] {
                let all = [message(form, kind, "x", 5), message(form, Kind::Call, "fine", 6)];
                let input: Vec<_> = match framing {
                    Framing::Framed => all.iter().map(|one| framed(one)).collect(),
                    _ => all.to_vec(),
                };
                let (replies, counts) = replies(framing, params(), &input.concat()).await;
                let read: Vec<_> = replies.iter().map(read).collect();
                assert_eq!(read, [refused("x", 5, Type::InvalidMessageType), replied("fine", 6)]);
                assert_eq!(counts, ["no_call"]);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn types_that_are_not_assigned_are_refused() {
    for code in [0, 5, 7] {
        let mut strict = BytesMut::from(&call("x", 5)[..]);
        strict[3] = code;
        let mut old = BytesMut::from(&message(Form::Old, Kind::Call, "x", 5)[..]);
        old[5] = code;
        let mut compact = BytesMut::from(&message(Form::Compact, Kind::Call, "x", 5)[..]);
        compact[1] = code << 5 | 1;
        for odd in [strict, old, compact] {
            let input = [framed(&odd), framed(&call("fine", 6))].concat();
            let (replies, counts) = replies(Framing::Framed, params(), &input).await;
            let read: Vec<_> = replies.iter().map(read).collect();
            assert_eq!(read, [refused("x", 5, Type::InvalidMessageType), replied("fine", 6)]);
            assert_eq!(counts, ["no_call"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_protocol_may_be_refused() {
    let rules = Rules::new(Some(Protocol::Compact), []);
    let input =
        [call("x", 5), message(Form::Old, Kind::Oneway, "y", 6), message(Form::Compact, Kind::Call, "z", 7)];
    let params = ServerParams { rules, ..params() };
    let (replies, counts) = replies(Framing::Framed, params, &input.map(|one| framed(&one)).concat()).await;
    let read: Vec<_> = replies.iter().map(read).collect();
    assert_eq!(read, [refused("x", 5, Type::InvalidProtocol), replied("z", 7)]);
    assert_eq!(counts, ["wrong_protocol"; 2]);
}

#[tokio::test(start_paused = true)]
async fn garbage_after_a_call_costs_the_connection_but_not_the_call() {
    let first = call("sleep", 1);
    for (framing, garbage, cause) in [
        (Framing::Framed, framed(b"garbage"), "thrift"),
        (Framing::Framed, framed(b""), "thrift"),
        (Framing::Framed, framed(b"\x80\x01\0\x01\0\0"), "thrift"),
        (Framing::Framed, framed(&[0xff; 20]), "thrift"),
        (Framing::Framed, Bytes::from_static(b"\xff\xff\xff\xff"), "negative_length"),
        (Framing::Framed, Bytes::from_static(b"\x7f\xff\xff\xff"), "frame_too_long"),
        (Framing::Framed, framed(b"\x80\x01\0\x01\0\0\x04\x01name"), "method_name"),
        (Framing::Framed, framed(b"\x80\x01\0\x01\xff\xff\xff\xff"), "thrift"),
        (Framing::Framed, framed(b"\x82\x21\xff\xff\xff\xff\xff\xff\x01\x01x\0"), "thrift"),
        (Framing::Buffered, Bytes::from_static(b"garbage"), "thrift"),
        (Framing::Buffered, Bytes::from_static(b"\x80\x01\0\x01\xff\xff\xff\xff"), "thrift"),
    ] {
        let before = if framing == Framing::Framed { framed(&first) } else { first.clone() };
        let input = [&before[..], &garbage, &before].concat();
        let (replies, counts) = replies(framing, params(), &input).await;
        let read: Vec<_> = replies.iter().map(read).collect();
        assert_eq!(read, [replied("sleep", 1)], "{garbage:?}");
        assert_eq!(counts, [cause], "{garbage:?}");
    }
}

/// Arguments that no walk gets to the end of, and why: the rows of section 16.
const BROKEN: [(Form, &[u8], &str); 10] = [
    (Form::Strict, b"\x0b\0\x01\xff\xff\xff\xff", "thrift"),
    (Form::Strict, b"\x0b\0\x01\x7f\xff\xff\xff", "message_too_long"),
    (Form::Strict, b"\x0f\0\x01\x08\x10\0\0\0", "message_too_long"),
    (Form::Strict, b"\x0f\0\x01\x0b\xff\xff\xff\xff", "thrift"),
    (Form::Strict, b"\x07\0\x01\0", "thrift"),
    (Form::Strict, b"\x11\0\x01\0", "thrift"),
    (Form::Old, b"\x0d\0\x01\x0b\x0b\x7f\xff\xff\xff", "message_too_long"),
    (Form::Compact, b"\x18\xff\xff\xff\xff\x0f", "thrift"),
    (Form::Compact, b"\x1e\0", "thrift"),
    (Form::Compact, b"\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "thrift"),
];

#[tokio::test(start_paused = true)]
async fn without_frames_broken_arguments_are_answered_and_end_the_connection() {
    let deep = [&b"\x0c\0\x01"[..]; 70].concat();
    let cases = BROKEN.into_iter().chain([(Form::Strict, &deep[..], "nesting")]);
    for (form, arguments, cause) in cases {
        let mut broken = BytesMut::new();
        write_head(form, Kind::Call, b"x", 5, &mut broken);
        broken.put_slice(arguments);
        let input = [&message(form, Kind::Call, "sleep", 4)[..], &broken].concat();
        let (replies, counts) = replies(Framing::Buffered, params(), &input).await;
        let read: Vec<_> = replies.iter().map(read).collect();
        assert_eq!(read, [replied("sleep", 4), refused("x", 5, Type::ProtocolError)], "{arguments:?}");
        assert_eq!(counts, [cause], "{arguments:?}");
    }
}

/// In a frame nothing behind the head is looked at: what is wrong there is the service's to say.
#[tokio::test(start_paused = true)]
async fn with_frames_arguments_are_passed_on_as_they_are() {
    for (form, arguments, _) in BROKEN {
        let mut broken = BytesMut::new();
        write_head(form, Kind::Call, b"x", 5, &mut broken);
        broken.put_slice(arguments);
        let (replies, counts) = replies(Framing::Framed, params(), &framed(&broken)).await;
        assert_eq!(replies.iter().map(read).collect::<Vec<_>>(), [replied("x", 5)]);
        assert!(counts.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_over_the_limit_is_answered_and_ends_the_connection() {
    let mut long = BytesMut::from(&call("x", 5)[..]);
    long.truncate(long.len() - 1);
    long.put_slice(b"\x0b\0\x02\0\0\x20\0");
    long.put_bytes(b'x', 8 << 10);
    long.put_u8(0);
    let params = ServerParams { max_frame: 4 << 10, ..params() };
    for (framing, cause) in [(Framing::Framed, "frame_too_long"), (Framing::Buffered, "message_too_long")] {
        let input = if framing == Framing::Framed { framed(&long) } else { long.clone().freeze() };
        let (replies, counts) = replies(framing, params.clone(), &input).await;
        assert_eq!(replies.iter().map(read).collect::<Vec<_>>(), [refused("x", 5, Type::ProtocolError)]);
        assert_eq!(counts, [cause]);
        assert!(holds(&replies[0], "4096"), "the limit is named: {replies:?}");
    }
}

fn holds(reply: &[u8], text: &str) -> bool {
    reply.windows(text.len()).any(|part| part == text.as_bytes())
}

/// A THeader frame with sequence id 77.
fn header_frame(section: &[u8; 4], payload: &[u8]) -> Bytes {
    framed(&[&b"\x0f\xff\0\0\0\0\0\x4d\0\x01"[..], section, payload].concat())
}

/// Of THeader's replies: the sequence id of the header, and the message.
fn inside(replies: Vec<Bytes>) -> Vec<(i32, (Kind, String, i32, Option<Type>))> {
    replies
        .into_iter()
        .map(|reply| muxgate_wire::thrift::theader::decode(reply, 1 << 20).expect("a THeader frame"))
        .map(|(header, reply)| (header.seqid, read(&reply)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_theader_frame_over_the_limit_is_answered_by_what_is_known_of_it() {
    let mut long = BytesMut::from(&header_frame(b"\0\0\0\0", &call("x", 5))[..]);
    long[..4].copy_from_slice(&5000_u32.to_be_bytes());
    let fine = header_frame(b"\0\0\0\0", &call("fine", 6));
    let params = ServerParams { max_frame: 4 << 10, ..params() };
    let mut oneway = long.clone();
    oneway[4 + 14 + 3] = Kind::Oneway.code();
    for (frame, known) in [
        (&long[..], Some((77, refused("x", 5, Type::ProtocolError)))),
        (&long[..20], Some((77, refused("", 77, Type::ProtocolError)))),
        (&long[..14], Some((77, refused("", 77, Type::ProtocolError)))),
        (&long[..10], None),
        (&oneway, None),
    ] {
        let (replies, counts) = replies(Framing::Header, params.clone(), &[&fine[..], frame].concat()).await;
        assert_eq!(counts, ["frame_too_long"]);
        let wanted: Vec<_> = [Some((77, replied("fine", 6))), known].into_iter().flatten().collect();
        assert_eq!(inside(replies), wanted, "{frame:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_theader_message_that_inflates_beyond_the_limit_fails_alone() {
    use muxgate_wire::thrift::theader;
    let header =
        theader::Header { flags: 0, seqid: 77, protocol: Protocol::Binary, zlib: true, info: Vec::new() };
    let large = [&call("x", 5)[..], &[0; 8 << 10]].concat();
    let (head, packed) = theader::encode(&header, large.into()).expect("a frame");
    let bomb = framed(&[&head[..], &packed].concat());
    let params = ServerParams { max_frame: 4 << 10, ..params() };
    let input = [bomb, header_frame(b"\0\0\0\0", &call("fine", 6))].concat();
    let (replies, counts) = replies(Framing::Header, params, &input).await;
    assert_eq!(counts, ["message_too_long"]);
    assert_eq!(inside(replies), [(77, refused("", 77, Type::ProtocolError)), (77, replied("fine", 6))]);
}

#[tokio::test(start_paused = true)]
async fn without_frames_the_nesting_that_is_allowed_is_named() {
    let mut deep = BytesMut::from(&call("x", 5)[..]);
    deep.truncate(deep.len() - 1);
    deep.put_slice(&[&b"\x0c\0\x02"[..]; 4].concat());
    let params = ServerParams { max_nesting: 3, ..params() };
    let (replies, counts) = replies(Framing::Buffered, params, &deep).await;
    assert_eq!(counts, ["nesting"]);
    assert!(holds(&replies[0], "deeper than 3 levels"), "{replies:?}");
}

/// What follows a message of a type that is not assigned cannot be known: it is answered, and ends the connection.
#[tokio::test(start_paused = true)]
async fn without_frames_types_that_are_not_assigned_are_refused() {
    let mut odd = BytesMut::from(&call("x", 5)[..]);
    odd[3] = 9;
    let (replies, counts) =
        replies(Framing::Buffered, params(), &[&call("fine", 4)[..], &odd].concat()).await;
    let read: Vec<_> = replies.iter().map(read).collect();
    assert_eq!(read, [replied("fine", 4), refused("x", 5, Type::InvalidMessageType)]);
    assert_eq!(counts, ["no_call"]);
}

#[tokio::test(start_paused = true)]
async fn theader_frames_that_cannot_be_read_are_answered_by_their_number() {
    let frame = header_frame;
    let fine = call("fine", 6);
    for (bad, kind, name, seqid) in [
        (frame(b"\0\x01\x03\0", &fine), Type::InvalidTransform, "", 77),
        (frame(b"\0\x01\x01\0", &fine), Type::InvalidTransform, "", 77),
        (frame(b"\x01\0\0\0", &fine), Type::InvalidProtocol, "", 77),
        (frame(b"\x02\0\0\0", &fine), Type::ProtocolError, "", 77),
        (frame(b"\0\0\0\0", b"junk"), Type::ProtocolError, "", 77),
        (frame(b"\0\0\x01\x7f", &fine), Type::ProtocolError, "", 77),
        (frame(b"\0\0\0\0", &message(Form::Strict, Kind::Reply, "x", 9)), Type::InvalidMessageType, "x", 9),
    ] {
        let input = [bad.clone(), frame(b"\0\0\0\0", &fine)].concat();
        let (replies, counts) = replies(Framing::Header, params(), &input).await;
        assert_eq!(counts.len(), 1, "{bad:?}");
        assert_eq!(inside(replies), [(77, refused(name, seqid, kind)), (77, replied("fine", 6))], "{bad:?}");
    }
    // A frame that is none of THeader's: nobody knows how to answer.
    let input = [frame(b"\0\0\0\0", &fine), framed(&fine), frame(b"\0\0\0\0", &fine)].concat();
    let (replies, counts) = replies(Framing::Header, params(), &input).await;
    assert_eq!((replies.len(), counts), (1, vec!["theader"]));
}

#[tokio::test(start_paused = true)]
async fn names_in_info_that_cannot_be_read_fail_their_call_alone() {
    let bad = framed(
        &[&b"\x0f\xff\0\0\0\0\0\x4d\0\x04"[..], b"\0\0\x01\x01\x07l5d-dst\x03x/y", &call("x", 5)].concat(),
    );
    let (replies, _) = replies(Framing::Header, params(), &bad).await;
    let (_, reply) =
        muxgate_wire::thrift::theader::decode(replies[0].clone(), 1 << 20).expect("a THeader frame");
    assert_eq!(read(&reply), refused("x", 5, Type::ProtocolError));
}
