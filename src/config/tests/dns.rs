//! Names that DNS or a pattern answers.

use crate::config::{Report, parse};
use crate::names::namers::configured::Discovery;
use crate::names::namers::pattern::Pattern;
use crate::names::namers::{dns, dnssrv, pattern};
use std::time::Duration;

const REST: &str = "dtab: /svc => /nowhere\nlisteners: [{port: 4114}]\n";

#[test]
fn servers_are_set_with_a_port_or_without() -> Result<(), Report> {
    let plan = parse(
        "-",
        &format!("dns: {{servers: [10.0.0.2, '127.0.0.1:5353', '::1'], timeoutMs: 500}}\n{REST}"),
    )?;
    let servers: Vec<_> = plan.dns().servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.0.0.2:53", "127.0.0.1:5353", "[::1]:53"]);
    assert_eq!(plan.dns().timeout, Duration::from_millis(500));
    assert_eq!(*parse("-", REST)?.dns(), dns::Params::default());
    Ok(())
}

#[test]
fn namers_of_records_and_of_patterns() -> Result<(), Report> {
    let namers = "namers:
- kind: io.l5d.dnssrv
- {kind: io.l5d.dnssrv, prefix: /srv, refreshIntervalSeconds: 2, dnsHosts: [127.0.0.1]}
- {kind: io.l5d.rewrite, prefix: /api, pattern: '/{svc}/*/a-{v}', name: '/host/{svc}'}
";
    let plan = parse("-", &format!("{namers}{REST}"))?;
    let own = dnssrv::Params { refresh: Duration::from_secs(2), servers: vec![([127, 0, 0, 1], 53).into()] };
    let read = |text| Pattern::parse(text).unwrap_or_else(|why| panic!("{why}"));
    let rewrite = pattern::Rewrite { pattern: read("/{svc}/*/a-{v}"), name: read("/host/{svc}") };
    let shown = [
        "SRV records, asked for again after 5s at the latest",
        "SRV records, asked for again after 2s at the latest, of the DNS servers 127.0.0.1:53",
        "/host/{svc} if they begin with /{svc}/*/a-{v}",
    ];
    let said: Vec<_> = plan.namers().iter().map(|namer| namer.discovery.to_string()).collect();
    assert_eq!(said, shown);
    let found: Vec<_> = plan.namers().iter().map(|namer| namer.discovery.clone()).collect();
    let all =
        [Discovery::DnsSrv(dnssrv::Params::default()), Discovery::DnsSrv(own), Discovery::Rewrite(rewrite)];
    assert_eq!(found, all);
    Ok(())
}
