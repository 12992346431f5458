//! A gateway to look at: three demo services, a steady load, and rates once a second, over real sockets on loopback.
//!
//! The gateway itself is handed in by the caller, so that nothing here knows how one is built.

mod callers;
mod calls;
mod load;
mod rates;
mod services;
mod setup;

#[cfg(test)]
mod tests;

pub use load::Load;
pub use services::{Service, Services};

use crate::config::{self, Plan};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the admin pages are; by default port 9990, or a free one if that is taken.
    pub admin: Option<SocketAddr>,
    /// A Zipkin that gets the spans.
    pub zipkin: Option<String>,
    /// Ends after so long; by default when asked to.
    pub lasts: Option<Duration>,
    /// Calls a second, over all services.
    pub rate: u32,
}

/// A gateway that runs.
pub trait Gateway {
    /// Where the listener of this name listens.
    fn listener(&self, name: &str) -> Option<SocketAddr>;
    /// Where the admin pages are.
    fn admin(&self) -> Option<SocketAddr>;
    /// Finishes the calls in progress and ends.
    fn drain(self) -> impl Future<Output = ()> + Send;
}

/// Runs the demo until `stop` is done or the time is over.
///
/// # Errors
/// When something cannot be started, a reply was not the one that the service gave, or no call had a result.
pub async fn run<G: Gateway, F: Future<Output = Result<G, String>>>(
    options: Options,
    start: impl FnOnce(Plan) -> F,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let services = Services::start(&[SocketAddr::from(([127, 0, 0, 1], 0)); services::ENDPOINTS]).await?;
    let folder = setup::Folder::new(&services)?;
    let text = setup::file(&options, &folder);
    let plan = config::parse("the demo's configuration", &text).map_err(|report| report.to_string())?;
    let gateway = start(plan).await?;
    setup::welcome(&gateway, &folder);
    let mut gates = Vec::new();
    for service in Service::ALL {
        let address = gateway.listener(service.name());
        gates.push(
            address.ok_or_else(|| format!("the gateway has no listener {}", service.name()))?.to_string(),
        );
    }
    let summary = load(Load { gates, rate: options.rate, lasts: options.lasts }, stop).await;
    gateway.drain().await;
    services.stop().await;
    summary
}

/// Sends a load until `stop` is done or its time is over, and prints what came of it.
///
/// # Errors
/// When a reply was not the one that the service gives, or no call had a result.
pub async fn load(load: Load, stop: impl Future<Output = ()>) -> Result<(), String> {
    let ended = CancellationToken::new();
    let mut running = std::pin::pin!(load.run(&ended));
    let tally = tokio::select! {
        tally = &mut running => tally,
        () = stop => {
            ended.cancel();
            running.await
        }
    };
    rates::say(&format!("\n{}", tally.summary()));
    match (tally.wrong(), tally.results(), tally.calls()) {
        (0, 0, 1..) => Err("no call had a result".to_string()),
        (0, ..) => Ok(()),
        (wrong, ..) => Err(format!("{wrong} replies were not what the service answered")),
    }
}
