//! What is outside of Thrift and Mux: HTTP services that are asked, and what is kept on disk. Knows nothing of names, nor
//! of the flow.

pub mod etcd;
pub mod http;
pub mod kept;
pub mod zk;
