//! The only file that knows every room: plan, then parts, then start, then drain.

mod certificates;

use crate::admin::{self, AdminState, View};
use crate::config::plan::{Announce, Plan, State};
use crate::flow::accept::Listener;
use crate::flow::{self, Flow, dispatch};
use crate::names::announce::Announcement;
use crate::names::namers::configured::Env;
use crate::names::source::Watched;
use crate::names::table::{self, Follower};
use crate::names::{Base, Binder, Namer, namers};
use crate::observe::span::{Recorder, Settings};
use crate::observe::{Registry, Ring, Tracer, Zipkin};
use crate::outside::kept::Kept;
use async_trait::async_trait;
use certificates::Certificates;
use futures_util::future::join_all;
use muxgate_wire::name::{Dtab, Path};
use serde_json::{Value, json};
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Spans kept of one trace for the admin pages.
const SPANS_OF_A_TRACE: usize = 100;
/// How long spans may take to reach Zipkin when everything else is done.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// How long the explanation of a name waits for discovery (linkerd's delegator: 2 s).
const EXPLAIN_WITHIN: Duration = Duration::from_secs(2);

/// Why the gateway could not start; names what was tried.
#[derive(Debug)]
pub struct StartError(String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// A gateway that takes calls.
pub struct Gateway {
    listeners: Vec<Listener>,
    announcements: Vec<Announcement>,
    admin: Option<SocketAddr>,
    stop_admin: CancellationToken,
    shown: Arc<Shown>,
    zipkin: Option<Arc<Zipkin>>,
    grace: Duration,
}

impl Gateway {
    /// Starts everything that the plan says. Must be called on a runtime.
    ///
    /// # Errors
    /// When an address cannot be listened on, or Zipkin's is none.
    pub async fn start(plan: Arc<Plan>) -> Result<Self, StartError> {
        let registry = Registry::new(crate::observe::stats::Limits::default());
        let ring = (plan.recent_traces() > 0 && plan.admin().is_some())
            .then(|| Ring::new(plan.recent_traces(), SPANS_OF_A_TRACE));
        let zipkin = match plan.zipkin() {
            Some(zipkin) => Some(
                Zipkin::start(&zipkin.url.to_string(), Arc::clone(registry.spans()))
                    .map_err(|error| StartError(error.to_string()))?,
            ),
            None => None,
        };
        let tracer = tracer(&plan, &registry, ring.clone(), zipkin.clone());
        let kept = kept(&plan);
        let env = env(&plan, Arc::clone(&kept), Arc::clone(&registry));
        let (mut follower, base) = followed(&plan, kept, &registry)?;
        let binder = Arc::new(Binder::new(self::namers(&plan, &env)?.into_iter().collect(), base));
        let certificates = Certificates::start(&plan, &registry)?;
        let flow = Flow::new(parts(&plan, certificates, Arc::clone(&binder), Arc::clone(&registry), tracer));
        let mut listeners = Vec::new();
        for listener in plan.listeners() {
            let address = listener.accept.address;
            let mut accept = listener.accept.clone();
            accept.tls =
                listener.tls.as_ref().map(|tls| certificates::listener(tls, &registry)).transpose()?;
            let opened = flow.listen(accept, &listener.address, &listener.admit);
            let opened = opened.map_err(|error| cannot_listen("listener", address, &error))?;
            listeners.push(opened);
        }
        if let (Some(follower), Some(first)) = (&mut follower, listeners.first()) {
            follower.report(&binder, &table::id(first.address()));
        }
        let stats: Vec<_> = listeners.iter().map(|listener| registry.listener(listener.name())).collect();
        let shown = Arc::new(Shown {
            ready: AtomicBool::new(true),
            plan: Arc::clone(&plan),
            flow,
            binder,
            watched: Arc::clone(&env.watched),
            follower,
        });
        let stop_admin = CancellationToken::new();
        let admin = match plan.admin() {
            Some(admin) => {
                let state = AdminState { registry, ring, view: Arc::clone(&shown) as _ };
                Some(serve_admin(admin.address, state, stop_admin.clone()).await?)
            }
            None => None,
        };
        // Last: who is found must be able to answer.
        let announced =
            plan.listeners().iter().zip(&listeners).zip(stats).flat_map(|((plan, listener), stats)| {
                let announce = move |to: &Announce| {
                    Announcement::start(&to.params, to.node.clone(), listener.address(), Arc::clone(&stats))
                };
                plan.announce.iter().map(announce)
            });
        let announcements = announced.collect();
        Ok(Self { listeners, announcements, admin, stop_admin, shown, zipkin, grace: plan.grace() })
    }

    /// Where each listener listens, by name.
    pub fn listeners(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.listeners.iter().map(|listener| (listener.name(), listener.address()))
    }

    /// Where the admin server listens.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Ends: not ready any more, out of discovery, no new connections, Tdrain to Mux callers, calls in flight finish within the grace time,
    /// spans are flushed.
    pub async fn drain(self) {
        self.shown.ready.store(false, Ordering::Relaxed);
        join_all(self.announcements.into_iter().map(Announcement::leave)).await;
        let mut draining = JoinSet::new();
        for listener in self.listeners {
            draining.spawn(listener.drain(self.grace));
        }
        let cut: usize = draining.join_all().await.into_iter().sum();
        if cut > 0 {
            tracing::warn!(connections = cut, "cut off at the end of the grace time");
        }
        if let Some(zipkin) = &self.zipkin {
            zipkin.shutdown(Instant::now() + FLUSH_WITHIN).await;
        }
        self.stop_admin.cancel();
    }
}

/// Runs a gateway until SIGTERM or SIGINT, then drains it. A second signal ends it at once.
///
/// # Errors
/// When it cannot start.
pub async fn run(plan: Plan) -> Result<(), StartError> {
    let gateway = Gateway::start(Arc::new(plan)).await?;
    for (name, address) in gateway.listeners() {
        say(format_args!("listening {name} {address}"));
        tracing::info!(listener = name, %address, "listening");
    }
    if let Some(address) = gateway.admin() {
        say(format_args!("admin {address}"));
        tracing::info!(%address, "admin pages");
    }
    let asked = stop_signal().await;
    tracing::info!(signal = asked, grace = ?gateway.grace, "draining");
    tokio::select! {
        () = gateway.drain() => tracing::info!("drained"),
        again = stop_signal() => tracing::warn!(signal = again, "asked again: ending at once"),
    }
    Ok(())
}

/// Tells whoever started us. If nobody reads it, that is no reason to stop: the log says the same.
fn say(line: fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Waits for SIGTERM or SIGINT and names it.
pub async fn stop_signal() -> &'static str {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = int.recv() => "SIGINT",
    }
}

