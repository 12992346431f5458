use super::*;
use bytes::Bytes;
use muxgate_rpc::Payload;
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

async fn name(method_in_dst: bool, dst: &str) -> String {
    let path = |text: &str| Path::parse(text).unwrap();
    let params = Params { prefix: path("/svc"), default: path("/web"), method_in_dst };
    let call = Bytes::from_static(b"\x80\x01\x00\x01\0\0\0\x03a d\0\0\0\x01\0");
    let mut request = Request::new(Payload::thrift(call).unwrap(), Instant::now(), None);
    request.dst = path(dst);
    let response = Address::new(&params, Name).call(&mut request).await.unwrap();
    String::from_utf8(response.body.to_vec()).unwrap()
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
