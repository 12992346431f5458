//! What a change would do to the names in use, without making it.

use super::api::Api;
use super::diff;
use super::refusal::Refusal;
use super::storage::Table;
use crate::names::{Addr, Answer, Base, Binder, Bound, Lookup, Named, Namer, Namers, Resolution, State};
use axum::Json;
use futures_util::StreamExt;
use futures_util::stream::iter;
use muxgate_wire::name::{Dtab, Path};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The key of the query that asks for it.
pub(super) const FLAG: &str = "dry-run";

/// Most names that are looked at; the answer says so if there are more.
const MAX_NAMES: usize = 10_000;

/// Names that are resolved side by side.
const TOGETHER: usize = 32;

/// Time for namers to answer, for all names together.
const WITHIN: Duration = Duration::from_secs(5);

/// What would become of the names that gateways of the namespace have in use, and of those that are bound here.
pub(super) async fn run(
    api: &Api,
    namespace: &str,
    now: Option<&Table>,
    next: Option<&Dtab>,
) -> Result<Json<Value>, Refusal> {
    let before = now.map(|table| super::text::stored(&table.dtab)).transpose()?.unwrap_or_default();
    let after = next.cloned().unwrap_or_default();
    let mut names: BTreeSet<Path> = api.gateways.names(namespace).collect();
    if let Some(room) = api.names.known(namespace) {
        names.extend(room.bound().iter().map(|binding| binding.path().clone()));
    }
    let looked = names.len().min(MAX_NAMES);
    let namers = with_strangers(api.names.namers());
    let (old, new) = (Arc::new(fixed(namers.clone(), &before)), Arc::new(fixed(namers, &after)));
    let end = Instant::now() + WITHIN;
    let wanted: Vec<_> = names.iter().take(MAX_NAMES).cloned().collect();
    let resolved = iter(wanted).map(|name| compare(Arc::clone(&old), Arc::clone(&new), name, end));
    let mut changed = Vec::new();
    let mut resolved = resolved.buffered(TOGETHER);
    while let Some((name, before, after)) = resolved.next().await {
        if before != after {
            changed.push(json!({ "name": name.as_str(), "before": before, "after": after }));
        }
    }
    let steps = diff::diff(&before, &after);
    Ok(Json(json!({
        "dryRun": true,
        "names": looked,
        "notLookedAt": names.len() - looked,
        "changed": changed,
        "diff": steps.iter().filter_map(diff::Step::to_json).collect::<Value>(),
        "text": diff::text(&steps),
    })))
}

/// Where a name leads under both tables.
async fn compare(old: Arc<Binder>, new: Arc<Binder>, name: Path, end: Instant) -> (Path, String, String) {
    let (within, none) = (end.saturating_duration_since(Instant::now()), Dtab::empty());
    let (before, after) = tokio::join!(old.dry_run(&name, &none, within), new.dry_run(&name, &none, within));
    (name, leads(&before), leads(&after))
}

/// A binder of a table that stays.
fn fixed(namers: Namers, dtab: &Dtab) -> Binder {
    Binder::new(namers, watch::channel(Base::from(dtab.clone())).1)
}

fn leads(resolution: &Resolution) -> String {
    match &resolution.state {
        State::Pending => "not known in time".into(),
        State::Ok(tree) => tree.to_string(),
        State::Failed(failure) => format!("cannot be resolved: {failure}"),
    }
}

/// The namers of the store, and behind them one for the names below `/#` that only gateways can look up: it takes them as
/// they are, so that a change of where a name leads is seen although nobody here knows what is there.
fn with_strangers(namers: &Namers) -> Namers {
    let ours: Vec<_> = namers.iter().cloned().collect();
    let prefixes = ours.iter().map(|namer| namer.prefix().clone()).collect();
    let strangers: Arc<dyn Namer> =
        Arc::new(Strangers { prefix: Path::parse("/#").unwrap_or_default(), prefixes });
    std::iter::once(strangers).chain(ours).collect()
}

struct Strangers {
    prefix: Path,
    /// What the store has namers for.
    prefixes: Vec<Path>,
}

impl Namer for Strangers {
    fn prefix(&self) -> &Path {
        &self.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        if self.prefixes.iter().any(|prefix| path.starts_with(prefix)) {
            return Lookup::Fixed(Answer::NEG);
        }
        let bound = Bound::new(path.clone(), Path::default(), Addr::Pending.fixed());
        Lookup::Fixed(Answer::Ok(muxgate_wire::name::NameTree::Leaf(Named::Bound(bound))))
    }
}
