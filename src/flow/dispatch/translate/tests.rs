use super::*;
use bytes::{Bytes, BytesMut};
use muxgate_wire::thrift::{ApplicationExceptionType, Kind, exception, write_head};
use parking_lot::Mutex;
use tokio::time::Instant;

const LIMIT: usize = 1024;

/// A service that answers `body` as a REPLY in the form it was asked in, and remembers what it was asked.
#[derive(Default)]
struct Service {
    reply: Option<Bytes>,
    asked: Mutex<Vec<Bytes>>,
}

impl Serve for Service {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.asked.lock().push(request.body.bytes().clone());
        if request.body.is_oneway() {
            return Ok(Response::nothing());
        }
        let reply = self.reply.clone().unwrap_or_else(|| {
            let head = request.body.head();
            let name = without_service(request.body.method_bytes());
            head.map_or_else(Bytes::new, |head| result(head.form(), name, head.seqid))
        });
        Response::judged(&request.body, reply, Vec::new(), false)
    }
}

fn message(form: Form, kind: Kind, name: &[u8], seqid: i32, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    write_head(form, kind, name, seqid, &mut out);
    out.extend_from_slice(body);
    out.freeze()
}

/// One i32 field, 5, with this id.
fn field(form: Form, id: u8) -> Vec<u8> {
    match (form.protocol(), id) {
        (Protocol::Binary, id) => vec![8, 0, id, 0, 0, 0, 5, 0],
        (Protocol::Compact, 0) => vec![5, 0, 10, 0],
        (Protocol::Compact, id) => vec![id << 4 | 5, 10, 0],
    }
}

fn call(form: Form, name: &[u8], seqid: i32) -> Bytes {
    message(form, Kind::Call, name, seqid, &field(form, 1))
}

fn result(form: Form, name: &[u8], seqid: i32) -> Bytes {
    message(form, Kind::Reply, name, seqid, &field(form, 0))
}

fn layer(protocol: Option<Protocol>, strip_service: bool, service: Service) -> Translated<Service> {
    let params = super::super::Params { protocol, strip_service, max_frame: LIMIT, ..Default::default() };
    Translated::new(Translation::of(&params).unwrap(), service)
}

fn request(body: Bytes) -> Request {
    Request::new(Payload::opaque(body), Instant::now(), None)
}

async fn ask(layer: &Translated<Service>, body: Bytes) -> Result<Response, Failure> {
    let mut request = request(body.clone());
    let answer = layer.call(&mut request).await;
    assert_eq!(*request.body.bytes(), body, "the request is as it was");
    answer
}

fn asked(layer: &Translated<Service>) -> Bytes {
    layer.inner.asked.lock().last().unwrap().clone()
}

#[test]
fn nothing_is_built_where_nothing_is_asked_for() {
    assert_eq!(Translation::of(&super::super::Params::default()), None);
}

#[tokio::test]
async fn each_side_speaks_its_own_form() {
    for to in [Protocol::Binary, Protocol::Compact] {
        let layer = layer(Some(to), false, Service::default());
        for form in [Form::Strict, Form::Old, Form::Compact] {
            for seqid in [0, 1, -1, i32::MIN] {
                let answer = ask(&layer, call(form, b"get", seqid)).await.unwrap();
                assert_eq!(answer.body, result(form, b"get", seqid), "{form:?} {to:?}");
                assert_eq!(asked(&layer), call(to.into(), b"get", seqid), "{form:?} {to:?}");
            }
        }
    }
}

#[tokio::test]
async fn exceptions_are_translated_and_judged_once() {
    let kind = ApplicationExceptionType::InternalError;
    let reply = exception::to_bytes(Form::Compact, b"get", 1, kind, "no");
    let layer = layer(Some(Protocol::Compact), false, Service { reply: Some(reply), ..Default::default() });
    let answer = ask(&layer, call(Form::Old, b"get", 1)).await.unwrap();
    assert_eq!(answer.reply, muxgate_rpc::Reply::Application(kind));
    assert_eq!(answer.body, exception::to_bytes(Form::Old, b"get", 1, kind, "no"));
}

