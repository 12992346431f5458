use super::*;
use crate::Payload;
use muxgate_wire::thrift::{Form, Kind, Protocol, theader, write_head};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const MAX_FRAME: usize = 4096;

/// Every way to wrap a message.
const ALL: [Transport; 4] =
    [Transport::Framed, Transport::TTwitter(Protocol::Binary), Transport::Buffered, Transport::Header];

fn message(form: Form, kind: Kind, name: &str, seqid: i32, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    write_head(form, kind, name.as_bytes(), seqid, &mut out);
    out.extend_from_slice(body);
    out.freeze()
}

fn request(body: Bytes) -> Request {
    Request::new(Payload::thrift(body).unwrap(), Instant::now(), None)
}

fn call(form: Form, seqid: i32) -> Bytes {
    message(form, Kind::Call, "get", seqid, &[0])
}

/// A connection, its other side, and what that wraps around a message.
struct Pair {
    ours: Connection<DuplexStream>,
    theirs: DuplexStream,
    transport: Transport,
}

impl Pair {
    fn new(transport: Transport) -> Self {
        let (near, theirs) = duplex(64 << 10);
        let mut ours = Connection::new(near, transport, MAX_FRAME);
        if let Transport::TTwitter(protocol) = transport {
            ours.upgraded = Some(protocol);
        }
        Self { ours, theirs, transport }
    }

    fn wrapped(&self, message: &[u8]) -> Vec<u8> {
        match self.transport {
            Transport::Framed => framed(message),
            Transport::TTwitter(_) => framed(&[&[0], message].concat()),
            Transport::Buffered => message.to_vec(),
            Transport::Header => {
                let head = peek(message).unwrap();
                in_header(head.seqid, head.protocol, false, message)
            }
        }
    }

    /// Makes a call that is answered by these bytes; they are there before it.
    async fn answered(&mut self, call: Bytes, bytes: &[u8]) -> Result<Answer, Failure> {
        self.theirs.write_all(bytes).await.unwrap();
        self.ours.exchange(&request(call)).await
    }

    /// As [`Pair::answered`], and then nothing more comes.
    async fn cut_off(mut self, call: Bytes, bytes: &[u8]) -> Failure {
        self.theirs.write_all(bytes).await.unwrap();
        self.theirs.shutdown().await.unwrap();
        self.ours.exchange(&request(call)).await.unwrap_err()
    }
}

fn in_header(seqid: i32, protocol: Protocol, zlib: bool, message: &[u8]) -> Vec<u8> {
    let info = vec![(Bytes::from_static(b"k"), Bytes::from_static(b"v"))];
    let header = theader::Header { flags: 0, seqid, protocol, zlib, info };
    let (front, payload) = theader::encode(&header, Bytes::copy_from_slice(message)).unwrap();
    framed(&[&front[..], &payload].concat())
}

fn framed(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes(), content].concat()
}

#[tokio::test]
async fn a_reply_is_its_message_alone_in_every_form() {
    for transport in ALL {
        for form in [Form::Strict, Form::Old, Form::Compact] {
            let mut pair = Pair::new(transport);
            for seqid in [1, -1, 300] {
                let reply = message(form, Kind::Reply, "get", seqid, &[0]);
                let bytes = pair.wrapped(&reply);
                let (contexts, body) = pair.answered(call(form, seqid), &bytes).await.unwrap();
                let infos = usize::from(transport == Transport::Header);
                assert_eq!((contexts.len(), body), (infos, reply), "{transport:?} {form:?}");
                assert!(pair.ours.is_clean());
            }
        }
    }
}

#[tokio::test]
async fn a_buffered_call_goes_out_bare_and_a_number_of_ours_is_given_back() {
    let mut pair = Pair::new(Transport::Buffered);
    for serial in 1..4 {
        let reply = message(Form::Strict, Kind::Reply, "get", serial, &[0]);
        let (_, body) = pair.answered(call(Form::Strict, 0), &reply).await.unwrap();
        assert_eq!(body, message(Form::Strict, Kind::Reply, "get", 0, &[0]));
        let mut sent = vec![0; call(Form::Strict, 0).len()];
        pair.theirs.read_exact(&mut sent).await.unwrap();
        assert_eq!(sent, call(Form::Strict, serial));
    }
}

#[tokio::test]
async fn another_number_than_ours_is_no_answer() {
    for transport in ALL {
        let mut pair = Pair::new(transport);
        let bytes = pair.wrapped(&message(Form::Strict, Kind::Reply, "get", 9, &[0]));
        let failure = pair.answered(call(Form::Strict, 0), &bytes).await.unwrap_err();
        assert_eq!(failure.why(), Why::BadReply, "{transport:?}");
        assert!(failure.text().contains("sequence id 9"), "{failure}");
    }
}

