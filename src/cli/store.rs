//! `muxgate store`.

use super::{Failed, failed, on_runtime, read, say};
use crate::app;
use crate::config;
use crate::config::plan::{StorageChoice, StorePlan};
use crate::store::Store;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Threads: tables are small, and changes few.
const THREADS: usize = 2;

pub(super) const EXAMPLES: &str = "Examples:
  muxgate store --listen 127.0.0.1:4180 --data tables
  muxgate store store.yaml
  curl -H 'Content-Type: application/dtab' -d '/svc => /$/inet/127.0.0.1/9000' http://127.0.0.1:4180/api/1/dtabs/default
  muxgate run gate.yaml --store http://127.0.0.1:4180 --namespace default

It runs until SIGTERM or SIGINT.";

/// The store.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    /// The configuration: `listen`, `data` or `storage`, `tls`, `namers`, `rights`; `-` reads standard input
    file: Option<PathBuf>,
    /// Listen here; port 0 takes a free one [default: what the file says, or 127.0.0.1:4180]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Keep tables in this folder of this machine [default: what the file says, or muxgate-store]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Runs the store until it is asked to stop.
pub(super) fn store(args: StoreArgs) -> Result<(), Failed> {
    let mut plan = match &args.file {
        None => StorePlan::default(),
        Some(file) => {
            let (name, text) = read(file)?;
            config::parse_store(&name, &text).map_err(failed)?
        }
    };
    plan.address = args.listen.unwrap_or(plan.address);
    if let Some(folder) = args.data {
        plan.storage = StorageChoice::Embedded(folder);
    }
    on_runtime(THREADS, async move {
        let store = Store::start(&plan).await.map_err(failed)?;
        say(&format!("store {}\n", store.address()))?;
        tracing::info!(address = %store.address(), "the store listens");
        let asked = app::stop_signal().await;
        tracing::info!(signal = asked, "stopping");
        store.stop().await;
        Ok(())
    })
}
