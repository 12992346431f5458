//! From the plan's files to certificates in use, which follow their files from then on.

use super::StartError;
use crate::config::plan::{ListenerTls, Plan};
use crate::flow::{accept, dispatch};
use crate::observe::Registry;
use muxgate_rpc::tls::{ClientFiles, ClientTls, LOOK_EVERY, ServerTls};
use muxgate_wire::name::Path;
use std::collections::HashMap;
use std::sync::Arc;

/// Those of all entries of `clients`.
pub(super) struct Certificates(HashMap<ClientFiles, ClientTls>);

impl Certificates {
    /// Reads the files.
    pub(super) fn start(plan: &Plan, registry: &Registry) -> Result<Self, StartError> {
        let start = |files: &ClientFiles| {
            let events = Arc::clone(registry.certificates());
            let tls = ClientTls::start(files.clone(), LOOK_EVERY, events);
            Ok((files.clone(), tls.map_err(|error| StartError(error.to_string()))?))
        };
        plan.client_files().into_iter().map(start).collect::<Result<_, _>>().map(Self)
    }

    /// How connections to a cluster are encrypted.
    pub(super) fn client(&self, plan: &Plan, id: &Path) -> Option<dispatch::Tls> {
        let (tls, name) = plan.client_tls(id)?;
        let client = self.0.get(&tls.files)?;
        let client = name.map_or_else(|| client.clone(), |name| client.named(&name));
        Some(dispatch::Tls { client, opportunistic: tls.opportunistic })
    }
}

/// Those of a listener.
pub(super) fn listener(tls: &ListenerTls, registry: &Registry) -> Result<accept::Tls, StartError> {
    let events = Arc::clone(registry.certificates());
    let server = ServerTls::start(tls.files.clone(), LOOK_EVERY, events);
    let server = server.map_err(|error| StartError(error.to_string()))?;
    Ok(accept::Tls { server, opportunistic: tls.opportunistic })
}
