use super::*;
use std::io::Write;

fn nowhere() -> Params {
    // Nobody is asked in these tests: what they ask for is written, or needs no server.
    Params { servers: vec![SocketAddr::from(([127, 0, 0, 1], 9))], timeout: Duration::from_secs(1) }
}

#[tokio::test]
async fn localhost_needs_no_server() {
    match Client::new(&nowhere()).resolve("localhost").await {
        Found::Ips(ips, _) => assert!(ips.iter().all(IpAddr::is_loopback) && !ips.is_empty()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_hosts_file_is_read_again_when_it_changes() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "192.0.2.1 web web.example # here").unwrap();
    let client = Client::with_hosts_file(&nowhere(), file.path());
    let ips = async |host| match client.resolve(host).await {
        Found::Ips(ips, _) => ips.iter().map(IpAddr::to_string).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (ips("web").await, ips("web.example").await),
        (vec!["192.0.2.1".into()], vec!["192.0.2.1".into()])
    );
    writeln!(file, "192.0.2.2 web\n2001:db8::1 web").unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    assert_eq!(ips("web").await, ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
}

#[tokio::test]
async fn servers_that_nobody_is_behind_cannot_be_asked() {
    let client = Client::new(&nowhere());
    let Found::Failed(why) = client.resolve("a.test").await else { panic!("who said so?") };
    assert!(why.starts_with("DNS cannot be asked for A of a.test.: "), "{why}");
    assert!(client.srv("_mux._tcp.users.test").await.is_err());
    assert_eq!(client.resolve(&"x".repeat(64)).await, Found::Neg);
    assert!(matches!(client.srv("a..b").await, Ok((records, _)) if records.is_empty()));
}