/// Cut anywhere, a reply is a lost connection, and nobody is told that the call may be repeated.
#[tokio::test]
async fn a_reply_cut_short_is_a_lost_connection() {
    let body = b"\x0b\0\0\0\0\0\x03abc\0";
    for transport in ALL {
        let whole = Pair::new(transport).wrapped(&message(Form::Strict, Kind::Reply, "get", 1, body));
        for len in 0..whole.len() {
            let failure = Pair::new(transport).cut_off(call(Form::Strict, 1), &whole[..len]).await;
            assert_eq!(failure.why(), Why::ConnectionLost, "{transport:?} {len}");
            assert!(!failure.is_retryable(), "{transport:?} {len}");
        }
    }
}

/// Byte by byte it is found as well.
#[tokio::test]
async fn the_end_of_a_buffered_reply_is_found_as_bytes_come() {
    let reply = message(Form::Compact, Kind::Reply, "get", 5, b"\x08\0\x03abc\0");
    let mut pair = Pair::new(Transport::Buffered);
    let sent = async {
        for byte in &reply[..] {
            pair.theirs.write_all(std::slice::from_ref(byte)).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let request = request(call(Form::Compact, 5));
    let (answer, ()) = tokio::join!(pair.ours.exchange(&request), sent);
    assert_eq!(answer.unwrap().1, reply);
    assert!(pair.ours.is_clean());
}

#[tokio::test]
async fn what_was_not_asked_for_makes_a_connection_unclean() {
    for transport in ALL {
        let mut pair = Pair::new(transport);
        let bytes = pair.wrapped(&message(Form::Strict, Kind::Reply, "get", 1, &[0])).repeat(2);
        pair.answered(call(Form::Strict, 1), &bytes).await.unwrap();
        assert!(!pair.ours.is_settled(), "{transport:?}");
        let mut pair = Pair::new(transport);
        let bytes = pair.wrapped(&message(Form::Strict, Kind::Reply, "get", 1, &[0]));
        pair.answered(call(Form::Strict, 1), &bytes).await.unwrap();
        assert!(pair.ours.is_settled());
        pair.theirs.write_all(&[0; 4]).await.unwrap();
        assert!(!pair.ours.is_clean(), "{transport:?}: empty frames answer oneway calls, and there was none");
    }
}

#[tokio::test]
async fn a_reply_over_the_limit_is_refused_before_it_is_there() {
    let large = message(Form::Strict, Kind::Reply, "get", 1, b"\x0b\0\0\x7f\xff\xff\xff");
    for transport in ALL {
        let bytes = match transport {
            Transport::Buffered => large.to_vec(),
            _ => vec![0x7f, 0xff, 0xff, 0xff],
        };
        let failure = Pair::new(transport).answered(call(Form::Strict, 1), &bytes).await.unwrap_err();
        assert_eq!(failure.why(), Why::BadReply, "{transport:?}");
    }
}

#[tokio::test]
async fn garbage_is_no_reply() {
    let mut pair = Pair::new(Transport::Buffered);
    let failure =
        pair.answered(call(Form::Strict, 1), b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap_err();
    assert_eq!(failure.why(), Why::BadReply);
}

#[tokio::test]
async fn a_oneway_call_is_done_when_it_is_written_and_empty_answers_are_skipped() {
    for transport in ALL {
        let mut pair = Pair::new(transport);
        let oneway = message(Form::Strict, Kind::Oneway, "note", 1, &[0]);
        let empty = match transport {
            Transport::Buffered => Vec::new(),
            Transport::Framed => framed(&[]),
            Transport::TTwitter(_) => framed(&[0]),
            Transport::Header => framed(&[]),
        };
        for _ in 0..2 {
            let (_, body) = pair.ours.exchange(&request(oneway.clone())).await.unwrap();
            assert!(body.is_empty());
            pair.theirs.write_all(&empty).await.unwrap();
        }
        assert!(pair.ours.is_clean(), "{transport:?}");
        let reply = message(Form::Strict, Kind::Reply, "get", 2, &[0]);
        let bytes = [&empty[..], &pair.wrapped(&reply)].concat();
        assert_eq!(pair.answered(call(Form::Strict, 2), &bytes).await.unwrap().1, reply, "{transport:?}");
    }
}

/// A service that does not know of a oneway method answers it after the next call was written.
#[tokio::test]
async fn a_late_reply_to_a_oneway_call_is_stepped_over_once() {
    for transport in ALL {
        let mut pair = Pair::new(transport);
        let mut oneway = Payload::thrift(message(Form::Strict, Kind::Call, "note", 3, &[0])).unwrap();
        oneway.expect_no_reply();
        pair.ours.exchange(&Request::new(oneway, Instant::now(), None)).await.unwrap();
        let late = pair.wrapped(&message(Form::Strict, Kind::Reply, "note", 3, &[0]));
        let reply = message(Form::Strict, Kind::Reply, "get", 7, &[0]);
        let both = [&late[..], &pair.wrapped(&reply)].concat();
        assert_eq!(pair.answered(call(Form::Strict, 7), &both).await.unwrap().1, reply, "{transport:?}");
        let again = pair.answered(call(Form::Strict, 0), &late).await.unwrap_err();
        assert_eq!(again.why(), Why::BadReply, "{transport:?}");
    }
}

/// Without frames, bytes behind a call would be another call.
#[test]
fn a_call_that_does_not_end_where_its_frame_does_is_not_written_bare() {
    let smuggled = [&call(Form::Strict, 1)[..], &call(Form::Strict, 2)].concat();
    let short = message(Form::Strict, Kind::Call, "get", 1, &[8, 0]);
    for bad in [Bytes::from(smuggled), short] {
        let bad = Payload::thrift(bad).unwrap();
        assert_eq!(check(&bad, Transport::Buffered).unwrap_err().why(), Why::BadRequest);
        check(&bad, Transport::Framed).unwrap();
    }
    check(&Payload::thrift(call(Form::Compact, 1)).unwrap(), Transport::Buffered).unwrap();
}

#[tokio::test]
async fn a_call_that_cannot_be_written_may_be_repeated() {
    for transport in ALL {
        let Pair { mut ours, theirs, .. } = Pair::new(transport);
        drop(theirs);
        let failure = ours.exchange(&request(call(Form::Strict, 1))).await.unwrap_err();
        assert!(failure.is_retryable() && failure.why() == Why::ConnectionLost, "{transport:?}: {failure:?}");
    }
}

#[tokio::test]
async fn a_theader_call_carries_its_number_twice_and_what_contexts_say() {
    let mut pair = Pair::new(Transport::Header);
    let mut request = request(call(Form::Compact, 0));
    request.ctx.client_id = Some(Bytes::from_static(b"me"));
    let oneway = message(Form::Compact, Kind::Oneway, "get", 0, &[0]);
    request.body = Payload::thrift(oneway).unwrap();
    pair.ours.exchange(&request).await.unwrap();
    let len = pair.theirs.read_u32().await.unwrap() as usize;
    let mut frame = vec![0; len];
    pair.theirs.read_exact(&mut frame).await.unwrap();
    let (header, message) = theader::decode(frame.into(), MAX_FRAME).unwrap();
    let head = peek(&message).unwrap();
    assert_eq!((header.seqid, head.seqid, header.protocol), (1, 1, Protocol::Compact));
    assert_eq!(header.info, [(Bytes::from_static(b"client-id"), Bytes::from_static(b"me"))]);
}

#[tokio::test]
async fn a_compressed_theader_reply_is_inflated_and_numbered() {
    let text = [b"\x0b\0\0\0\0\x03\xe8", &[b'x'; 1000][..], b"\0"].concat();
    for number in [0, 5] {
        let mut pair = Pair::new(Transport::Header);
        let sent = if number == 0 { 1 } else { number };
        let reply = message(Form::Strict, Kind::Reply, "get", sent, &text);
        let bytes = in_header(sent, Protocol::Binary, true, &reply);
        let (_, body) = pair.answered(call(Form::Strict, number), &bytes).await.unwrap();
        assert_eq!(body, message(Form::Strict, Kind::Reply, "get", number, &text));
    }
}

/// Either number wrong, another protocol, no THeader at all, or more inside than is allowed.
#[tokio::test]
async fn what_is_no_theader_answer_is_refused() {
    let reply = message(Form::Strict, Kind::Reply, "get", 1, &[0]);
    let bomb = message(Form::Strict, Kind::Reply, "get", 1, &[0; 4 * MAX_FRAME]);
    let cases = [
        ("sequence id 2", in_header(2, Protocol::Binary, false, &reply)),
        (
            "sequence id 9",
            in_header(1, Protocol::Binary, false, &message(Form::Strict, Kind::Reply, "get", 9, &[0])),
        ),
        ("another protocol", in_header(1, Protocol::Compact, false, &reply)),
        ("THeader", framed(&reply)),
        ("THeader", framed(b"\x0f\xff\0\0\0\0\0\x01\x40\0")),
        ("more than 4096", in_header(1, Protocol::Binary, true, &bomb)),
    ];
    for (told, bytes) in cases {
        let failure = Pair::new(Transport::Header).answered(call(Form::Strict, 0), &bytes).await.unwrap_err();
        assert_eq!(failure.why(), Why::BadReply, "{told}");
        assert!(failure.text().contains(told), "{told}: {failure}");
    }
}
