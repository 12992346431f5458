//! What people write. The whole file is read, every mistake is noted, and only a file without any becomes a plan.

mod announcers;
mod clients;
mod dns;
mod listeners;
mod namers;
mod names;
mod observe;
mod overlay;
mod overrides;
mod remote;
mod services;
mod store;
pub(super) mod tables;
mod tls;
mod transformers;
mod zk;

use super::node::Node;
use super::plan::{Plan, State};
use super::problem::{Problems, Report};
use super::reader::{Fields, File, Shape};
use crate::names::table;

pub(super) use store::of_flags;

/// Most worker threads.
const MAX_THREADS: u64 = 1024;

const ROOT: Shape = Shape {
    what: "the file",
    keys: &[
        "admin",
        "threads",
        "telemetry",
        "stateDir",
        "dns",
        "namers",
        "announcers",
        "store",
        "dtab",
        "listeners",
        "services",
        "clients",
    ],
    strangers: &[
        ("servers", "servers are called `listeners` here"),
        ("server", "servers are called `listeners` here"),
        (
            "routers",
            "there is one router: `dtab`, `listeners`, `services` and `clients` stand at the top of the file",
        ),
        ("service", "write `services`, a list of settings by `prefix` of the name"),
        ("client", "write `clients`, a list of settings by `prefix` of the bound id"),
        ("zipkin", "write it as an item of `telemetry`: `- kind: io.l5d.zipkin`"),
        ("interpreter", "names are resolved here, by `dtab` and `namers`"),
        ("usage", "nothing is reported to anybody: leave this out"),
        ("shutdownGraceMs", "it belongs into `admin`"),
    ],
};

/// Reads a file; `store` takes the place of what it says of one.
pub(super) fn read(name: &str, text: &str, store: Option<table::Params>) -> Result<Plan, Report> {
    let file = File { text, problems: Problems::default() };
    let root = if text.len() > super::MAX_FILE {
        let message = format!("the file has {} bytes, the limit is {}", text.len(), super::MAX_FILE);
        file.problems.add(0..0, message, "");
        None
    } else {
        Node::read(text, &file.problems)
    };
    let plan = root.as_ref().and_then(|root| plan(name, &file, root, store));
    file.problems.finish(name, text, plan)
}

fn plan(name: &str, file: &File<'_>, root: &Node, over: Option<table::Params>) -> Option<Plan> {
    let fields = Fields::open(file, &ROOT, root)?;
    let (admin, grace) = observe::admin(&fields);
    let (zipkin, recent_traces) = observe::telemetry(&fields);
    let dns = dns::dns(&fields);
    let state = state(&fields);
    let namers = namers::namers(&fields);
    let followed = over.is_some() || fields.get("store").is_some();
    let store = store::store(&fields).map(|store| over.or(store));
    let dtab = names::dtab(&fields, namers.as_deref(), followed);
    let announcers = announcers::announcers(&fields);
    let listeners = listeners::listeners(&fields, admin.as_ref(), announcers.as_deref());
    let services = services::services(&fields, &listeners);
    let clients = clients::clients(&fields, namers.as_deref());
    let threads = fields.count("threads", 1..=MAX_THREADS, "leave the key out for half of the cores");
    Some(Plan {
        name: name.into(),
        text: file.text.into(),
        threads: threads.map_or_else(half_of_the_cores, |threads| threads as usize),
        admin,
        grace,
        zipkin,
        recent_traces,
        dns,
        state,
        namers: namers?,
        store: store?,
        dtab: dtab?,
        listeners: announcers.and(listeners)?,
        services,
        clients,
    })
}

/// A folder, or `none`.
fn state(fields: &Fields<'_>) -> State {
    match fields.word("stateDir") {
        None => State::Default,
        Some("none") => State::Nowhere,
        Some(folder) => State::Folder(folder.into()),
    }
}

/// The gateway shares its host with the services it stands before.
fn half_of_the_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}
