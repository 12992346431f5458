//! The etcd namer `io.l5d.etcd`: a service is a folder of keys, and each key in it is a member:
//!
//! ```text
//! /services/users/10.0.0.3:9000        {"host": "10.0.0.3", "port": 9000, "weight": 2}
//! /services/users/10.0.0.4:9000        10.0.0.4:9000
//! └ pathPrefix ┘└ name ┘└ any word ┘   └ JSON, or just host and port ┘
//! ```
//!
//! A key with a lease is gone with its lease, and so is the member. Names have up to [`MAX_NAME`] elements; of a path, the
//! longest beginning that has members is meant.
//!
//! All names come from one read and one watch of everything below `pathPrefix`, so ten thousand of them cost one stream.

mod member;
mod names;
mod params;

#[cfg(test)]
mod tests;

pub use params::{PATH_PREFIX, PORT, Params};

use crate::names::source::{Meaning, Says, Source, SourceError};
use crate::outside::etcd::{Etcd, EtcdError, News};
use crate::outside::http::HttpError;
use async_trait::async_trait;
use muxgate_wire::name::Path;
use names::Names;

/// Members in one answer of etcd.
const PAGE: u64 = 500;

/// Elements of a name.
pub const MAX_NAME: usize = 8;

impl From<EtcdError> for SourceError {
    fn from(error: EtcdError) -> Self {
        Self(error.to_string())
    }
}

/// A cluster as a source. Its one subject is everything.
pub struct EtcdSource {
    etcd: Etcd,
    /// What the keys of all members begin with: `/services/`.
    prefix: Vec<u8>,
}

enum Never {}

impl EtcdSource {
    /// Must be called on a runtime.
    ///
    /// # Errors
    /// Addresses or files of `tls` that cannot be used.
    pub fn new(params: &Params) -> Result<Self, HttpError> {
        Ok(Self { etcd: Etcd::open(&params.nodes)?, prefix: params.prefix() })
    }

    async fn run(&self, says: &Says) -> Result<Never, EtcdError> {
        let node = self.etcd.node(&self.prefix).await?;
        loop {
            let all = node.all(&self.prefix, PAGE).await?;
            let mut names = Names::new(&self.prefix, &all.kvs);
            says.all(names.all());
            match node.follow(&self.prefix, &all).await {
                Ok(mut follow) => loop {
                    match follow.next(names.keys()).await {
                        Ok(News::Alive) => says.alive(),
                        Ok(News::Changed(events)) => {
                            for (name, members) in names.change(events) {
                                says.one(&name, members);
                            }
                        }
                        // What was read before is known to be old now, and no more than that.
                        Err(EtcdError::Compacted(_)) => break,
                        Err(error) => return Err(error),
                    }
                },
                Err(EtcdError::Compacted(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Source for EtcdSource {
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        let meaning = |used| Meaning { subject: Path::empty(), name: rest.take(used), used };
        Ok((1..=rest.len().min(MAX_NAME)).rev().map(meaning).collect())
    }

    async fn follow(&self, _: &Path, says: &Says) -> SourceError {
        match self.run(says).await {
            Ok(never) => match never {},
            Err(error) => error.into(),
        }
    }

    async fn check(&self, _: &Path) -> Result<(), SourceError> {
        let node = self.etcd.node(&self.prefix).await?;
        node.count(&self.prefix).await?;
        Ok(())
    }
}
