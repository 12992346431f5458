//! `io.l5d.consul`, right and wrong.

use crate::config::parse;
use crate::names::namers::configured::Discovery;
use crate::names::namers::consul::{Consistency, Params, Status};
use crate::outside::http::Credentials;

const REST: &str = "dtab: /svc => /#/io.l5d.consul/.local\nlisteners: [{port: 4114}]\n";

/// What this namer asks; or the first line of each complaint.
fn read(namer: &str) -> Result<Params, Vec<String>> {
    let plan = parse("gate.yaml", &format!("namers: [{{kind: io.l5d.consul{namer}}}]\n{REST}"));
    let plan = plan.map_err(|report| {
        let errors = report.to_string();
        errors.lines().filter_map(|line| line.strip_prefix("error: ").map(str::to_owned)).collect::<Vec<_>>()
    })?;
    match plan.namers() {
        [namer] => match &namer.discovery {
            Discovery::Consul(params) => Ok(params.clone()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_agent_of_this_host_is_asked_for_all_instances() {
    let params = read("").expect("no complaints");
    assert_eq!(params.to_string(), "services of Consul at http://localhost:8500");
    assert_eq!(params.agent.credentials, Credentials::None);
    assert_eq!((params.include_tag, params.health.as_ref()), (false, None));
    assert_eq!((params.consistency, params.prefer_service_address), (Consistency::Default, true));
    assert_eq!(params.weights, []);
    assert_eq!(read(", useHealthCheck: true").expect("good").health, Some(vec![Status::Passing]));
}

#[test]
fn everything_can_be_set() {
    let all = ", host: consul.test, port: 8501, tls: {disableValidation: true}, token: secret, includeTag: true, \
               useHealthCheck: true, healthStatuses: [passing, warning], consistencyMode: stale, \
               preferServiceAddress: false, weights: [{tag: Primary, weight: 100}, {tag: spare, weight: 0.5}]";
    let params = read(all).expect("no complaints");
    assert_eq!(params.to_string(), "services of Consul at https://consul.test:8501");
    let Credentials::Header(name, value) = &params.agent.credentials else { panic!("a header") };
    assert_eq!((name.as_str(), value.to_str().ok()), ("x-consul-token", Some("secret")));
    assert!(!format!("{params:?}").contains("secret"), "{params:?}");
    assert_eq!(params.health, Some(vec![Status::Passing, Status::Warning]));
    assert_eq!(params.weights, [("primary".to_owned(), 100.0), ("spare".to_owned(), 0.5)]);
    assert_eq!((params.include_tag, params.prefer_service_address), (true, false));
    assert_eq!(params.consistency, Consistency::Stale);
}

#[test]
fn mistakes_about_consul_are_explained() {
    for (namer, want) in [
        (", setHost: true", &["unknown key `setHost` in a namer"][..]),
        (", failFast: true", &["unknown key `failFast` in a namer"]),
        (", healthStatuses: [passing]", &["`healthStatuses` needs `useHealthCheck`"]),
        (", useHealthCheck: true, healthStatuses: [good, passing]", &["`good` is no status"]),
        (", useHealthCheck: true, healthStatuses: []", &["no instance could ever have one of no statuses"]),
        (", weights: [{tag: a}]", &["a weight by tag has no `weight`"]),
        (", weights: [{tag: a, weight: 0}]", &["`weight` cannot be 0: it goes from 0.001 to 1000000"]),
        (", token: \"a\\nb\"", &["`token` holds characters that no header can hold"]),
    ] {
        let said = read(namer).expect_err(namer);
        assert_eq!(said, want, "{namer}");
    }
}
