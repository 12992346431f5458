//! The namers. Each is a file or folder of its own that implements [`Namer`] and is known nowhere else
//! but in the list of the [`configured`] ones; the system namers, always there, are listed here.

pub mod configured;
pub mod constant;
pub mod consul;
pub mod dns;
pub mod dnssrv;
pub mod etcd;
pub mod fs;
pub mod inet;
pub mod k8s;
pub mod live;
pub mod pattern;
pub mod rewrite;
pub mod serversets;

use super::namer::Namer;
use super::source::Discovered;
use muxgate_wire::name::Path;
use std::sync::Arc;

/// The namers under `/$/`, for the front of the list: configured ones come behind them. They share what configured ones
/// have, such as one resolver.
pub fn system(env: &configured::Env) -> Vec<Arc<dyn Namer>> {
    let mut namers: Vec<Arc<dyn Namer>> = vec![Arc::new(constant::nil()), Arc::new(constant::fail())];
    namers.extend(inet::all(&env.hosts).map(|inet| Arc::new(inet) as Arc<dyn Namer>));
    namers.extend(rewrite::all().map(|rewrite| Arc::new(rewrite) as Arc<dyn Namer>));
    let (prefix, sets) = (system_prefix(serversets::SYSTEM), serversets::System::default());
    namers.push(Arc::new(Discovered::new(prefix, sets, env)));
    namers
}

/// The prefix `/$/<name>`, of a name without odd bytes.
fn system_prefix(name: &str) -> Path {
    Path::from_elements([&b"$"[..], name.as_bytes()]).unwrap_or_default()
}
