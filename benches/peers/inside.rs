//! The gateway's flow inside this process, in front of one service.

use muxgate::flow::accept::{self, Listener};
use muxgate::flow::dispatch::Upstream;
use muxgate::flow::{Flow, Parts, address, admit, bind, choose, dispatch};
use muxgate::names::Binder;
use muxgate::names::namers::configured::Env;
use muxgate::names::namers::{dns, system};
use muxgate::observe::stats::Limits;
use muxgate::observe::{Registry, Tracer};
use muxgate_wire::name::{Dtab, Path};
use muxgate_wire::thrift::Protocol;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;

/// How a listener's calls are named here: those without a destination go to `/svc/echo`.
pub fn naming() -> address::Params {
    let path = |text: &str| Path::parse(text).expect("a path");
    address::Params {
        prefix: path("/svc"),
        default: path("/echo"),
        method_in_dst: false,
        service_in_dst: false,
    }
}

/// Opens a listener on a free port whose calls all go to `service`, which speaks this protocol if there is one. Must be
/// called on a runtime.
///
/// # Errors
/// When no port can be opened.
pub fn listen(service: SocketAddr, upstream: Upstream, protocol: Option<Protocol>) -> io::Result<Listener> {
    let dtab = format!("/svc => /$/inet/{}/{}", service.ip(), service.port());
    let dtab = Dtab::parse(dtab).map_err(io::Error::other)?;
    let namers = system(&Env::of(&dns::Params::default())).into_iter().collect();
    let flow = Flow::new(Parts {
        binder: Arc::new(Binder::new(namers, watch::channel(dtab.into()).1)),
        registry: Registry::new(Limits::default()),
        tracer: Tracer::off(),
        service: Arc::new(|_: &Path| bind::Params::default()),
        cluster: Arc::new(|_: &Path| choose::Params::default()),
        endpoint: Arc::new(move |_: &Path| dispatch::Params { upstream, protocol, ..Default::default() }),
        bounds: bind::Bounds::default(),
    });
    let port = accept::Params::new("bench", (Ipv4Addr::LOCALHOST, 0).into());
    flow.listen(port, &naming(), &admit::Params::default())
}