fn tracer(plan: &Plan, registry: &Registry, ring: Option<Arc<Ring>>, zipkin: Option<Arc<Zipkin>>) -> Tracer {
    let settings = plan.zipkin().map_or_else(Settings::default, |zipkin| Settings {
        service: zipkin.service_name.clone(),
        sample_rate: Some(zipkin.sample_rate),
    });
    let (collector, ring) = (zipkin.map(|zipkin| zipkin as Arc<dyn Recorder>), ring.map(|ring| ring as _));
    Tracer::new(&settings, collector, ring, Arc::clone(registry.spans()))
}

/// What was learned by the process before; a place that cannot be used is no reason not to start.
fn kept(plan: &Plan) -> Arc<Kept> {
    match plan.state() {
        State::Folder(folder) if plan.has_state() => Kept::open(folder).unwrap_or_else(|why| {
            tracing::warn!(why, "nothing is kept over a restart");
            Kept::nowhere()
        }),
        _ => Kept::nowhere(),
    }
}

/// The base table: the file's own, over that of a store if there is one.
fn followed(
    plan: &Plan,
    kept: Arc<Kept>,
    registry: &Registry,
) -> Result<(Option<Follower>, watch::Receiver<Base>), StartError> {
    let Some(store) = plan.store() else {
        return Ok((None, watch::channel(Base::from(plan.dtab().clone())).1));
    };
    let started = Follower::start(store, plan.dtab().clone(), kept, registry.follow_base());
    let (follower, base) = started.map_err(|error| StartError(format!("the store: {error}")))?;
    Ok((Some(follower), base))
}

