//! Against the `thrift` crate: what it writes we read, what we write it reads; and any bytes at all are survived.

use crate::value::{Choices, Val, from_bytes, oracle_message, to_bytes, with_oracle};
use muxgate_wire::thrift::skip::{Skipper, skip_struct};
use muxgate_wire::thrift::{
    ApplicationExceptionType, Cursor, Form, MAX_MESSAGE, Protocol, ReplyClass, ThriftError, Walk, Why,
    classify, exception, peek,
};
use proptest::prelude::*;
use thrift::protocol::{
    TBinaryInputProtocol, TCompactInputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
};
use thrift::{ApplicationError, ApplicationErrorKind};

fn protocols() -> impl Strategy<Value = (Protocol, bool)> {
    prop_oneof![
        Just((Protocol::Binary, true)),
        Just((Protocol::Binary, false)),
        Just((Protocol::Compact, true)),
    ]
}

fn kinds() -> impl Strategy<Value = TMessageType> {
    prop_oneof![
        Just(TMessageType::Call),
        Just(TMessageType::Reply),
        Just(TMessageType::Exception),
        Just(TMessageType::OneWay),
    ]
}

fn values() -> impl Strategy<Value = Val> {
    proptest::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Choices(&bytes).fields(4))
}

/// Reads whatever can be read from bytes with everything there is, and with the reader of these tests.
fn try_everything(bytes: &[u8]) {
    muxgate_properties::thrift(bytes);
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let mut cursor = Cursor::whole(bytes);
        let skipped = skip_struct(protocol, &mut cursor).map(|()| cursor.at());
        let read = from_bytes(protocol, bytes).map(|(_, len)| len);
        match (read, skipped) {
            // The reader of these tests has no limit of depth.
            (_, Err(ThriftError { why: Why::TooDeep { .. }, .. })) => {}
            (Ok(read), skipped) => assert_eq!(skipped, Ok(read), "what reads can be skipped, alike"),
            (Err(_), _) => {}
        }
    }
}

