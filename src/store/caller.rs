//! Who asks, what they may, and what they say of it.

use super::api::Shared;
use super::refusal::Refusal;
use super::rights::{Change, Granted};
use super::serve::Connection;
use super::storage::MAX_REMARK;
use axum::extract::FromRequestParts;
use http::request::Parts;

/// Who makes a change, where no right says it.
const WHO: &str = "muxgate-who";

/// Why a change is made.
const WHY: &str = "muxgate-why";

/// Whoever asks.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    granted: Granted,
    who: String,
    /// Why, as they say.
    pub why: String,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Refusal> {
        let from = parts.extensions.get::<Connection>().cloned();
        let identity = from.as_ref().and_then(|from| from.identity.as_deref());
        let granted = api.rights.granted(&parts.headers, identity).await?;
        let header = |name| {
            let value = parts.headers.get(name)?;
            Some(cut(&String::from_utf8_lossy(value.as_bytes())).to_owned())
        };
        let address = || from.as_ref().map_or_else(String::new, |from| from.address.ip().to_string());
        let who = header(WHO).filter(|who| !who.is_empty()).unwrap_or_else(address);
        Ok(Self { granted, who, why: header(WHY).unwrap_or_default() })
    }
}

impl Caller {
    /// # Errors
    /// If no right of the caller has this namespace.
    pub(super) fn may_read(&self, namespace: &str) -> Result<(), Refusal> {
        self.granted.read(namespace)
    }

    /// Whether a list shows this namespace to the caller.
    pub(super) fn sees(&self, namespace: &str) -> bool {
        self.granted.read(namespace).is_ok()
    }

    /// Who the change is by, if it may be made; and whether the right looked at what there was before.
    ///
    /// # Errors
    /// Which right does not allow it, and which entry it is about.
    pub(super) fn may_change(&self, change: &Change<'_>) -> Result<(String, bool), Refusal> {
        let (name, looked) = self.granted.change(change)?;
        Ok((name.map_or_else(|| self.who.clone(), |name| cut(name).to_owned()), looked))
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_REMARK.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
