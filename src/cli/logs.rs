//! Log lines: to stderr, as text or JSON.

use super::{Failed, failed};
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Variables that set the level; the first that is there counts.
const VARIABLES: [&str; 2] = ["MUXGATE_LOG", "RUST_LOG"];

/// What libraries say that we say better.
const QUIET: &str = "zookeeper_client=error";

/// Starts logging. `default` is the level when no variable sets one.
pub(super) fn start(format: Format, default: &str) -> Result<(), Failed> {
    let set = VARIABLES.iter().find_map(|name| Some((*name, std::env::var(name).ok()?)));
    let (name, text) = set.unwrap_or(("the default", format!("{default},{QUIET}")));
    let filter = EnvFilter::try_new(&text).map_err(|error| failed(format!("{name} is `{text}`: {error}")))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        Format::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        Format::Json => lines.json().try_init(),
    };
    started.map_err(|error| failed(format!("cannot start logging: {error}")))
}
