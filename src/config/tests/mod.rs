//! Files that people write: good ones and what they mean, wrong ones and what is said about them.

mod certificates;
mod consul;
mod dns;
mod etcd;
mod good;
mod state;
mod tables;
mod transformers;
mod wrong;
