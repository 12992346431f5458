//! What a real Consul said, and the members that it makes.

use super::*;
use crate::outside::http;

const USERS: &str = include_str!("../../../../tests/golden/consul/users.json");

fn params() -> Params {
    Params {
        agent: http::Params { base: "http://localhost:1".into(), tls: None, credentials: Credentials::None },
        include_tag: false,
        health: None,
        consistency: Consistency::Default,
        prefer_service_address: true,
        weights: Vec::new(),
    }
}

fn members(params: &Params) -> Vec<String> {
    let instances: Vec<Instance> = serde_json::from_str(USERS).unwrap();
    let members = instances.into_iter().filter_map(|instance| instance.member(params));
    members.map(|member| format!("{}:{} * {}", member.host, member.port, member.weight)).collect()
}

#[test]
fn all_instances_count_unless_health_matters() {
    let all = ["127.0.0.1:9001 * 1", "127.0.0.2:9002 * 10", "127.0.0.3:9003 * 4", "127.0.0.4:9004 * 1"];
    assert_eq!(members(&params()), all);
    let of = |health: &[Status]| members(&Params { health: Some(health.to_vec()), ..params() });
    assert_eq!(of(&[Status::Passing]), all[..2]);
    assert_eq!(of(&[Status::Passing, Status::Warning]), all[..3]);
    assert_eq!(of(&[Status::Critical]), [""; 0]);
    assert_eq!(of(&[Status::Maintenance]), all[3..]);
}

#[test]
fn weights_by_tag_stand_in_place_of_those_of_consul() {
    let weights = vec![("v1".to_owned(), 2.0), ("primary".to_owned(), 8.5), ("v3".to_owned(), 100.0)];
    let by_tag = members(&Params { weights, ..params() });
    assert_eq!(
        by_tag,
        ["127.0.0.1:9001 * 8.5", "127.0.0.2:9002 * 1", "127.0.0.3:9003 * 1", "127.0.0.4:9004 * 1"]
    );
}

#[test]
fn the_node_stands_for_its_services_on_request() {
    let by_node = members(&Params { prefer_service_address: false, ..params() });
    assert!(by_node.iter().all(|member| member.starts_with("127.0.0.1:")), "{by_node:?}");
}

#[tokio::test]
async fn names_have_a_data_centre_a_service_and_perhaps_a_tag() {
    let means = |include_tag, path: &str| {
        let source = Consul::new(&Params { include_tag, ..params() }).unwrap();
        let means = source.meanings(&Path::parse(path).unwrap()).unwrap();
        means.first().map(|m| format!("{} {} {}", m.subject, m.name, m.used)).unwrap_or_default()
    };
    assert_eq!(means(false, "/.local/Users/rest"), "/.local/users / 2");
    assert_eq!(means(true, "/DC1/V2/users/rest"), "/dc1/v2/users / 3");
    for odd in ["/dc1", "/dc1/..", "/d.c/users", "/dc1/a\\x2fb", "/dc1/\\xff", "/dc1/a\\x00"] {
        assert_eq!(means(false, odd), "", "{odd}");
    }
    assert_eq!(means(true, "/dc1/users"), "");
}

#[test]
fn what_is_asked_for_is_escaped() {
    let path = Path::parse("/dc1/a\\x26b/\\x23\\xc3\\xa4").unwrap();
    let query = Place::read(&path, true).unwrap().query();
    assert_eq!(query, "/v1/health/service/%23%C3%A4?dc=dc1&tag=a%26b&");
}

#[test]
fn a_token_is_not_sent_over_the_network_without_a_word() {
    let name = ::http::HeaderName::from_static("x-consul-token");
    let credentials = Credentials::Header(name, ::http::HeaderValue::from_static("secret"));
    let doubt = |base: &str, credentials: &Credentials| {
        let agent = http::Params { base: base.into(), tls: None, credentials: credentials.clone() };
        Params { agent, ..params() }.doubt().is_some()
    };
    assert!(doubt("http://consul.test:8500", &credentials));
    for here in ["http://localhost:8500", "http://127.0.0.1:8500", "http://[::1]:8500"] {
        assert!(!doubt(here, &credentials), "{here}");
    }
    assert!(!doubt("http://consul.test:8500", &Credentials::None));
}
