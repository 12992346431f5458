//! List and watch of one namespace.

use super::K8s;
use super::answer::{Event, List, Object};
use super::slices::Slices;
use crate::names::source::{Says, SourceError};
use crate::outside::http::Lines;
use http::{HeaderMap, Method, StatusCode};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Slices asked for at a time.
pub(super) const PAGE: usize = 500;

/// Time for a page.
pub(super) const PAGE_WITHIN: Duration = Duration::from_secs(5);

/// A watch that is silent for this long is doubted: the server is asked something small beside it. Its own sign of life, the
/// bookmark, comes once a minute at most.
pub(super) const SILENCE: Duration = Duration::from_secs(2);

/// Time for the answer to that, and for a watch to begin.
pub(super) const SMALL_WITHIN: Duration = Duration::from_secs(2);

/// A watch without even a bookmark for this long is dead, whatever the server says beside it.
pub(super) const NO_BOOKMARK: Duration = Duration::from_secs(150);

/// The server is asked to end a watch after this time, in seconds.
const WATCH_SECONDS: u64 = 240;

/// A watch that ends earlier than this is not followed by another one at once.
const SHORT: Duration = Duration::from_secs(1);

/// Why a watch is over, if nothing is wrong.
#[derive(PartialEq)]
enum End {
    /// The server has ended it.
    Over,
    /// The version it began with is forgotten.
    Expired,
}

impl K8s {
    /// Reports a namespace for ever.
    pub(super) async fn watch(&self, namespace: &str, says: &Says) -> Result<Infallible, SourceError> {
        loop {
            let (mut slices, mut version) = self.list(namespace).await?;
            says.all(slices.all());
            loop {
                let began = Instant::now();
                let end = self.stream(namespace, &mut slices, &mut version, says).await?;
                if began.elapsed() < SHORT {
                    let why = if end == End::Expired { "too old at once" } else { "ended at once" };
                    return Err(SourceError(format!("{}: a watch was {why}", self.api.base())));
                }
                if end == End::Expired {
                    break;
                }
            }
        }
    }

    /// Whether the server answers, and lets us read the namespace.
    pub(super) async fn ask(&self, namespace: &str) -> Result<(), SourceError> {
        let path = format!("{}?limit=1", slices_of(namespace));
        self.api.json::<List>(&path, SMALL_WITHIN).await?;
        Ok(())
    }

    /// All slices, and the version from which to watch. Of each page only what counts is kept.
    async fn list(&self, namespace: &str) -> Result<(Slices, String), SourceError> {
        let mut slices = Slices::new(self.label.clone());
        let first = format!("{}?limit={PAGE}", slices_of(namespace));
        let mut path = first.clone();
        loop {
            let (page, _) = self.api.json::<List>(&path, PAGE_WITHIN).await?;
            for object in page.items.unwrap_or_default() {
                slices.put(object).map_err(SourceError)?;
            }
            if page.metadata.r#continue.is_empty() {
                return Ok((slices, page.metadata.resource_version));
            }
            path = format!("{first}&continue={}", page.metadata.r#continue);
        }
    }

    async fn stream(
        &self,
        namespace: &str,
        slices: &mut Slices,
        version: &mut String,
        says: &Says,
    ) -> Result<End, SourceError> {
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}",
            slices_of(namespace)
        );
        let lines = self.api.lines(Method::GET, &path, HeaderMap::new(), "", SMALL_WITHIN).await;
        let mut lines = match lines {
            Err(error) if error.status == Some(StatusCode::GONE) => return Ok(End::Expired),
            lines => lines?,
        };
        says.alive();
        while let Some(line) = self.next(&mut lines, namespace, says).await? {
            let wrong = |error: &dyn std::fmt::Display| SourceError(format!("{}: {error}", self.api.base()));
            let event: Event = serde_json::from_slice(&line).map_err(|error| wrong(&error))?;
            let object = event.object;
            let news = match event.r#type.as_str() {
                "ERROR" if is_too_old(&object) => return Ok(End::Expired),
                "ERROR" => {
                    return Err(wrong(&format_args!("{} {}", object.code, object.message)));
                }
                kind => {
                    version.clone_from(&object.metadata.resource_version);
                    match kind {
                        "ADDED" | "MODIFIED" => slices.put(object).map_err(SourceError)?,
                        "DELETED" => slices.remove(&object.metadata.name),
                        _ => Vec::new(),
                    }
                }
            };
            says.alive();
            news.into_iter().for_each(|(name, members)| says.one(&name, members));
        }
        Ok(End::Over)
    }

    /// The next line of a watch that is alive.
    async fn next(
        &self,
        lines: &mut Lines,
        namespace: &str,
        says: &Says,
    ) -> Result<Option<bytes::Bytes>, SourceError> {
        let doubted = async {
            loop {
                sleep(SILENCE).await;
                match self.ask(namespace).await {
                    Ok(()) => says.alive(),
                    Err(error) => return error,
                }
            }
        };
        tokio::select! {
            line = lines.next_within(NO_BOOKMARK) => Ok(line?),
            error = doubted => Err(error),
        }
    }
}

/// Namespaces are DNS labels: nothing in them has to be escaped.
fn slices_of(namespace: &str) -> String {
    format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
}

/// By the code, or by the reason: one of them is enough.
fn is_too_old(status: &Object) -> bool {
    status.code == StatusCode::GONE.as_u16() || matches!(status.reason.as_str(), "Expired" | "Gone")
}
