//! The gateway with real discovery systems, each started by the test that needs it: what it finds, what it believes while they
//! are away, and what it does when they come back.

mod dns;
mod etcd;
mod restart;
mod stores;
mod zookeeper;
