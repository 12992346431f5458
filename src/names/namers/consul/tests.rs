//! What a real agent said, and what it makes.

use super::place::Place;
use super::*;
use crate::outside::http;
use muxgate_wire::name::Path;

fn params() -> Params {
    let base = "http://127.0.0.1:8500".to_owned();
    Params {
        agent: http::Params { base, tls: None, credentials: Credentials::None },
        include_tag: false,
        health: None,
        consistency: Consistency::Default,
        prefer_service_address: true,
        weights: Vec::new(),
    }
}

fn members(params: &Params) -> Vec<Member> {
    let said = include_str!("../../../../tests/golden/consul/users.json");
    let all: Vec<Instance> = serde_json::from_str(said).unwrap();
    all.into_iter().filter_map(|instance| instance.member(params)).collect()
}

#[test]
fn a_recorded_answer_is_read() {
    let all = members(&params());
    let healthy = members(&Params { health: Some(vec![Status::Passing]), ..params() });
    assert!(!all.is_empty() && !healthy.is_empty(), "{all:?}");
    assert!(healthy.len() < all.len(), "some are not well: {all:?}");
    assert!(healthy.iter().all(|member| all.contains(member)));
    assert!(all.iter().all(|member| member.port > 0 && member.weight > 0.0));
}

#[test]
fn names_have_a_data_centre_and_a_service() {
    let place = |text: &str, tag| {
        let place = Place::read(&Path::parse(text).unwrap(), tag)?;
        Some((place.query(), place.subject().unwrap().to_string()))
    };
    let local = ("/v1/health/service/users?".to_owned(), "/.local/users".to_owned());
    assert_eq!(place("/.local/Users/rest", false), Some(local));
    let tagged =
        ("/v1/health/service/users?dc=eu&tag=v%262&".to_owned(), r"/eu/\x76\x26\x32/users".to_owned());
    assert_eq!(place(r"/eu/v\x262/users", true), Some(tagged));
    for none in ["/eu", r"/eu/\x2e\x2e", r"/e\x2fu/users"] {
        assert_eq!(place(none, false), None, "{none}");
    }
}
