use super::*;
use muxgate_wire::thrift::{Form, Kind, exception, write_head};

const FORMS: [Form; 3] = [Form::Strict, Form::Old, Form::Compact];

fn message(form: Form, kind: Kind, name: &str, seqid: i32, body: &[u8]) -> Bytes {
    let mut out = bytes::BytesMut::new();
    write_head(form, kind, name.as_bytes(), seqid, &mut out);
    out.extend_from_slice(body);
    out.freeze()
}

fn call(form: Form, name: &str) -> Payload {
    Payload::opaque(message(form, Kind::Call, name, 3, &[0]))
}

fn judge(form: Form, body: Bytes) -> Result<Response, Failure> {
    Response::judged(&call(form, "get"), body, Vec::new(), false)
}

/// A struct that begins with this field, of type struct.
fn begins(form: Form, id: i16) -> Vec<u8> {
    match form {
        Form::Compact => [&[12][..], &[((id << 1) ^ (id >> 15)) as u8], &[0, 0]].concat(),
        Form::Strict | Form::Old => [&[12][..], &id.to_be_bytes(), &[0, 0]].concat(),
    }
}

/// Types 0 to 10 and one that is not assigned: what spec section 15 says of each.
#[test]
fn each_type_of_application_exception_has_its_class() {
    let (failure, nothing) = (Class::Failure, Class::Ignorable);
    let table = [
        failure, nothing, nothing, failure, failure, failure, failure, nothing, nothing, nothing, nothing,
        failure,
    ];
    for form in FORMS {
        for (code, class) in (0..).zip(table) {
            let kind = ApplicationExceptionType::from(code);
            let answer = judge(form, exception::to_bytes(form, b"get", 3, kind, "why")).unwrap();
            assert_eq!((answer.reply, answer.class), (Reply::Application(kind), class), "{form:?} {code}");
        }
        // Without a type it is unknown, without a text it is one all the same.
        let bare = judge(form, message(form, Kind::Exception, "get", 3, &[0])).unwrap();
        assert_eq!(bare.reply, Reply::Application(ApplicationExceptionType::Unknown));
        assert_eq!(bare.class, Class::Failure);
    }
}

#[test]
fn the_first_field_of_a_reply_says_what_it_is() {
    for form in FORMS {
        let judge = |body: &[u8], declared_fails| {
            let reply = message(form, Kind::Reply, "get", 3, body);
            let answer = Response::judged(&call(form, "get"), reply, Vec::new(), declared_fails).unwrap();
            (answer.reply, answer.class)
        };
        for fails in [false, true] {
            assert_eq!(judge(&[0], fails), (Reply::Void, Class::Success));
            assert_eq!(judge(&begins(form, 0), fails), (Reply::Result, Class::Success));
            for id in [1, 7, -1] {
                let class = if fails { Class::Failure } else { Class::Success };
                assert_eq!(judge(&begins(form, id), fails), (Reply::Declared(id), class), "{form:?}");
            }
        }
    }
}

#[test]
fn an_empty_body_answers_a_oneway_call_and_no_other() {
    assert_eq!(judge(Form::Strict, Bytes::new()).unwrap_err().why(), Why::BadReply);
    let nothing = Response::nothing();
    assert_eq!((nothing.reply, nothing.class), (Reply::Void, Class::Success));
}

#[test]
fn what_is_no_answer_to_the_call_is_a_bad_reply() {
    for form in FORMS {
        let other = if form == Form::Compact { Form::Strict } else { Form::Compact };
        let bad = [
            message(form, Kind::Call, "get", 3, &[0]),
            message(form, Kind::Oneway, "get", 3, &[0]),
            message(form, Kind::Reply, "get", 4, &[0]),
            message(form, Kind::Reply, "set", 3, &[0]),
            message(form, Kind::Exception, "set", 3, &[0]),
            message(other, Kind::Reply, "get", 3, &[0]),
            // No first field, an unknown type, and an exception cut short.
            message(form, Kind::Reply, "get", 3, &[]),
            message(form, Kind::Reply, "get", 3, &[0x1f, 0, 0]),
            message(form, Kind::Exception, "get", 3, &[11]),
            Bytes::from_static(b"<html>"),
        ];
        for body in bad {
            assert_eq!(judge(form, body.clone()).unwrap_err().why(), Why::BadReply, "{form:?} {body:?}");
        }
    }
}

/// Nothing but the first field is looked at: what is behind it is for the caller to read.
#[test]
fn a_reply_passes_as_it_came() {
    for form in FORMS {
        let cut = message(form, Kind::Reply, "get", 3, &begins(form, 0)[..3]);
        let more = message(form, Kind::Reply, "get", 3, b"\0more");
        for body in [cut, more] {
            assert_eq!(judge(form, body.clone()).unwrap().body, body, "{form:?}");
        }
    }
}

#[test]
fn a_multiplexed_method_is_answered_with_or_without_its_service() {
    let asked = call(Form::Strict, "Users:get");
    for name in ["get", "Users:get"] {
        let reply = message(Form::Strict, Kind::Reply, name, 3, &[0]);
        let answer = Response::judged(&asked, reply.clone(), Vec::new(), false).unwrap();
        assert_eq!(answer.body, reply, "as it came");
    }
}
