//! The store of dtabs, `muxgate store`: namespaces of tables with versions, for any number of gateways and people.
//!
//! [`storage`] keeps tables; everything else asks it. The rest is HTTP: namerd's paths and codes, and beyond them history,
//! dry runs, rights, and which gateway runs which version.

mod api;
mod caller;
mod diff;
mod dry;
mod gateways;
mod meaning;
mod names;
mod numbers;
mod pages;
mod past;
mod refusal;
mod rights;
mod serve;
mod stall;
pub mod storage;
mod tables;
mod text;
mod when;

use crate::config::plan::{StorageChoice, StorePlan};
use crate::names::Namers;
use crate::names::namers;
use crate::names::namers::configured::Env;
use api::Api;
use gateways::Gateways;
use muxgate_rpc::tls::{LOOK_EVERY, ServerTls};
use names::Names;
use numbers::Numbers;
use rights::Rights;
use std::net::SocketAddr;
use std::sync::Arc;
use storage::Storage;
use storage::embedded::Embedded;
use storage::etcd::EtcdStorage;
use storage::zk::ZkStorage;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A store that listens.
#[derive(Debug)]
pub struct Store {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Store {
    /// Starts everything that the plan says. Must be called on a runtime.
    ///
    /// # Errors
    /// What cannot be opened, listened on, or read. A storage on the network that cannot be reached is none.
    pub async fn start(plan: &StorePlan) -> Result<Self, String> {
        let storage = open(&plan.storage)?;
        let tls = plan.tls.clone().map(|files| ServerTls::start(files, LOOK_EVERY, Arc::new(())));
        let tls = tls.transpose().map_err(|error| error.to_string())?;
        let listener = TcpListener::bind(plan.address).await;
        let listener = listener.map_err(|error| format!("cannot listen on {}: {error}", plan.address))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let stop = CancellationToken::new();
        let mirror = storage.mirror();
        let api = Api {
            names: Names::new(all_namers(plan)?, mirror.clone()),
            storage,
            mirror,
            rights: Rights::new(plan.rights.clone()),
            gateways: Gateways::new(),
            numbers: Numbers::default(),
            streams: Arc::new(Semaphore::new(api::MAX_STREAMS)),
            stop: stop.clone(),
        };
        if api.rights.is_open() {
            tracing::info!(%address, "no `rights`: whoever reaches this address may change every table");
        }
        let router = api::router(Arc::new(api));
        let serving = tokio::spawn(serve::serve(listener, tls, router, stop.clone()));
        Ok(Self { address, stop, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends: no new connections, streams end, answers that are being written are finished, tables are closed.
    pub async fn stop(self) {
        self.stop.cancel();
        // If it panicked, it has ended as well.
        let _ended = self.serving.await;
    }
}

fn open(choice: &StorageChoice) -> Result<Arc<dyn Storage>, String> {
    Ok(match choice {
        StorageChoice::Embedded(folder) => Arc::new(Embedded::open(folder)?),
        StorageChoice::ZooKeeper(zk, path_prefix) => {
            let params = storage::zk::Params { zk: zk.clone(), path_prefix: path_prefix.clone() };
            Arc::new(ZkStorage::start(params))
        }
        StorageChoice::Etcd(nodes, path_prefix) => {
            let params = storage::etcd::Params { nodes: nodes.clone(), path_prefix: path_prefix.clone() };
            Arc::new(EtcdStorage::start(&params).map_err(|error| error.text)?)
        }
    })
}

/// The system namers, and behind them those of the file: the later one is asked first.
fn all_namers(plan: &StorePlan) -> Result<Namers, String> {
    let env = Env::of(&plan.dns);
    let mut all = namers::system(&env);
    for namer in &plan.namers {
        all.push(namer.start(&env)?);
    }
    Ok(all.into_iter().collect())
}