#[tokio::test]
async fn a_oneway_call_is_translated_and_nothing_comes_back() {
    let layer = layer(Some(Protocol::Compact), false, Service::default());
    let oneway = |form| message(form, Kind::Oneway, b"note", 1, &field(form, 1));
    assert!(ask(&layer, oneway(Form::Strict)).await.unwrap().body.is_empty());
    assert_eq!(asked(&layer), oneway(Form::Compact));
}

#[tokio::test]
async fn a_call_that_cannot_be_translated_is_its_callers_fault() {
    let layer = layer(Some(Protocol::Compact), false, Service::default());
    let deep = message(Form::Strict, Kind::Call, b"get", 1, &[12, 0, 1].repeat(100));
    let behind = [&call(Form::Strict, b"get", 1)[..], b"more"].concat();
    let large = [&[11, 0, 1, 0, 0, 8, 0][..], &[b'x'; 2048], &[0]].concat();
    let large = message(Form::Strict, Kind::Call, b"get", 1, &large);
    for bad in [deep, behind.into(), large, message(Form::Strict, Kind::Call, b"get", 1, &[99])] {
        let failure = ask(&layer, bad).await.unwrap_err();
        assert_eq!(failure.why(), Why::BadRequest, "{failure}");
    }
    assert!(layer.inner.asked.lock().is_empty());
}

#[tokio::test]
async fn a_reply_that_cannot_be_translated_is_the_services_fault() {
    let broken = message(Form::Compact, Kind::Reply, b"get", 1, &[8, 0, 100, b'x']);
    let layer = layer(Some(Protocol::Compact), false, Service { reply: Some(broken), ..Default::default() });
    assert_eq!(ask(&layer, call(Form::Strict, b"get", 1)).await.unwrap_err().why(), Why::BadReply);
    // Who speaks as the service does gets what it says.
    assert!(ask(&layer, call(Form::Compact, b"get", 1)).await.is_ok());
}

#[tokio::test]
async fn what_is_not_thrift_passes() {
    let layer = layer(Some(Protocol::Compact), true, Service::default());
    assert!(ask(&layer, Bytes::from_static(b"opaque")).await.is_ok());
    assert_eq!(&asked(&layer)[..], b"opaque");
}

#[tokio::test]
async fn the_service_is_taken_off_the_name_and_the_reply_left_as_it_comes() {
    let same = layer(None, true, Service::default());
    let other = layer(Some(Protocol::Compact), true, Service::default());
    for form in [Form::Strict, Form::Old, Form::Compact] {
        for (layer, theirs) in [(&same, form), (&other, Form::Compact)] {
            for (name, bare) in
                [(&b"Users:get"[..], &b"get"[..]), (b"get", b"get"), (b"a:b:c", b"b:c"), (b":", b"")]
            {
                let answer = ask(layer, call(form, name, 7)).await.unwrap();
                assert_eq!(asked(layer), call(theirs, bare, 7), "{form:?}");
                assert_eq!(answer.body, result(form, without_service(bare), 7), "{form:?}");
            }
        }
    }
}

/// As the attempt deadline does it.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_leaves_the_request_as_it_was() {
    struct Never;
    impl Serve for Never {
        async fn call(&self, _: &mut Request) -> Result<Response, Failure> {
            std::future::pending().await
        }
    }
    let params = super::super::Params { strip_service: true, ..Default::default() };
    let layer = Translated::new(Translation::of(&params).unwrap(), Never);
    let body = call(Form::Strict, b"Users:get", 1);
    let mut request = request(body.clone());
    let cut = tokio::time::timeout(std::time::Duration::from_secs(1), layer.call(&mut request)).await;
    assert!(cut.is_err());
    assert_eq!(*request.body.bytes(), body);
}
