//! What can be said without a server; the rest is in `tests/names`, and the cases of the reference in `names::tests::golden`.

use super::*;

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn params() -> Params {
    Params { zk: crate::outside::zk::Params::parse("127.0.0.1:1").unwrap() }
}

fn meant(rest: &str) -> Vec<(String, usize)> {
    let meanings = Serversets::new(&params()).meanings(&path(rest)).unwrap();
    meanings.into_iter().map(|meaning| (meaning.subject.as_str().to_owned(), meaning.used)).collect()
}

#[test]
fn elements_are_cut_from_the_end() {
    assert_eq!(meant("/"), []);
    assert_eq!(
        meant("/prod/web:http/get"),
        [("/prod/web:http/get".into(), 3), ("/prod/web:http".into(), 2), ("/prod".into(), 1)]
    );
    // What cannot be a server set is not watched for one.
    assert_eq!(meant("/prod/member_0000000001"), [("/prod".into(), 1)]);
    assert_eq!(meant("/web#x/y"), [("/web#x/y".into(), 2)], "a shard that is none, where it is no suffix");
    assert_eq!(meant(r"/a\x2fb/c"), [], "no node has a slash in its name");
    let sets = Serversets::new(&params());
    for wrong in ["/web#x", "/web:a:b", "/web#0:http", "/:http", "/#1", "/web:", "/web#99999999999999999999"]
    {
        let said = sets.meanings(&path(wrong)).unwrap_err();
        assert!(said.contains("want <node>[:<endpoint>][#<shard>]"), "{said}");
    }
}

#[test]
fn the_system_namer_takes_its_ensemble_from_the_path() {
    let system = System::default();
    let used = |rest: &str| system.meanings(&path(rest)).map(|meanings| meanings.len());
    assert_eq!(used("/"), Ok(0));
    assert_eq!(used("/zk.local:2181/prod/web:http#3"), Ok(1));
    assert_eq!(used(r"/zk1:1\x2czk2:2#zk3:3/prod/web"), Ok(1), "two ensembles side by side");
    for wrong in ["/zk:0/a", "/a#b#c#d#e/x", "/zk:2181:1/x", r"/user\x40host:1/x"] {
        assert!(used(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn the_number_of_ensembles_is_bounded() {
    let system = System::default();
    let ensemble = |port: usize| system.ensemble(zk_params(port));
    let held: Vec<_> = (1..=MAX_ENSEMBLES).map(|port| ensemble(port).unwrap()).collect();
    let again = ensemble(1).unwrap();
    assert!(std::sync::Arc::ptr_eq(&again, &held[0]));
    let refused = ensemble(100).unwrap_err();
    assert!(refused.0.contains("16 other ensembles"), "{refused}");
    drop((held, again));
    assert!(ensemble(100).is_ok(), "those that nobody asks make room");
}

fn zk_params(port: usize) -> crate::outside::zk::Params {
    crate::outside::zk::Params::parse(&format!("127.0.0.1:{port}")).unwrap()
}

#[test]
fn a_negative_weight_takes_an_endpoint_out() {
    let member = Member::read(
        "member_1",
        br#"{"serviceEndpoint":{"host":"h","port":1},"additionalEndpoints":{"a":{"host":"h","port":2},"b":{"host":"h","port":70000},"c":7},"status":"ALIVE"}"#,
    );
    let weights = |vectors: &[&str]| {
        let vectors: Vec<_> = vectors.iter().map(|text| Vector::read(text.as_bytes())).collect();
        member.endpoints.iter().map(|endpoint| weight(&vectors, &member, endpoint)).collect::<Vec<_>>()
    };
    let out = r#"{"vector":[{"select":"inet=h:2","weight":-1.0}]}"#;
    let twice = r#"{"vector":[{"select":"inet=h:2","weight":-1.0},{"select":"inet=h:2","weight":-1.0}]}"#;
    assert_eq!(weights(&[out]), [Some(1.0), None]);
    assert_eq!(weights(&[twice]), [Some(1.0), None], "twice out is not in");
    assert_eq!(weights(&["hello", "{}", r#"{"vector":[{"select":"inet=h:1"}]}"#]), [Some(1.0), Some(1.0)]);
    let huge = r#"{"vector":[{"select":"member=member_1","weight":1e300},{"select":"member=member_1","weight":1e300}]}"#;
    assert!(weights(&[huge]).iter().all(|weight| weight.is_some_and(f64::is_finite)));
}
