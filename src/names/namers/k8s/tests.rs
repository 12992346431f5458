//! What a real API server said, and the names that it makes.

use super::answer::{Event, List};
use super::slices::{Names, Slices};
use super::*;
use crate::outside::http;

const LIST: &str = include_str!("../../../../tests/golden/kubernetes/list.json");
const PAGES: [&str; 2] = [
    include_str!("../../../../tests/golden/kubernetes/page-1.json"),
    include_str!("../../../../tests/golden/kubernetes/page-2.json"),
];
const WATCH: &str = include_str!("../../../../tests/golden/kubernetes/watch.jsonl");
const TOO_OLD: &str = include_str!("../../../../tests/golden/kubernetes/too-old.jsonl");
const EMPTY: &str = include_str!("../../../../tests/golden/kubernetes/empty.json");

fn shown(names: Names) -> Vec<String> {
    let mut all: Vec<_> = names
        .into_iter()
        .map(|(name, members)| {
            let members: Vec<_> = members.iter().map(|m| format!("{}:{}", m.host, m.port)).collect();
            format!("{name} {}", members.join(" ")).trim_end().to_owned()
        })
        .collect();
    all.sort();
    all
}

fn listed(pages: &[&str], label: Option<&str>) -> Slices {
    let mut slices = Slices::new(label.map(Arc::from));
    for page in pages {
        let page: List = serde_json::from_str(page).unwrap();
        for object in page.items.unwrap() {
            slices.put(object).unwrap();
        }
    }
    slices
}

const USERS: [&str; 5] = [
    "/9090/users 10.1.0.1:9090 10.1.0.2:9090",
    "/9091/users 10.1.0.3:9091",
    "/9990/users 10.1.0.1:9990 10.1.0.2:9990",
    "/admin/users 10.1.0.1:9990 10.1.0.2:9990",
    "/thrift/users 10.1.0.1:9090 10.1.0.2:9090 10.1.0.3:9091",
];

#[test]
fn a_list_gives_the_ready_endpoints_by_port_name_and_number() {
    assert_eq!(shown(listed(&[LIST], None).all()), USERS);
    assert_eq!(shown(listed(&PAGES, None).all()), USERS);
    assert!(listed(&[EMPTY], None).all().is_empty());
}

#[test]
fn a_label_is_part_of_the_name() {
    let names = shown(listed(&[LIST], Some("app")).all());
    assert_eq!(names[0], "/9090/users/users-app 10.1.0.1:9090 10.1.0.2:9090");
    assert!(listed(&[LIST], Some("team")).all().is_empty());
}

#[test]
fn a_watch_changes_only_the_service_of_the_slice() {
    let mut slices = listed(&[LIST], None);
    let mut said = Vec::new();
    for line in WATCH.lines() {
        let event: Event = serde_json::from_str(line).unwrap();
        let names = match event.r#type.as_str() {
            "ADDED" | "MODIFIED" => slices.put(event.object).unwrap(),
            "DELETED" => slices.remove(&event.object.metadata.name),
            other => {
                assert_eq!((other, event.object.metadata.resource_version.as_str()), ("BOOKMARK", "184"));
                continue;
            }
        };
        said.push(shown(names));
    }
    let thrift = said[0].iter().find(|name| name.starts_with("/thrift/users"));
    assert!(thrift.is_some_and(|name| name.contains("10.1.0.5:9090")), "{:?}", said[0]);
    assert_eq!(said[1], ["/8080/orders 10.2.0.1:8080"]);
    assert!(said[2].contains(&"/9091/users".to_owned()), "the port of the slice that went: {:?}", said[2]);
    assert_eq!(said.len(), 3);
}

#[test]
fn a_version_that_is_too_old_is_told_from_other_errors() {
    let event: Event = serde_json::from_str(TOO_OLD).unwrap();
    assert_eq!((event.r#type.as_str(), event.object.code), ("ERROR", 410));
    assert_eq!(event.object.reason, "Expired");
}

#[tokio::test]
async fn names_that_kubernetes_would_not_allow_are_negative() {
    let api = http::Params { base: "http://127.0.0.1:1".into(), tls: None, credentials: Default::default() };
    let namer = |namespace: Option<&str>, label: Option<&str>| {
        let (namespace, label) = (namespace.map(str::to_owned), label.map(str::to_owned));
        K8s::new(&Params { api: api.clone(), namespace, label }).unwrap()
    };
    let means = |namer: &K8s, path: &str| {
        let means = namer.meanings(&Path::parse(path).unwrap()).unwrap();
        means.first().map(|m| format!("{} {} {}", m.subject, m.name, m.used)).unwrap_or_default()
    };
    let plain = namer(None, None);
    assert_eq!(means(&plain, "/shop/thrift/users/rest"), "/shop /thrift/users 3");
    assert_eq!(means(&plain, "/shop/9090/users"), "/shop /9090/users 3");
    for odd in ["/shop", "/shop/thrift", "/Shop/thrift/users", "/shop/09090/users", "/shop/70000/users"] {
        assert_eq!(means(&plain, odd), "", "{odd}");
    }
    let set = namer(Some("shop"), Some("app"));
    assert_eq!(means(&set, "/thrift/users/blue/rest"), "/shop /thrift/users/blue 3");
    assert_eq!(means(&set, "/thrift/users"), "");
}
