//! What a checked file would do, in words.

use crate::config::Plan;
use crate::config::plan::{Listener, ListenerTls};
use crate::names::explain::explain;
use crate::names::namers::configured::Env;
use crate::names::namers::system;
use crate::names::{Answer, Book, Lookup, Namers, State, resolve};
use muxgate_rpc::tls::ClientAuth;
use muxgate_wire::mux::handshake::TlsLevel;
use muxgate_wire::name::{NameTree, Path};
use std::fmt::Write;

/// The summary that `muxgate check` prints.
pub(super) fn summary(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    write(plan, &mut out).map_or_else(|_| String::new(), |()| out)
}

fn write(plan: &Plan, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{}: ok", plan.name())?;
    for Listener { accept, address, admit, tls, announce } in plan.listeners() {
        let named = address.prefix.concat(&address.default);
        write!(
            out,
            "  listens on {} ({}); calls without a destination are named {named}",
            accept.address, accept.name
        )?;
        let method = if address.method_in_dst { "/METHOD" } else { "" };
        write!(out, "{method}")?;
        if address.service_in_dst {
            write!(out, ", or {}/SERVICE{method} if the method is SERVICE:METHOD", address.prefix)?;
        }
        if let Some(tls) = tls {
            write!(out, "; {}", encrypted(tls))?;
        }
        match admit.max_concurrent {
            Some(most) => writeln!(out, "; at most {most} calls at once")?,
            None => writeln!(out)?,
        }
        for set in announce {
            writeln!(out, "    announced as {} in ZooKeeper at {}", set.node, set.params.zk)?;
        }
    }
    for namer in plan.namers() {
        writeln!(out, "  names below /#{} are {}", namer.prefix, namer)?;
    }
    if let Some(store) = plan.store() {
        let over = if plan.dtab().is_empty() { "" } else { "; over it" };
        writeln!(out, "  follows {store}{over}")?;
    }
    for entry in plan.dtab().entries() {
        writeln!(out, "  {} => {}", entry.prefix, entry.dst)?;
    }
    match plan.admin() {
        Some(admin) => writeln!(out, "  admin pages on http://{}/", admin.address)?,
        None => writeln!(out, "  no admin pages")?,
    }
    if let Some(zipkin) = plan.zipkin() {
        writeln!(out, "  spans to {} as {}, share {}", zipkin.url, zipkin.service_name, zipkin.sample_rate)?;
    }
    writeln!(out, "  {} threads, {} ms to finish calls at the end", plan.threads(), plan.grace().as_millis())
}

fn encrypted(tls: &ListenerTls) -> String {
    let how = match tls.opportunistic {
        TlsLevel::Off => "TLS",
        TlsLevel::Desired => "TLS or plain, as callers want",
        TlsLevel::Required => "TLS, from the first byte or by agreement in Mux",
    };
    match tls.files.clients {
        ClientAuth::Off => how.to_string(),
        ClientAuth::Offered(_) => format!("{how}, client certificates welcome"),
        ClientAuth::Required(_) => format!("{how}, client certificates required"),
    }
}

/// What is allowed and yet hardly meant: warnings, one a line.
pub(super) fn doubts(plan: &Plan) -> String {
    let mut out = String::new();
    for namer in plan.namers() {
        if let Some(doubt) = namer.discovery.doubt() {
            let _ = writeln!(out, "warning: {doubt}");
        }
    }
    for Listener { accept, announce, .. } in plan.listeners() {
        if !announce.is_empty() && accept.address.ip().is_loopback() {
            let (name, ip) = (&accept.name, accept.address.ip());
            let _ = writeln!(out, "warning: {name} announces {ip}, where only this host reaches it");
        }
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return out };
    // Namers of addresses want a runtime for what they would look up; here nothing of it runs.
    let _entered = runtime.enter();
    let book = Closed::new(plan);
    // What a store says is not known here.
    let listeners = if plan.store().is_none() { plan.listeners() } else { &[] };
    for Listener { accept, address, .. } in listeners {
        let mut name = address.prefix.concat(&address.default);
        if address.method_in_dst {
            name = name.child(b"METHOD").unwrap_or(name);
        }
        let resolution = resolve(plan.dtab(), &name, &book);
        if matches!(resolution.state, State::Failed(_) | State::Ok(NameTree::Neg)) {
            let why = explain(&name, &resolution);
            let _ =
                writeln!(out, "warning: calls without a destination at {} get nowhere: {why}", accept.name);
        }
    }
    out
}

/// The system namers say what they always say; those of the file have not been asked.
struct Closed {
    system: Namers,
    prefixes: Vec<Path>,
}

impl Closed {
    fn new(plan: &Plan) -> Self {
        let env = Env::of(plan.dns());
        let below = Path::parse("/#").unwrap_or_default();
        Self {
            system: system(&env).into_iter().collect(),
            prefixes: plan.namers().iter().map(|namer| below.concat(&namer.prefix)).collect(),
        }
    }
}

/// The place of all namers of the file.
const CONFIGURED: usize = usize::MAX;

impl Book for Closed {
    fn candidates(&self, path: &Path) -> Vec<usize> {
        match self.prefixes.iter().any(|prefix| path.starts_with(prefix)) {
            true => vec![CONFIGURED],
            false => self.system.candidates(path),
        }
    }

    fn prefix(&self, namer: usize) -> Path {
        self.system.get(namer).map(|namer| namer.prefix().clone()).unwrap_or_default()
    }

    fn said(&self, namer: usize, path: &Path) -> Option<Answer> {
        match self.system.get(namer)?.lookup(path) {
            Lookup::Fixed(answer) => Some(answer),
            Lookup::Live(_) => None,
        }
    }
}
