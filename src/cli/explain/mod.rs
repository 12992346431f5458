//! `muxgate explain`: what a name would lead to and why, asked of the namers themselves or of a running gateway.

mod outline;
#[cfg(test)]
mod tests;

use super::{Failed, failed, on_runtime, read, say};
use crate::app;
use crate::config::{self, Plan};
use crate::names::namers::configured::Env;
use crate::names::namers::{dns, system};
use crate::names::{Binder, Namer, State};
use crate::outside::http::{Credentials, Http};
use clap::Args;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use muxgate_wire::name::{Dtab, Path};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a gateway may take beyond the time that it gives its namers.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(super) const EXAMPLES: &str = "Examples:
  muxgate explain /svc/users gate.yaml
  muxgate explain /svc/users gate.yaml --dtab '/svc/users => /#/io.l5d.fs/users-next'
  muxgate explain /svc/users --admin 127.0.0.1:9990
  muxgate explain /svc/users --dtab '/svc => /$/inet/localhost/9000'

Exit code: 0 if the name leads to an address, 1 if not.";

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The name, as in /svc/users
    path: String,
    /// Ask the namers of this configuration, by its dtab; `-` reads standard input. Without: the system namers alone
    #[arg(conflicts_with = "admin")]
    file: Option<PathBuf>,
    /// Entries over those of the file or the gateway, as in '/svc => /$/inet/127.0.0.1/9000'
    #[arg(long, value_name = "TEXT", default_value = "")]
    dtab: String,
    /// Ask the gateway whose admin pages are here
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// Wait so long for discovery, in milliseconds
    #[arg(long, value_name = "MS", default_value = "2000", conflicts_with = "admin")]
    wait: u64,
    /// Print the tree as JSON, in the form of linkerd's delegator
    #[arg(long)]
    json: bool,
}

/// What is known about a name: its tree, or why it has none.
struct Explained {
    tree: Result<Value, String>,
    /// Without a tree: what became of the name in one line, and whether it leads to an address.
    line: Option<(String, bool)>,
}

pub(super) fn explain(args: ExplainArgs) -> Result<(), Failed> {
    let path = Path::parse(&args.path).map_err(|error| failed(format!("the path: {error}")))?;
    let dtab = Dtab::parse(&args.dtab).map_err(|error| failed(format!("--dtab: {error}")))?;
    let plan = match &args.file {
        Some(file) => {
            let (name, text) = read(file)?;
            Some(config::parse(&name, &text).map_err(failed)?)
        }
        None => None,
    };
    on_runtime(1, async move {
        let explained = match args.admin {
            Some(admin) => ask(admin, &args).await?,
            None => work_out(plan.as_ref(), &path, &dtab, Duration::from_millis(args.wait)).await?,
        };
        tell(&args.path, &explained, args.json)
    })
}

/// Asks the namers.
async fn work_out(
    plan: Option<&Plan>,
    path: &Path,
    dtab: &Dtab,
    within: Duration,
) -> Result<Explained, Failed> {
    let (namers, base) = match plan {
        Some(plan) => (app::namers(plan, &Env::of(plan.dns())).map_err(failed)?, plan.dtab().clone()),
        None => (system(&Env::of(&dns::Params::default())), Dtab::empty()),
    };
    Ok(explained(namers, base, path, dtab, within).await)
}

async fn explained(
    namers: Vec<Arc<dyn Namer>>,
    base: Dtab,
    path: &Path,
    dtab: &Dtab,
    within: Duration,
) -> Explained {
    let binder = Binder::new(namers.into_iter().collect(), watch::channel(base.into()).1);
    match binder.delegate(path, dtab, within).await {
        Ok(tree) => Explained { tree: Ok(tree.to_json()), line: None },
        Err(error) => {
            let resolution = binder.dry_run(path, dtab, within).await;
            let line = crate::names::explain::explain(path, &resolution);
            let leads = match &resolution.state {
                State::Ok(tree) => tree.leaves().iter().any(|bound| bound.addr.borrow().has_members()),
                _ => false,
            };
            Explained { tree: Err(error.to_string()), line: Some((line, leads)) }
        }
    }
}

/// Asks a gateway.
async fn ask(admin: SocketAddr, args: &ExplainArgs) -> Result<Explained, Failed> {
    let http =
        Http::new(&format!("http://{admin}"), None, Credentials::None).map_err(|error| failed(error.text))?;
    let body = json!({"path": args.path, "dtab": args.dtab}).to_string();
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let asked =
        http.send(Method::POST, "/delegator.json", HeaderMap::from_iter(kind), body, ANSWER_WITHIN).await;
    let answer = asked.map_err(|error| failed(error.text))?;
    let told: Value = serde_json::from_slice(&answer.body)
        .map_err(|error| failed(format!("http://{admin}/delegator.json: {}: {error}", answer.status)))?;
    let tree = match answer.status {
        StatusCode::OK => Ok(told),
        status => Err(told["error"].as_str().map_or_else(|| status.to_string(), str::to_owned)),
    };
    Ok(Explained { tree, line: None })
}

fn tell(path: &str, explained: &Explained, as_json: bool) -> Result<(), Failed> {
    let (text, leads) = told(path, explained, as_json);
    say(&text)?;
    if leads { Ok(()) } else { Err(Failed) }
}

/// What is printed, and whether the name leads to an address.
fn told(path: &str, explained: &Explained, as_json: bool) -> (String, bool) {
    match &explained.tree {
        Ok(tree) => {
            let (text, leads) = outline::text(tree);
            (if as_json { format!("{tree:#}\n") } else { text }, leads)
        }
        Err(why) if as_json => (format!("{:#}\n", json!({"error": why})), false),
        Err(why) => {
            let (line, leads) = explained.line.clone().unwrap_or_default();
            (outline::plain(&format!("{path} has no tree that ends: {why}\n{line}\n")), leads)
        }
    }
}
