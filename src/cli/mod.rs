//! The command line: what can be asked for, and who does it.

mod check;
mod explain;
mod flags;
mod logs;
mod play;
mod store;

#[cfg(test)]
mod tests;

use crate::app;
use crate::config::plan::State;
use crate::config::{self, Plan};
use clap::{ArgGroup, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// A Thrift and Mux RPC gateway.
///
/// It takes Thrift calls in every form (framed, buffered, THeader, TTwitter, ThriftMux; binary and compact), works out from
/// each call's name and a dtab which service is meant, and passes the call on over the protocol that the service speaks.
#[derive(Debug, Parser)]
#[command(name = "muxgate", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Cli {
    /// How log lines look. They go to stderr; the level is set by MUXGATE_LOG or RUST_LOG, as in `info,muxgate=debug`
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: logs::Format,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 all went well; 1 the configuration is wrong, or something failed while running; \
                          2 the command line is wrong.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the gateway, from a file or from flags
    #[command(after_help = RUN_EXAMPLES, arg_required_else_help = true)]
    Run(RunArgs),
    /// Read a configuration and say what it means, or what is wrong with it
    Check {
        /// The file; `-` reads standard input
        file: PathBuf,
    },
    /// Start a store of dtabs: namespaces, versions and history over HTTP, as namerd has them and more
    #[command(after_help = store::EXAMPLES)]
    Store(store::StoreArgs),
    /// Show what a name leads to: every branch, every entry that matched, every error, and the addresses at the end
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Start the gateway, three demo services and a steady load, all in this process
    Demo(play::DemoArgs),
    /// Only the demo services, for the demo across containers
    #[command(hide = true)]
    DemoServices(play::ServicesArgs),
    /// Only the load of the demo
    #[command(hide = true)]
    DemoLoad(play::LoadArgs),
}

const RUN_EXAMPLES: &str = "Examples:
  muxgate run gate.yaml
  muxgate run --listen 127.0.0.1:4114 --dtab '/svc => /$/inet/127.0.0.1/9000' --upstream framed
  muxgate run --listen 127.0.0.1:4114 --dtab '/svc => /#/io.l5d.fs' --fs disco --print-config > gate.yaml
  muxgate run --listen 127.0.0.1:4114 --store http://127.0.0.1:4180 --namespace shop

It runs until SIGTERM or SIGINT, then finishes the calls it has taken (`admin.shutdownGraceMs`) and ends.";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("table").args(["dtab", "store"]).multiple(true)))]
struct RunArgs {
    /// The configuration; `-` reads standard input
    #[arg(conflicts_with_all = ["listen", "dtab", "fs", "upstream", "admin", "zipkin"], required_unless_present = "listen")]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: flags::Flags,
    #[command(flatten)]
    store: flags::Store,
    /// Print the configuration that the flags stand for, and do not start
    #[arg(long)]
    print_config: bool,
}

/// How a command ends that does not end well: by then it has said why.
struct Failed;

/// Does what was asked for.
pub fn run(cli: Cli) -> ExitCode {
    let default = match cli.command {
        // The screen belongs to the rates.
        Command::Demo(_) | Command::DemoLoad(_) => "warn",
        // What namers log while they are asked stands in the tree.
        Command::Explain(_) => "error",
        _ => "info",
    };
    let done = logs::start(cli.log_format, default).and_then(|()| match cli.command {
        Command::Run(args) => serve(args),
        Command::Check { file } => check(&file),
        Command::Store(args) => store::store(args),
        Command::Explain(args) => explain::explain(args),
        Command::Demo(args) => play::demo(args),
        Command::DemoServices(args) => play::services(args),
        Command::DemoLoad(args) => play::load(args),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed) => ExitCode::FAILURE,
    }
}

fn serve(args: RunArgs) -> Result<(), Failed> {
    let (mut plan, text) = match &args.file {
        Some(file) => {
            let (name, text) = read(file)?;
            let flags::Store { store, namespace } = &args.store;
            let plan = match store.is_empty() {
                true => config::parse(&name, &text).map_err(failed)?,
                false => {
                    config::parse_with_store(&name, &text, store, namespace.as_deref()).map_err(failed)?
                }
            };
            (plan, text)
        }
        None => args.flags.plan(&args.store).map_err(failed)?,
    };
    if args.print_config {
        return say(&text);
    }
    place_state(&mut plan, args.flags.state.as_deref(), |name| std::env::var_os(name));
    on_runtime(plan.threads(), async move { app::run(plan).await.map_err(failed) })
}

/// Where the plan keeps its state: where the flag says, else the file, else where such things belong on this system.
fn place_state(plan: &mut Plan, flag: Option<&Path>, env: impl Fn(&str) -> Option<OsString>) {
    match flag {
        Some(folder) if folder == Path::new("none") => plan.keep_state(State::Nowhere),
        Some(folder) => plan.keep_state(State::Folder(folder.into())),
        None if *plan.state() == State::Default => {
            let folder = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let base = folder("STATE_DIRECTORY")
                .or_else(|| Some(folder("XDG_STATE_HOME")?.join("muxgate")))
                .or_else(|| Some(folder("HOME")?.join(".local/state/muxgate")));
            // Gateways on one host do not share a file.
            let own = plan.listeners().first().map(|listener| listener.accept.address.to_string());
            plan.keep_state(match (base, own) {
                (Some(base), Some(own)) => State::Folder(base.join(own)),
                _ => State::Nowhere,
            });
        }
        None => {}
    }
}

fn check(file: &Path) -> Result<(), Failed> {
    let (name, text) = read(file)?;
    let plan: Plan = config::parse(&name, &text).map_err(failed)?;
    say(&format!("{}{}", check::summary(&plan), check::doubts(&plan)))
}

/// Writes to stdout, which may be closed or full.
fn say(text: &str) -> Result<(), Failed> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| failed(format!("stdout: {error}")))
}

/// A file's name in messages, and its text.
fn read(file: &Path) -> Result<(String, String), Failed> {
    if file == Path::new("-") {
        let text = std::io::read_to_string(std::io::stdin().lock());
        return text
            .map(|text| ("<stdin>".to_string(), text))
            .map_err(|error| failed(format!("stdin: {error}")));
    }
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(failed(format!("cannot read {name}: {error}"))),
    }
}

/// Says why a command failed.
fn failed(why: impl std::fmt::Display) -> Failed {
    let text = why.to_string();
    // Reports of the configuration say `error:` themselves, once for each mistake.
    let lead = if text.starts_with("error: ") { "" } else { "error: " };
    eprintln!("{lead}{}", text.trim_end());
    Failed
}

/// How long the end waits for threads that are still at work when all is done: one may sit in a file system or a resolver
/// that never answers.
const END_WITHIN: Duration = Duration::from_millis(200);

fn on_runtime(threads: usize, work: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    // One thread alone needs no queues between workers: that is the cheapest way to serve a call.
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let runtime = runtime.map_err(|error| failed(format!("cannot start the runtime: {error}")))?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(END_WITHIN);
    done
}
