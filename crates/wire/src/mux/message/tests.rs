use super::*;
use crate::pairs::Pairs;

fn body(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.freeze()
}

#[test]
fn errors_name_the_byte() {
    let short = |what, at| Err(MessageError::Short { what, at });
    let decode = |bytes: &'static [u8]| Tdispatch::decode(Bytes::from_static(bytes));
    assert_eq!(decode(b""), short("contexts", 0));
    assert_eq!(decode(b"\0\x01\0\x01k\0\x09v"), short("contexts", 7));
    assert_eq!(decode(b"\0\0\0\x09/s"), short("destination", 2));
    assert_eq!(decode(b"\0\0\0\0"), short("dtab", 4));
    assert_eq!(decode(b"\x80\0"), Err(MessageError::Negative { what: "contexts", at: 0 }));
    let status = Rdispatch::decode(Bytes::from_static(b"\x03\0\0"));
    assert_eq!(status, Err(MessageError::Status(3)));
    assert_eq!(MessageError::Status(3).to_string(), "reply status 3 at byte 0");
}

#[test]
fn more_than_is_accepted_is_told_apart_from_wrong() {
    let many = Pairs::build((0..=limits::MAX_CONTEXTS).map(|_| (&b"k"[..], &b""[..]))).unwrap();
    let request = Tdispatch { contexts: many, ..Tdispatch::default() };
    let error = Tdispatch::decode(body(&Message::Tdispatch(request))).unwrap_err();
    assert!(error.is_limit(), "{error}");
    let request = Tdispatch { dst: Bytes::from(vec![b'/'; limits::MAX_DST + 1]), ..Tdispatch::default() };
    let error = Tdispatch::decode(body(&Message::Tdispatch(request))).unwrap_err();
    assert_eq!(error, MessageError::Limit { what: "destination", at: 2 });
    let headers = vec![(Bytes::from_static(b"k"), Bytes::new()); limits::MAX_INIT_HEADERS + 1];
    let error = Init::decode(body(&Message::Tinit(Init { version: 1, headers }))).unwrap_err();
    assert!(error.is_limit(), "{error}");
}

#[test]
fn old_numbers_are_written_and_both_are_read() {
    let discarded = Message::Tdiscarded(Tdiscarded { which: 0x01_0203, why: Bytes::from_static(b"late") });
    assert_eq!(discarded.kind(), -62);
    assert_eq!(body(&discarded), &b"\x01\x02\x03late"[..]);
    for kind in [66, -62] {
        assert_eq!(Message::decode(kind, body(&discarded)).as_ref(), Ok(&discarded));
    }
    for kind in [127, -128] {
        let rerr = Message::decode(kind, Bytes::from_static(b"no")).unwrap();
        assert_eq!((rerr.kind(), body(&rerr)), (127, Bytes::from_static(b"no")));
    }
    assert_eq!(Message::decode(3, Bytes::new()), Err(MessageError::Type(3)));
}