proptest! {
    #[test]
    fn what_the_crate_writes_is_peeked_and_skipped(
        (protocol, strict) in protocols(),
        kind in kinds(),
        name in "[a-zA-Z0-9_:\u{e9}]{0,40}",
        seqid in any::<i32>(),
        body in values(),
    ) {
        let head = TMessageIdentifier::new(name.as_str(), kind, seqid);
        let message = oracle_message(protocol, strict, &head, &body);
        let ours = peek(&message).unwrap();
        prop_assert_eq!(ours.protocol, protocol);
        prop_assert_eq!(ours.strict, strict);
        prop_assert_eq!(ours.kind.code(), u8::from(kind));
        prop_assert_eq!(ours.name_in(&message), name.as_bytes());
        prop_assert_eq!(ours.seqid, seqid);
        prop_assert_eq!(&message[ours.body_at..], &to_bytes(protocol, &body)[..], "the same bytes for a struct");
        prop_assert_eq!(Walk::new(MAX_MESSAGE).advance(&message).unwrap(), (ours.clone(), message.len()));
        prop_assert_eq!(from_bytes(protocol, &message[ours.body_at..]).unwrap(), (body, message.len() - ours.body_at));
    }

    #[test]
    fn replies_of_the_crate_are_classified(
        (protocol, strict) in protocols(),
        id in prop_oneof![Just(None), (0i16..40).prop_map(Some), any::<i16>().prop_map(Some)],
        body in values(),
    ) {
        let result = Val::Struct(id.map(|id| (id, body)).into_iter().collect());
        let head = TMessageIdentifier::new("m", TMessageType::Reply, 7);
        let message = oracle_message(protocol, strict, &head, &result);
        let expected = match id {
            None => ReplyClass::Void,
            Some(0) => ReplyClass::Result,
            Some(id) => ReplyClass::Declared(id),
        };
        prop_assert_eq!(classify(&message), Ok(expected));
    }

    #[test]
    fn exceptions_go_both_ways(
        (protocol, strict) in protocols(),
        code in 0i32..11,
        text in "[ -~\u{e9}]{0,60}",
        seqid in any::<i32>(),
    ) {
        let form = match (protocol, strict) {
            (Protocol::Binary, false) => Form::Old,
            _ => protocol.into(),
        };
        let ours = exception::to_bytes(form, b"method", seqid, code.into(), &text);
        let head = TMessageIdentifier::new("method", TMessageType::Exception, seqid);
        let kind = ApplicationErrorKind::try_from(code).unwrap();
        let theirs = with_oracle(protocol, strict, |out| {
            out.write_message_begin(&head)?;
            let error = ApplicationError::new(kind, text.clone());
            thrift::Error::write_application_error_to_out_protocol(&error, out)?;
            out.write_message_end()
        });
        prop_assert_eq!(&ours[..], &theirs[..]);
        let Ok(ReplyClass::Application { kind, message }) = classify(&theirs) else { panic!("no exception") };
        prop_assert_eq!(kind.code(), code);
        prop_assert_eq!(&theirs[message], text.as_bytes());
        let read = |input: &mut dyn TInputProtocol| {
            let head = input.read_message_begin()?;
            Ok::<_, thrift::Error>((head, thrift::Error::read_application_error_from_in_protocol(input)?))
        };
        let (head_read, error) = match protocol {
            Protocol::Binary => read(&mut TBinaryInputProtocol::new(&ours[..], strict)).unwrap(),
            Protocol::Compact => read(&mut TCompactInputProtocol::new(&ours[..])).unwrap(),
        };
        prop_assert_eq!(head_read, head);
        prop_assert_eq!(error.message, text);
    }

    #[test]
    fn a_walk_in_pieces_ends_where_a_walk_at_once_does(
        (protocol, strict) in protocols(),
        body in values(),
        step in 1usize..9,
    ) {
        let head = TMessageIdentifier::new("m", TMessageType::Call, 7);
        let message = oracle_message(protocol, strict, &head, &body);
        let mut walk = Walk::new(MAX_MESSAGE);
        let mut here = 0;
        loop {
            match walk.advance(&message[..here]) {
                Ok((_, len)) => {
                    prop_assert_eq!(len, message.len());
                    break;
                }
                Err(error) => {
                    prop_assert!(error.is_incomplete(), "{} of {}: {}", here, message.len(), error);
                    let Why::Incomplete { more } = error.why else { unreachable!() };
                    prop_assert!(more >= 1 && here + more <= message.len(), "asks for no more than there is");
                    here = (here + step).min(message.len());
                }
            }
        }
    }

    #[test]
    fn a_cut_message_is_never_whole((protocol, strict) in protocols(), body in values(), cut in any::<proptest::sample::Index>()) {
        let head = TMessageIdentifier::new("m", TMessageType::Call, 7);
        let message = oracle_message(protocol, strict, &head, &body);
        let part = &message[..cut.index(message.len())];
        if let Ok(head) = peek(part) {
            let mut cursor = Cursor::whole(part);
            cursor.seek(head.body_at);
            let error = Skipper::of_struct().advance(protocol, &mut cursor).unwrap_err();
            prop_assert!(!error.is_incomplete(), "in a frame nothing more will come: {}", error);
            prop_assert!(error.at <= part.len());
        }
        try_everything(part);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        try_everything(&bytes);
    }

    #[test]
    fn damaged_messages_are_survived(
        (protocol, strict) in protocols(),
        body in values(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let head = TMessageIdentifier::new("m", TMessageType::Reply, 7);
        let mut message = oracle_message(protocol, strict, &head, &body);
        for (index, byte) in damage {
            let at = index.index(message.len());
            message[at] = byte;
        }
        try_everything(&message);
        if let Ok(head) = peek(&message) {
            try_everything(&message[head.body_at..]);
        }
    }
}

#[test]
fn a_long_text_is_cut_at_a_character() {
    let text = "\u{e9}".repeat(3000);
    let bytes = exception::to_bytes(Form::Compact, b"m", 1, ApplicationExceptionType::InternalError, &text);
    let Ok(ReplyClass::Application { message, .. }) = classify(&bytes) else { panic!("no exception") };
    assert_eq!(std::str::from_utf8(&bytes[message]).unwrap(), &text[..exception::MAX_TEXT]);
    let odd = format!("x{text}");
    let bytes = exception::to_bytes(Form::Strict, b"m", 1, ApplicationExceptionType::InternalError, &odd);
    let Ok(ReplyClass::Application { message, .. }) = classify(&bytes) else { panic!("no exception") };
    assert_eq!(message.len(), exception::MAX_TEXT - 1);
}
