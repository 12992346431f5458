//! Test peers, for tests only: launchers of real servers, a peer made of raw frames, a backend that misbehaves on
//! request, a load whose every reply is compared, and a strict reader of metrics.
//!
//! Nothing here uses the gateway's own codecs: what they get wrong must not be repeated by what checks them. Helpers
//! panic with what they waited for and the last lines of the program they waited for; a test wants no more of them.

pub mod backend;
pub mod caller;
pub mod certs;
pub mod collector;
pub mod consul;
pub mod dnsmasq;
pub mod drill;
pub mod etcd;
pub mod finagle;
pub mod front;
pub mod gateway;
pub mod hex;
pub mod http;
pub mod kubernetes;
pub mod language;
pub mod lines;
pub mod link;
pub mod load;
pub mod luggage;
pub mod lz4;
pub mod metrics;
pub mod mux;
pub mod proc;
pub mod raw;
pub mod serversets;
pub mod speaker;
pub mod tables;
pub mod theader;
pub mod thrift;
pub mod ttwitter;
pub mod tunnel;
pub mod until;
pub mod walk;
pub mod zipkin;
pub mod zookeeper;

pub use backend::Backend;
pub use caller::Caller;
pub use consul::Consul;
pub use etcd::Etcd;
pub use front::Front;
pub use gateway::Gateway;
pub use kubernetes::Kubernetes;
pub use proc::Proc;
pub use tables::Tables;
pub use tunnel::Tunnel;
pub use until::until;
pub use zookeeper::ZooKeeper;
