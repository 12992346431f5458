//! Name to endpoint: what a call pays to find out where it goes.

use bytes::Bytes;
use criterion::Criterion;
use muxgate::flow::bind::{self, Bind, Bounds, Clusters};
use muxgate::flow::choose::{Balance, Balancer, Endpoint};
use muxgate::names::namers::configured::Env;
use muxgate::names::namers::{dns, system};
use muxgate::names::{Answer, Binder, Book, Bound, Lookup, Namers, State, resolve};
use muxgate::observe::Registry;
use muxgate::observe::stats::Limits;
use muxgate_rpc::{Failure, Payload, Purse, Request, Response, Serve, Svc};
use muxgate_wire::name::{Dtab, Path};
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::Instant;

/// A table as an operator has it: fallbacks, a wildcard, one canary.
const DTAB: &str = "/host => /$/inet/127.0.0.1; /srv => /host/9000; /srv/*/users => /host/9001; \
     /s => /srv/prod; /s/pay => 95 * /srv/prod/pay & 5 * /srv/canary/pay; /svc => /s | /srv/old; /svc/old => ~";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    pick(&mut criterion);
    bind(&mut criterion);
    resolving(&mut criterion);
    purse(&mut criterion);
    criterion.final_summary();
}

/// Answers at once, with nothing.
struct Nothing;

impl Serve for Nothing {
    async fn call(&self, _: &mut Request) -> Result<Response, Failure> {
        Ok(Response::nothing())
    }
}

impl Clusters for Nothing {
    type Cluster = Svc;

    fn cluster(&self, _: &Bound) -> Svc {
        Svc::new(Nothing)
    }
}

fn path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

fn request(name: &Path) -> Request {
    let mut request = Request::new(Payload::opaque(Bytes::new()), Instant::now(), None);
    request.dst = name.clone();
    request
}

fn pick(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut group = criterion.benchmark_group("choose/pick");
    let ewma = Balancer::PeakEwma { decay: Duration::from_secs(10) };
    for (name, balancer) in [("least_loaded", Balancer::LeastLoaded), ("peak_ewma", ewma)] {
        for size in [1u16, 3, 100] {
            let balance = Balance::new(&balancer, 1);
            let member = |port| {
                let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                (Arc::new(Endpoint::new(addr, Svc::new(Nothing), &balancer)), 1.0)
            };
            balance.replace((1..=size).map(member).collect());
            // Each has answered, so that latencies are known.
            for (endpoint, _) in balance.members() {
                let answer = runtime.block_on(endpoint.call(&mut request(&Path::default())));
                assert!(answer.is_ok());
            }
            group.bench_function(format!("{name}/{size}"), |bencher| {
                bencher.iter(|| black_box(balance.pick(black_box(&[]))));
            });
        }
    }
}

fn namers() -> Namers {
    system(&Env::of(&dns::Params::default())).into_iter().collect()
}

/// A whole call through the room, to a cluster that answers at once: with its route known, and with a new name.
fn bind(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut group = criterion.benchmark_group("choose/bind");
    let bind = runtime.block_on(async {
        let base = watch::channel(Dtab::parse(DTAB).expect("a table").into()).1;
        let binder = Arc::new(Binder::new(namers(), base));
        let registry = Registry::new(Limits::default());
        let params: bind::ParamsOf = Arc::new(|_: &Path| bind::Params::default());
        Bind::new(binder, Arc::new(Nothing), params, registry, &Bounds::default())
    });
    let name = path("/svc/users/1");
    assert!(runtime.block_on(bind.call(&mut request(&name))).is_ok());
    group.bench_function("hit", |bencher| {
        bencher.to_async(&runtime).iter(|| async {
            let mut request = request(&name);
            bind.call(&mut request).await
        });
    });
    let mut serial = 0u64;
    let mut next = || {
        serial += 1;
        path(&format!("/svc/users/{serial}"))
    };
    group.bench_function("miss", |bencher| {
        bencher.iter(|| {
            let name = next();
            assert!(runtime.block_on(bind.call(&mut request(&name))).is_ok());
        });
    });
}

/// What the system namers say, without memory of it.
struct Ask(Namers);

impl Book for Ask {
    fn candidates(&self, path: &Path) -> Vec<usize> {
        self.0.candidates(path)
    }

    fn prefix(&self, namer: usize) -> Path {
        self.0.get(namer).map(|namer| namer.prefix().clone()).unwrap_or_default()
    }

    fn said(&self, namer: usize, path: &Path) -> Option<Answer> {
        match self.0.get(namer)?.lookup(path) {
            Lookup::Fixed(answer) => Some(answer),
            Lookup::Live(answer) => Some(answer.borrow().clone()),
        }
    }
}

fn resolving(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let mut group = criterion.benchmark_group("choose/resolve");
    let dtab = Dtab::parse(DTAB).expect("a table");
    let book = Ask(namers());
    for (kind, name) in [("one", path("/svc/users/1")), ("union", path("/svc/pay/1"))] {
        let found = resolve(&dtab, &name, &book);
        assert!(matches!(&found.state, State::Ok(tree) if !tree.leaves().is_empty()), "{found:?}");
        group.bench_function(kind, |bencher| {
            bencher.iter(|| resolve(black_box(&dtab), black_box(&name), &book));
        });
    }
    group.bench_function("parse_dtab", |bencher| bencher.iter(|| Dtab::parse(black_box(DTAB))));
}

fn purse(criterion: &mut Criterion) {
    let purse = Purse::default();
    let now = Instant::now();
    criterion.bench_function("choose/purse_deposit", |bencher| {
        bencher.iter(|| black_box(&purse).deposit(black_box(now)));
    });
}
