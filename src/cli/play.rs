//! The demo, whole or in parts, and the gateway that it is given.

use super::{Failed, failed, on_runtime};
use crate::app;
use crate::demo::{self, Gateway, Load, Options, Services};
use clap::Args;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Calls a second.
const RATE: u32 = 50;

/// Longest time that can be set, in seconds: a year.
const MAX_SECONDS: u64 = 31_536_000;

/// Threads of the demo: it is no benchmark.
const THREADS: usize = 2;

/// The demo.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Send spans to this Zipkin, as in http://127.0.0.1:9411
    #[arg(long, value_name = "URL")]
    zipkin: Option<String>,
    /// Show the admin pages here [default: 127.0.0.1:9990, or a free port if that is taken]
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// End after so many seconds [default: when asked to]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    seconds: Option<u64>,
    /// Calls a second, over all services
    #[arg(long, value_name = "N", default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
}

/// The services of the demo.
#[derive(Debug, Args)]
pub(super) struct ServicesArgs {
    /// Where users listens; orders and the two endpoints of payments take the next three ports
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9001")]
    listen: SocketAddr,
}

/// The load of the demo.
#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// HOST:PORT of the gateway's listener for users; orders and payments take the next two ports
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4114")]
    to: String,
    /// End after so many seconds [default: when asked to]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    seconds: Option<u64>,
    /// Calls a second, over all services
    #[arg(long, value_name = "N", default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
}

impl Gateway for app::Gateway {
    fn listener(&self, name: &str) -> Option<SocketAddr> {
        self.listeners().find(|(other, _)| *other == name).map(|(_, address)| address)
    }

    fn admin(&self) -> Option<SocketAddr> {
        app::Gateway::admin(self)
    }

    async fn drain(self) {
        app::Gateway::drain(self).await;
    }
}

/// Runs the demo.
pub(super) fn demo(args: DemoArgs) -> Result<(), Failed> {
    let lasts = args.seconds.map(Duration::from_secs);
    let options = Options { admin: args.admin, zipkin: args.zipkin, lasts, rate: args.rate };
    on_runtime(THREADS, async {
        let start =
            |plan| async { app::Gateway::start(Arc::new(plan)).await.map_err(|error| error.to_string()) };
        demo::run(options, start, asked_to_stop()).await.map_err(failed)
    })
}

/// Runs the services.
pub(super) fn services(args: ServicesArgs) -> Result<(), Failed> {
    let port = |offset| args.listen.port().checked_add(offset);
    let (Some(orders), Some(payments), Some(more)) = (port(1), port(2), port(3)) else {
        return Err(failed("four ports are needed, beginning with the one that is given"));
    };
    let addresses =
        [args.listen.port(), orders, payments, more].map(|port| SocketAddr::new(args.listen.ip(), port));
    on_runtime(THREADS, async move {
        let services = Services::start(&addresses).await.map_err(failed)?;
        for (service, address) in services.endpoints() {
            tracing::info!(service = service.name(), %address, "listening");
        }
        asked_to_stop().await;
        services.stop().await;
        Ok(())
    })
}

/// Runs the load.
pub(super) fn load(args: LoadArgs) -> Result<(), Failed> {
    let wrong = || failed(format!("`{}` is not HOST:PORT", args.to));
    let (host, port) = args.to.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let gates = (0..3)
        .map(|offset| port.checked_add(offset).map(|port| format!("{host}:{port}")))
        .collect::<Option<_>>();
    let load = Load {
        gates: gates.ok_or_else(wrong)?,
        rate: args.rate,
        lasts: args.seconds.map(Duration::from_secs),
    };
    on_runtime(THREADS, async { demo::load(load, asked_to_stop()).await.map_err(failed) })
}

async fn asked_to_stop() {
    app::stop_signal().await;
}
