use super::names::Names;
use super::*;
use crate::names::source::Member;
use crate::outside::etcd::{Event, KeyValue};

fn kv(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.into(), value: value.into(), revision: 1 }
}

fn shown(all: Vec<(Path, Vec<Member>)>) -> String {
    let member = |m: &Member| format!("{}:{}*{}", m.host, m.port, m.weight);
    let mut all: Vec<_> = all
        .iter()
        .map(|(name, members)| format!("{name}={}", members.iter().map(member).collect::<Vec<_>>().join(",")))
        .collect();
    all.sort();
    all.join(" ")
}

#[test]
fn members_are_json_or_host_and_port() {
    for (value, want) in [
        (r#"{"host":"a.test","port":80}"#, Some(("a.test", 80, 1.0))),
        (r#" {"host":"10.0.0.1","port":80,"weight":2.5,"zone":"x"} "#, Some(("10.0.0.1", 80, 2.5))),
        (r#"{"host":"[::1]","port":80,"weight":0}"#, Some(("::1", 80, 0.0))),
        ("10.0.0.1:9000\n", Some(("10.0.0.1", 9000, 1.0))),
        ("[::1]:9000", Some(("::1", 9000, 1.0))),
        ("a-b.test:1", Some(("a-b.test", 1, 1.0))),
        ("", None),
        ("a.test", None),
        ("a.test:0", None),
        ("a.test:+1", None),
        ("a.test:65536", None),
        (":80", None),
        ("http://a.test:80", None),
        ("a b:80", None),
        (r#"{"host":"a.test","port":"80"}"#, None),
        (r#"{"host":"a.test","port":80,"weight":-1}"#, None),
        (r#"{"host":"","port":80}"#, None),
        (r#"{"port":80}"#, None),
        (r#"["a.test", 80]"#, None),
    ] {
        let want = want.map(|(host, port, weight)| Member { host: host.into(), port, weight });
        assert_eq!(member::parse(value.as_bytes()), want, "{value}");
    }
    assert_eq!(member::parse(b"\xff:80"), None);
}

#[test]
fn keys_become_names_and_changes_are_told_once() {
    let deep = format!("/services/{}/m", ["x"; MAX_NAME + 1].join("/"));
    let kvs = [
        kv("/services/a/1", "h:1"),
        kv("/services/a/2", "nonsense"),
        kv("/services/a/b/1", "h:2"),
        kv("/services/lonely", "h:3"),
        kv("/services/a//1", "h:3"),
        kv("/services/a/", "h:3"),
        kv(&deep, "h:3"),
    ];
    let mut names = Names::new(b"/services/", &kvs);
    assert_eq!(names.keys(), kvs.len());
    assert_eq!(shown(names.all()), "/a/b=h:2*1 /a=h:1*1");

    let put = |key: &str, value: &str| Event::Put(kv(key, value));
    let gone = |key: &str| Event::Deleted(key.into());
    let told =
        names.change(vec![put("/services/a/2", "h:2"), put("/services/a/3", "h:3"), put(&deep, "h:4")]);
    assert_eq!(shown(told), "/a=h:1*1,h:2*1,h:3*1");
    assert_eq!(names.keys(), kvs.len() + 1);
    let told = names.change(vec![gone("/services/a/b/1"), gone("/services/lonely"), gone("/services/a/b/1")]);
    assert_eq!(shown(told), "/a/b=");
    assert_eq!(names.keys(), kvs.len() - 1);
    assert_eq!(shown(names.all()), "/a=h:1*1,h:2*1,h:3*1");
}

/// Who has ten thousand names is told of the one that changes.
#[test]
fn a_change_among_many_names_is_told_of_one() {
    let many: Vec<_> = (0..10_000).map(|n| kv(&format!("/services/{n}/m"), "h:1")).collect();
    let mut names = Names::new(b"/services/", &many);
    assert_eq!(names.all().len(), 10_000);
    assert_eq!(shown(names.change(vec![Event::Put(kv("/services/77/m", "h:2"))])), "/77=h:2*1");
}

#[tokio::test]
async fn the_longest_beginning_is_meant_first() {
    let path = |text: &str| Path::parse(text).unwrap();
    let node = crate::outside::http::Params {
        base: "http://127.0.0.1:2379".into(),
        tls: None,
        credentials: crate::outside::http::Credentials::None,
    };
    let params = Params { nodes: vec![node], path_prefix: path("/our/services") };
    assert_eq!(params.prefix(), b"/our/services/");
    assert_eq!(params.to_string(), "services below /our/services in etcd at http://127.0.0.1:2379");
    let source = EtcdSource::new(&params).unwrap();
    let names = |text: &str| -> Vec<_> {
        source.meanings(&path(text)).unwrap().iter().map(|m| m.name.to_string()).collect()
    };
    assert_eq!(names("/a/b"), ["/a/b", "/a"]);
    assert_eq!(names("/"), [""; 0]);
    assert_eq!(names("/1/2/3/4/5/6/7/8/9").first().map(String::as_str), Some("/1/2/3/4/5/6/7/8"));
}
