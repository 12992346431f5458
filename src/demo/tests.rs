use super::calls::{Call, Outcome};
use super::services::Service;
use super::*;

#[test]
fn calls_and_replies_come_back_as_they_were_sent() -> thrift::Result<()> {
    let call = Call { method: "charge".into(), seqid: -7, id: i64::MIN };
    assert_eq!(Call::read(&call.write()?)?, call);
    for outcome in [Outcome::Result("a \u{e4}".into()), Outcome::Exception("no".into())] {
        assert_eq!(Outcome::read(&call.answer(&outcome)?)?, (-7, outcome));
    }
    Ok(())
}

#[test]
fn broken_messages_are_errors() -> thrift::Result<()> {
    let whole = Call { method: "charge".into(), seqid: 1, id: 2 }.write()?;
    for end in 0..whole.len() {
        assert!(Call::read(&whole[..end]).is_err(), "{end}");
        assert!(Outcome::read(&whole[..end]).is_err(), "{end}");
    }
    Ok(())
}

#[test]
fn payments_fail_one_time_in_ten() {
    let failures =
        (0..1000).filter(|id| matches!(Service::Payments.answer(*id), Outcome::Exception(_))).count();
    assert_eq!(failures, 100);
}

/// A stand-in for the gateway: the demo's load talks straight to its services.
struct Direct(Vec<(Service, SocketAddr)>);

impl Gateway for Direct {
    fn listener(&self, name: &str) -> Option<SocketAddr> {
        self.0.iter().find(|(service, _)| service.name() == name).map(|(_, address)| *address)
    }

    fn admin(&self) -> Option<SocketAddr> {
        None
    }

    async fn drain(self) {}
}

#[tokio::test]
async fn the_demos_own_configuration_is_good_and_names_its_services() -> Result<(), String> {
    let options = Options {
        admin: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        zipkin: Some("http://127.0.0.1:9411".into()),
        lasts: Some(Duration::ZERO),
        rate: 50,
    };
    run(
        options,
        |plan| async move {
            let names: Vec<_> =
                plan.listeners().iter().map(|listener| listener.accept.name.clone()).collect();
            assert_eq!(names, ["users", "orders", "payments"]);
            let unused = SocketAddr::from(([127, 0, 0, 1], 9));
            Ok(Direct(Service::ALL.into_iter().map(|service| (service, unused)).collect()))
        },
        std::future::pending(),
    )
    .await
}
