use super::*;
use muxgate_rpc::Purse;

fn small() -> Arc<Registry> {
    Registry::new(Limits { listeners: 2, routes: 2, endpoints: 1, label: 10 })
}

#[test]
fn one_label_is_one_series_for_as_long_as_it_is_held() {
    let registry = small();
    let first = registry.route("/svc/a");
    let again = registry.route("/svc/a");
    assert!(Arc::ptr_eq(&first, &again));
    drop((first, again));
    assert!(registry.routes().is_empty());
}

/// BC-19: endless names make no endless series.
#[test]
fn names_without_room_share_one_series() {
    let registry = small();
    let kept = [registry.route("/a"), registry.route("/b")];
    let others: Vec<_> = (0..1000).map(|n| registry.route(&format!("/x{n}"))).collect();
    assert!(others.iter().all(|other| &*other.label == OTHER));
    assert_eq!(registry.routes().len(), 3);
    drop(kept);
    assert_eq!(&*registry.route("/c").label, "/c");
    assert!(Arc::ptr_eq(&registry.unknown_route(), &registry.unknown_route()));
}

#[test]
fn long_labels_are_cut_between_characters() {
    let registry = small();
    assert_eq!(&*registry.route("/12345678é").label, "/12345678");
    assert_eq!(&*registry.route("/123456789abc").label, "/123456789");
}

#[test]
fn endpoints_are_told_apart_by_cluster_and_address() {
    let registry = Registry::new(Limits::default());
    let address = "127.0.0.1:1".parse().expect("an address");
    let (a, b) = (registry.endpoint("/#/a", address), registry.endpoint("/#/b", address));
    assert!(!Arc::ptr_eq(&a, &b));
    assert_eq!(registry.endpoints().len(), 2);
}

#[test]
fn connections_are_open_while_their_guard_lives() {
    let listener = small().listener("in");
    let connection = listener.connection();
    connection.decode_errors.add_one("frame");
    connection.decode_errors.add_one("frame");
    assert_eq!((listener.open.get(), listener.accepted.get()), (1, 1));
    drop(connection);
    assert_eq!(listener.open.get(), 0);
    assert_eq!(listener.decode_errors.get(), [("frame", 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_shown_while_the_purse_lives() {
    let route = small().route("/svc/a");
    assert_eq!(route.budget_balance(), None);
    let purse = Arc::new(Purse::default());
    route.watch_purse(&purse);
    assert_eq!(route.budget_balance(), Some(100));
    drop(purse);
    assert_eq!(route.budget_balance(), None);
}