/// What the namers share. Must be called on a runtime.
fn env(plan: &Plan, kept: Arc<Kept>, registry: Arc<Registry>) -> Env {
    Env { kept, registry, ..Env::of(plan.dns()) }
}

/// The system namers, and behind them those of the configuration: the later one is asked first.
///
/// # Errors
/// One that cannot be built at all.
pub fn namers(plan: &Plan, env: &Env) -> Result<Vec<Arc<dyn Namer>>, StartError> {
    let mut all = namers::system(env);
    for namer in plan.namers() {
        all.push(namer.start(env).map_err(StartError)?);
    }
    Ok(all)
}

fn parts(
    plan: &Arc<Plan>,
    certificates: Certificates,
    binder: Arc<Binder>,
    registry: Arc<Registry>,
    tracer: Tracer,
) -> flow::Parts {
    let (services, clusters, endpoints) = (Arc::clone(plan), Arc::clone(plan), Arc::clone(plan));
    flow::Parts {
        binder,
        registry,
        tracer,
        service: Arc::new(move |name| services.service(name)),
        cluster: Arc::new(move |id| clusters.client(id).0),
        endpoint: Arc::new(move |id| {
            let tls = certificates.client(&endpoints, id);
            dispatch::Params { tls, ..endpoints.client(id).1 }
        }),
        bounds: flow::bind::Bounds::default(),
    }
}

async fn serve_admin(
    address: SocketAddr,
    state: AdminState,
    stop: CancellationToken,
) -> Result<SocketAddr, StartError> {
    let socket = TcpListener::bind(address).await;
    let socket = socket.map_err(|error| cannot_listen("admin server", address, &error))?;
    let address = socket.local_addr().map_err(|error| cannot_listen("admin server", address, &error))?;
    tokio::spawn(async move {
        if let Err(error) = admin::serve(socket, admin::router(state), stop.cancelled_owned()).await {
            tracing::error!(%error, "the admin server ended");
        }
    });
    Ok(address)
}

fn cannot_listen(what: &str, address: SocketAddr, error: &std::io::Error) -> StartError {
    StartError(format!("the {what} cannot listen on {address}: {error}"))
}

/// What the admin pages show.
struct Shown {
    ready: AtomicBool,
    plan: Arc<Plan>,
    flow: Flow,
    binder: Arc<Binder>,
    watched: Arc<Watched>,
    /// Where the base table is from, if not from the file alone.
    follower: Option<Follower>,
}

#[async_trait]
impl View for Shown {
    fn ready(&self) -> Result<(), String> {
        if !self.ready.load(Ordering::Relaxed) {
            return Err("draining".into());
        }
        let missing = self.follower.as_ref().and_then(Follower::missing);
        missing.map_or(Ok(()), |why| Err(format!("no table yet: {why}")))
    }

    fn table(&self) -> Value {
        let in_force = self.binder.in_force().borrow().table().map(|table| table.dtab.to_string());
        json!({"dtab": in_force, "store": self.follower.as_ref().map(Follower::to_json)})
    }

    fn config(&self) -> String {
        self.plan.text().to_owned()
    }

    fn names(&self) -> Value {
        Value::Array(self.flow.routes())
    }

    fn namers(&self) -> Value {
        self.watched.to_json()
    }

    async fn explain(&self, path: &str, dtab: &str) -> Result<Value, String> {
        let path = Path::parse(path).map_err(|error| format!("path: {error}"))?;
        let local = Dtab::parse(dtab).map_err(|error| format!("dtab: {error}"))?;
        let delegation = self.binder.delegate(&path, &local, EXPLAIN_WITHIN).await;
        delegation.map(|tree| tree.to_json()).map_err(|error| error.to_string())
    }
}
