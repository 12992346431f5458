use super::*;
use bytes::{Bytes, BytesMut};
use muxgate_rpc::Payload;
use muxgate_wire::thrift::{Kind, Protocol, write_head};
use tokio::time::Instant;

/// Answers with the name it was given.
struct Name;

impl Serve for Name {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let mut response = Response::nothing();
        response.body = request.dst.as_bytes().clone();
        Ok(response)
    }
}

fn params(method_in_dst: bool, service_in_dst: bool) -> Params {
    let path = |text: &str| Path::parse(text).unwrap();
    Params { prefix: path("/svc"), default: path("/web"), method_in_dst, service_in_dst }
}

/// The name of a call of `method` to `dst`, or why it has none.
async fn named(params: &Params, method: &[u8], dst: &str) -> Result<String, String> {
    let mut call = BytesMut::new();
    write_head(Protocol::Binary, Kind::Call, method, 1, &mut call);
    call.extend_from_slice(&[0]);
    let mut request = Request::new(Payload::thrift(call.freeze()).unwrap(), Instant::now(), None);
    request.dst = Path::parse(dst).unwrap();
    match Address::new(params, Name).call(&mut request).await {
        Ok(response) => Ok(String::from_utf8(response.body.to_vec()).unwrap()),
        Err(failure) => {
            assert_eq!(failure.why(), Why::BadRequest);
            Err(failure.to_string())
        }
    }
}

async fn name(method_in_dst: bool, dst: &str) -> String {
    named(&params(method_in_dst, false), b"a d", dst).await.unwrap()
}

#[tokio::test]
async fn a_call_means_its_destination_or_else_the_listeners_name() {
    assert_eq!(name(false, "/").await, "/svc/web");
    assert_eq!(name(false, "/s/users").await, "/svc/s/users");
}

#[tokio::test]
async fn the_method_is_the_last_element_and_any_byte_of_it_is_escaped() {
    assert_eq!(name(true, "/users").await, r"/svc/users/\x61\x20\x64");
}

#[tokio::test]
async fn a_multiplexed_service_is_the_destination_of_calls_that_have_none() {
    let of = async |method_in_dst, method: &[u8], dst| {
        named(&params(method_in_dst, true), method, dst).await.unwrap()
    };
    assert_eq!(of(false, b"Users:get", "/").await, "/svc/Users");
    assert_eq!(of(true, b"Users:get", "/").await, "/svc/Users/get");
    assert_eq!(of(false, b"Users:get", "/s/users").await, "/svc/s/users");
    assert_eq!(of(true, b"Users:get", "/s/users").await, "/svc/s/users/get");
    assert_eq!(of(false, b"get", "/").await, "/svc/web");
    assert_eq!(of(true, b"get", "/").await, "/svc/web/get");
    assert_eq!(of(true, b"Users:a:b", "/").await, r"/svc/Users/a:b");
}

#[tokio::test]
async fn any_byte_of_a_service_is_escaped_and_a_path_in_it_is_one_element() {
    let of = async |method: &[u8]| named(&params(false, true), method, "/").await.unwrap();
    assert_eq!(of(b"a/b:get").await, r"/svc/\x61\x2f\x62");
    assert_eq!(of(b"..:get").await, "/svc/..");
    assert_eq!(of(b"*:get").await, r"/svc/\x2a");
    assert_eq!(of(b"\xff\0;:get").await, r"/svc/\xff\x00\x3b");
}

#[tokio::test]
async fn an_empty_service_or_method_is_no_name() {
    let of = async |method: &[u8]| named(&params(true, true), method, "/").await;
    assert!(of(b":get").await.unwrap_err().contains("service name"));
    assert!(of(b"Users:").await.unwrap_err().contains("method name"));
    // Not asked for, a colon is a byte as any other.
    assert_eq!(named(&params(true, false), b"Users:get", "/").await.unwrap(), "/svc/web/Users:get");
}

#[tokio::test]
async fn a_body_that_is_not_thrift_has_no_service_and_no_method() {
    let call = async |params: Params| {
        let mut request = Request::new(Payload::opaque(Bytes::from_static(b"x:y")), Instant::now(), None);
        Address::new(&params, Name).call(&mut request).await.map(|response| response.body)
    };
    assert_eq!(&call(params(false, true)).await.unwrap()[..], b"/svc/web");
    assert!(call(params(true, true)).await.is_err());
}
