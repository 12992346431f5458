use super::*;
use crate::headers;
use muxgate_wire::thrift::{Walk, theader, ttwitter};

const FORMS: [Form; 3] = [Form::Strict, Form::Old, Form::Compact];

async fn unframed(house: &mut House) -> Bytes {
    let (mut walk, mut read) = (Walk::new(1 << 20), Vec::new());
    loop {
        read.push(house.io.read_u8().await.expect("a reply"));
        if let Ok((_, len)) = walk.advance(&read) {
            assert_eq!(len, read.len());
            return read.into();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_frames_messages_end_where_their_structs_end() {
    for form in FORMS {
        let mut house = house(Framing::Buffered, params());
        // Byte by byte.
        for byte in message(form, Kind::Call, "slowly", -1) {
            house.send(&[byte]).await;
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(read(&unframed(&mut house).await), replied("slowly", -1));
        // Several at once, a oneway call among them, and the last in two pieces.
        let calls = ["a", "b", "c"].map(|name| message(form, Kind::Call, name, 300));
        let all = [&calls[0][..], &message(form, Kind::Oneway, "note", 1), &calls[1], &calls[2]].concat();
        let (now, later) = all.split_at(all.len() - 5);
        house.send(now).await;
        sleep(SECOND).await;
        house.send(later).await;
        for name in ["a", "b", "c"] {
            assert_eq!(read(&unframed(&mut house).await), replied(name, 300), "{form:?}");
        }
        let seen: Vec<_> =
            house.service.seen.lock().iter().map(|request| request.body.bytes().clone()).collect();
        assert_eq!(seen[1], calls[0], "{form:?}: the message, and no byte more");
        assert!(house.rest().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_not_one_message_never_reaches_a_caller_without_frames() {
    let mut house = house(Framing::Buffered, params());
    house.send(&[call("odd", 1), call("fine", 2)].concat()).await;
    assert_eq!(read(&unframed(&mut house).await), refused("odd", 1, Type::InternalError));
    assert_eq!(read(&unframed(&mut house).await), replied("fine", 2));
    // With frames nothing is lost by it.
    let mut house = super::house(Framing::Framed, params());
    house.send(&framed(&call("odd", 1))).await;
    assert_eq!(read(&house.frame().await), replied("odd", 1));
}

#[tokio::test(start_paused = true)]
async fn ttwitter_is_a_matter_of_frames() {
    let mut upgrade = BytesMut::new();
    ttwitter::write_upgrade_call(Protocol::Binary, &mut upgrade);
    let name = "__can__finagle__trace__v3__";
    let mut house = house(Framing::Buffered, params());
    house.send(&[&upgrade[..], &call("plainly", 1)].concat()).await;
    assert_eq!(read(&unframed(&mut house).await), refused(name, 0, Type::UnknownMethod));
    assert_eq!(read(&unframed(&mut house).await), replied("plainly", 1));

    let mut house = super::house(Framing::Framed, params());
    let headed = |message: &[u8]| framed(&[&[0], message].concat());
    house.send(&[framed(&upgrade), headed(&call("sleep", 1)), headed(&call("b", 2))].concat()).await;
    assert_eq!(read(&house.frame().await), replied(name, 0));
    for (name, seqid) in [("sleep", 1), ("b", 2)] {
        let reply = house.frame().await;
        assert_eq!(reply[0], 0, "the response header");
        assert_eq!(read(&reply.slice(1..)), replied(name, seqid));
    }
}

fn theader(form: Form, zlib: bool, info: &[(&'static str, &'static str)], message: Bytes) -> Bytes {
    let info = info.iter().map(|(k, v)| (Bytes::from(*k), Bytes::from(*v))).collect();
    let header = theader::Header { flags: 0, seqid: 77, protocol: form.protocol(), zlib, info };
    let (head, payload) = theader::encode(&header, message).expect("a frame");
    framed(&[&head[..], &payload].concat())
}

#[tokio::test(start_paused = true)]
async fn theader_is_answered_as_it_asks() {
    for (form, zlib) in
        [(Form::Strict, false), (Form::Strict, true), (Form::Compact, false), (Form::Compact, true)]
    {
        let mut house = house(Framing::Header, params());
        let info = [("L5D-dst", "/s/users"), ("client-id", "web"), ("b3", "1"), ("x-tenant", "7")];
        for name in ["sleep", "b"] {
            house.send(&theader(form, zlib, &info, message(form, Kind::Call, name, -5))).await;
        }
        house.send(&theader(form, zlib, &[], message(form, Kind::Oneway, "c", -5))).await;
        for name in ["sleep", "b"] {
            let (header, reply) = theader::decode(house.frame().await, 1 << 20).expect("a THeader frame");
            assert_eq!((header.seqid, header.protocol, header.zlib), (77, form.protocol(), zlib));
            assert_eq!(read(&reply), replied(name, -5));
            assert!(header.info.is_empty(), "request headers are not those of the reply");
        }
        assert!(house.rest().await.is_empty());
        let seen = house.service.seen.lock();
        let request = &seen[0];
        assert_eq!(request.dst.as_str(), "/s/users");
        assert_eq!(request.ctx.client_id.as_deref(), Some(&b"web"[..]));
        assert_eq!(request.ctx.trace.and_then(|trace| trace.sampled()), Some(true));
        let others = headers::to_info(request).pop().expect("an application header");
        assert_eq!((&others.0[..], &others.1[..]), (&b"x-tenant"[..], &b"7"[..]));
    }
}

#[tokio::test(start_paused = true)]
async fn methods_may_be_oneway_by_rule() {
    let rules = Rules::new(None, ["note"].map(Bytes::from));
    for framing in [Framing::Framed, Framing::Buffered] {
        let mut house = house(framing, ServerParams { rules: rules.clone(), ..params() });
        let of = |message: Bytes| if framing == Framing::Framed { framed(&message) } else { message };
        house.send(&[of(call("note", 1)), of(call("sleep", 2)), of(call("S:note", 3))].concat()).await;
        let rest = house.rest().await;
        let reply = if framing == Framing::Framed { rest.slice(4..) } else { rest };
        assert_eq!(read(&reply), replied("sleep", 2));
        assert_eq!(reply.len(), 18, "one reply and no byte more");
        assert_eq!(house.service.begun.lock().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_senders_are_cut_off() {
    for (framing, bytes) in [
        (Framing::Framed, framed(&call("x", 1))),
        (Framing::Buffered, call("x", 1)),
        (Framing::Header, theader(Form::Strict, false, &[], call("x", 1))),
    ] {
        let mut house = house(framing, params());
        house.send(&bytes[..bytes.len() - 1]).await;
        sleep(9 * SECOND).await;
        assert!(!house.served.is_finished());
        sleep(2 * SECOND).await;
        assert!(house.served.is_finished(), "{framing:?}");
        assert_eq!(house.ends().await, ["slow_frame"]);
    }
}
