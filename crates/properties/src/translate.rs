//! Messages from one protocol into the other.

use bytes::BytesMut;
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::translate::{message, renamed};
use muxgate_wire::thrift::{Cursor, Form, MessageHead, Protocol, ThriftError, Why, peek, write_head};

/// More than any input of the fuzzer becomes.
const MOST: usize = 1 << 20;
const FORMS: [Form; 3] = [Form::Strict, Form::Old, Form::Compact];

/// Translates a message, if that is what the bytes are; else as if they were the struct of one. Also reads them as a
/// THeader frame.
///
/// # Panics
/// When translation is another judge than skipping, when what was translated once does not stay the same from then on,
/// or when a limit does not hold.
pub fn translate(data: &[u8]) {
    super::theader(data);
    match peek(data) {
        Ok(head) => there_and_back(data, &head),
        Err(error) => assert!(error.at <= data.len(), "{error}"),
    }
    for form in [Form::Strict, Form::Compact] {
        let mut whole = BytesMut::new();
        write_head(form, muxgate_wire::thrift::Kind::Call, b"m", 7, &mut whole);
        whole.extend_from_slice(data);
        let head = peek(&whole).expect("a head of ours");
        there_and_back(&whole, &head);
    }
}

fn there_and_back(bytes: &[u8], head: &MessageHead) {
    let other = match head.protocol {
        Protocol::Binary => Form::Compact,
        Protocol::Compact => Form::Strict,
    };
    let there = message(bytes, head, other, MOST);
    as_skipped(bytes, head, there.as_ref());
    for limit in [0, 20, bytes.len()] {
        bounded(bytes, head, limit, there.as_ref());
    }
    let Ok(there) = there else { return };
    let again = peek(&there).expect("what was written");
    assert_eq!((again.kind, again.seqid), (head.kind, head.seqid));
    assert_eq!(again.name_in(&there), head.name_in(bytes));
    let back = message(&there, &again, head.form(), MOST).expect("what was written");
    let head = peek(&back).expect("what was written");
    assert_eq!(message(&back, &head, other, MOST).as_ref(), Ok(&there), "stable after one round");
    let named = renamed(&back, &head, other, b"another", MOST).expect("a short name");
    assert_eq!(named[peek(&named).expect("a name").body_at..], there[again.body_at..]);
}

fn as_skipped(bytes: &[u8], head: &MessageHead, there: Result<&BytesMut, &ThriftError>) {
    let mut cursor = Cursor::whole(bytes);
    cursor.seek(head.body_at);
    let skipped = skip_struct(head.protocol, &mut cursor);
    let left = bytes.len().saturating_sub(cursor.at());
    match (skipped, there) {
        (Ok(()), Ok(_)) => assert_eq!(left, 0),
        (Ok(()), Err(error)) => assert_eq!(error.why, Why::Trailing { left }),
        (Err(expected), there) => {
            // A run of elements is skipped at once and translated one by one, so only the place may differ.
            let error = there.expect_err("what cannot be skipped");
            assert!(error.at >= expected.at && error.at <= bytes.len(), "{error} and {expected}");
            assert_eq!(
                std::mem::discriminant(&error.why),
                std::mem::discriminant(&expected.why),
                "{error} and {expected}"
            );
        }
    }
}

fn bounded(bytes: &[u8], head: &MessageHead, limit: usize, there: Result<&BytesMut, &ThriftError>) {
    for form in FORMS {
        match message(bytes, head, form, limit) {
            Ok(out) => assert!(out.len() <= limit),
            Err(ThriftError { why: Why::OverLimit { most }, .. }) => assert_eq!(most, limit),
            Err(error) if form.protocol() != head.protocol => {
                assert_eq!(there.expect_err("with a larger limit").why, error.why);
            }
            Err(error) => panic!("nothing is read: {error}"),
        }
    }
}
