//! The Kubernetes namers: `io.l5d.k8s` has names `<namespace>/<port>/<service>`, and `io.l5d.k8s.ns`, whose namespace is set,
//! has `<port>/<service>`. The port is one of the service's port names, or a number at which its endpoints listen.
//!
//! Each namespace that is wanted is listed in pages and then watched from there, by EndpointSlices (`discovery.k8s.io/v1`).
//! Only ready endpoints count. The API server ends every watch after a while: it goes on from the last version that was heard.
//! A version that the server has forgotten (410) means that the list is asked for again.
//!
//! ```text
//!   list ──▶ watch ──▶ (changes, bookmarks) ──▶ its time is over ──▶ watch
//!    ▲                     └── 410 ──┐
//!    └──────────────────────────────┘
//! ```

mod answer;
mod params;
mod slices;
mod watch;

#[cfg(test)]
mod tests;

pub use params::Params;

use crate::names::source::{Meaning, Says, Source, SourceError};
use crate::outside::http::{Http, HttpError};
use async_trait::async_trait;
use muxgate_wire::name::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Namespaces that one namer watches at the same time: each holds a connection to the API server.
pub const MAX_NAMESPACES: usize = 1000;

/// Longest name of a namespace, a service or a port: a DNS label.
const MAX_LABEL: usize = 63;

/// Longest value of a label.
const MAX_VALUE: usize = 63;

/// The API server as a source. Its subjects are namespaces.
pub struct K8s {
    api: Http,
    namespace: Option<String>,
    label: Option<Arc<str>>,
    watches: Semaphore,
}

impl K8s {
    /// Must be called on a runtime.
    ///
    /// # Errors
    /// Files of `tls` that cannot be used.
    pub fn new(params: &Params) -> Result<Self, HttpError> {
        let label = params.label.as_deref().map(Arc::from);
        let watches = Semaphore::new(MAX_NAMESPACES);
        Ok(Self { api: Http::open(&params.api)?, namespace: params.namespace.clone(), label, watches })
    }

    fn namespace(subject: &Path) -> &str {
        subject.elements().next().unwrap_or_default()
    }
}

#[async_trait]
impl Source for K8s {
    /// Names that Kubernetes would not allow are negative without being asked for: no stranger makes the API server work by
    /// them, nor gets one service under two ids by writing it differently.
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        let (mut elements, mut used) = (rest.elements(), 2);
        let namespace = match &self.namespace {
            Some(namespace) => Some(namespace.as_str()),
            None => {
                used += 1;
                elements.next().filter(|namespace| is_label(namespace))
            }
        };
        let (port, service) = (elements.next(), elements.next());
        let fits = port.is_some_and(is_port) && service.is_some_and(is_label);
        let labelled = self.label.is_none() || elements.next().is_some_and(|value| value.len() <= MAX_VALUE);
        used += usize::from(self.label.is_some());
        let Some(namespace) = namespace.filter(|_| fits && labelled) else { return Ok(Vec::new()) };
        let subject = Path::from_elements([namespace.as_bytes()]).map_err(|error| error.to_string())?;
        let name = rest.take(used).skip(usize::from(self.namespace.is_none()));
        Ok(vec![Meaning { subject, name, used }])
    }

    async fn follow(&self, subject: &Path, says: &Says) -> SourceError {
        let Ok(_watching) = self.watches.try_acquire() else {
            return SourceError(format!("more than {MAX_NAMESPACES} namespaces are watched"));
        };
        match self.watch(Self::namespace(subject), says).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn check(&self, subject: &Path) -> Result<(), SourceError> {
        self.ask(Self::namespace(subject)).await
    }
}

/// Whether Kubernetes would allow it as the name of a namespace or a service.
pub fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A name (which has a letter), or a number as it is usually written.
fn is_port(text: &str) -> bool {
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit());
    is_label(text) && (!numeric || text.parse::<u16>().is_ok_and(|port| port != 0 && !text.starts_with('0')))
}
