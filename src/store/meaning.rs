//! `bind`, `addr`, `resolve`, `delegate` and `bound-names`: what names mean, as namerd tells it, once or again and again.

use super::api::{Asked, Shared};
use super::caller::Caller;
use super::names::Room;
use super::refusal::Refusal;
use super::storage::check_namespace;
use super::text::JSON;
use crate::names::{Addr, BindState, Binding, Bound, EndpointAddr};
use axum::extract::{Path as Named, RawQuery, State};
use axum::response::{IntoResponse, Response};
use futures_util::future::select_all;
use futures_util::stream::unfold;
use http::header::CONTENT_TYPE;
use muxgate_wire::name::{Dtab, NameTree, Path, Weighted};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// How long an answer waits for namers (linkerd: 2 s, then 503).
const WITHIN: Duration = Duration::from_secs(2);

/// How often a stream of explanations, or of bound names, looks for what is new.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A question about a name.
struct Question {
    room: Arc<Room>,
    path: Path,
    dtab: Dtab,
    watch: bool,
}

impl Question {
    fn of(api: &Shared, caller: &Caller, namespace: &str, query: RawQuery) -> Result<Self, Refusal> {
        api.table(caller, namespace)?;
        let query = Asked::of(query)?;
        let path = query.get("path").ok_or_else(|| Refusal::bad("which name? Say `?path=/NAME`"))?;
        let path = Path::parse(path).map_err(|error| Refusal::bad(format!("`path`: {error}")))?;
        let dtab = Dtab::parse(query.get("dtab").unwrap_or_default()).map_err(|error| {
            Refusal::bad(format!("`dtab`: line {}, column {}: {error}", error.line, error.column))
        })?;
        Ok(Self { room: api.names.room(namespace)?, path, dtab, watch: query.flag("watch") })
    }
}

/// `GET /api/1/bind/NS`.
pub(super) async fn bind(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let question = Question::of(&api, &caller, &namespace, query)?;
    told(&api, question, tree_json).await
}

/// `GET /api/1/resolve/NS`.
pub(super) async fn resolve(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let question = Question::of(&api, &caller, &namespace, query)?;
    told(&api, question, addresses_json).await
}

/// `GET /api/1/addr/NS`: of a bound name, without the table.
pub(super) async fn addr(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let mut question = Question::of(&api, &caller, &namespace, query)?;
    question.room = api.names.room("")?;
    question.dtab = Dtab::empty();
    told(&api, question, addresses_json).await
}

/// Binds, and tells what it comes to: once, or at each change.
async fn told(
    api: &Shared,
    question: Question,
    show: fn(&NameTree<Bound>) -> Value,
) -> Result<Response, Refusal> {
    let binding = question.room.bind(&question.path, &question.dtab);
    let end = Instant::now() + WITHIN;
    let first = settled(&binding, end, show).await?;
    if !question.watch {
        return Ok(([(CONTENT_TYPE, JSON)], first.to_string()).into_response());
    }
    let room = question.room;
    let lines = unfold((binding, room, None), move |(binding, room, last)| async move {
        let mut state = binding.watch();
        loop {
            let BindState::Bound(tree) = state.borrow_and_update().clone() else { return None };
            let mut moving: Vec<_> = tree.leaves().into_iter().map(|leaf| leaf.addr.clone()).collect();
            moving.iter_mut().for_each(|addr| addr.mark_unchanged());
            let now = show(&tree).to_string();
            if last.as_ref() != Some(&now) {
                return Some((now.clone(), (binding, room, Some(now))));
            }
            let moved = async {
                moving.retain(|addr| addr.has_changed().is_ok());
                match moving.is_empty() {
                    true => std::future::pending().await,
                    false => {
                        // Whether it changed or its sender is gone: it is looked at again.
                        let _moved = select_all(moving.iter_mut().map(|addr| Box::pin(addr.changed()))).await;
                    }
                }
            };
            tokio::select! {
                changed = state.changed() => changed.ok()?,
                () = moved => {}
            }
        }
    });
    api.stream(JSON, lines)
}

/// What a name comes to, when it is known and so are its addresses.
async fn settled(
    binding: &Binding,
    end: Instant,
    show: fn(&NameTree<Bound>) -> Value,
) -> Result<Value, Refusal> {
    let mut state = binding.watch();
    let wait = state.wait_for(|state| !matches!(state, BindState::Pending));
    let _late = timeout_at(end, wait).await.map(|seen| seen.map(|_| ()));
    match binding.state() {
        BindState::Pending => {
            let text = format!("nothing is known within {} s: {}", WITHIN.as_secs(), binding.explain());
            Err(Refusal::later(text))
        }
        BindState::Failed(why) => Err(Refusal::later(why)),
        BindState::Bound(tree) => {
            for leaf in tree.leaves() {
                let mut addr = leaf.addr.clone();
                let _late = timeout_at(end, addr.wait_for(|addr| *addr != Addr::Pending)).await.map(|_| ());
            }
            Ok(show(&tree))
        }
    }
}

/// A bound tree, in the shape of a delegation.
fn tree_json(tree: &NameTree<Bound>) -> Value {
    match tree {
        NameTree::Leaf(bound) => json!({ "type": "leaf", "bound": bound.to_json() }),
        NameTree::Alt(all) => json!({ "type": "alt", "alt": all.iter().map(tree_json).collect::<Value>() }),
        NameTree::Union(all) => {
            let branch = |b: &Weighted<Bound>| json!({ "weight": b.weight, "tree": tree_json(&b.tree) });
            json!({ "type": "union", "union": all.iter().map(branch).collect::<Value>() })
        }
        NameTree::Neg => json!({ "type": "neg" }),
        NameTree::Fail => json!({ "type": "fail" }),
        NameTree::Empty => json!({ "type": "empty" }),
    }
}

/// All addresses of a tree, each once.
fn addresses_json(tree: &NameTree<Bound>) -> Value {
    let Some(sets) = tree.eval() else { return Addr::Neg.to_json() };
    let mut found: HashMap<SocketAddr, EndpointAddr> = HashMap::new();
    let (mut answered, mut other) = (sets.is_empty(), Addr::Pending);
    for set in sets {
        match &*set.addr.borrow() {
            Addr::Bound(endpoints) => {
                answered = true;
                found.extend(endpoints.iter().map(|endpoint| (endpoint.addr, *endpoint)));
            }
            not => other = not.clone(),
        }
    }
    if answered { Addr::bound(found.into_values()).to_json() } else { other.to_json() }
}

/// `GET /api/1/delegate/NS`.
pub(super) async fn delegate(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let Question { room, path, dtab, watch } = Question::of(&api, &caller, &namespace, query)?;
    let tree = room.binder.delegate(&path, &dtab, WITHIN).await;
    let first = tree.map_err(|failure| Refusal::later(failure.to_string()))?.to_json();
    if !watch {
        return Ok(([(CONTENT_TYPE, JSON)], first.to_string()).into_response());
    }
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let lines = unfold((room, path, dtab, ticks, None), |(room, path, dtab, mut ticks, last)| async move {
        loop {
            ticks.tick().await;
            let now = room.binder.delegate(&path, &dtab, WITHIN).await.ok()?.to_json().to_string();
            if last.as_ref() != Some(&now) {
                return Some((now.clone(), (room, path, dtab, ticks, Some(now))));
            }
        }
    });
    api.stream(JSON, lines)
}

/// `GET /api/1/bound-names`.
pub(super) async fn bound_names(
    State(api): State<Shared>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    list(&api, Asked::of(query)?.flag("watch"), move |api| {
        let all = api.names.all();
        ids(all.iter().filter(|(name, _)| name.is_empty() || caller.sees(name)).map(|(_, room)| &**room))
    })
}

/// `GET /api/1/bound-names/NS`.
pub(super) async fn bound_names_of(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    check_namespace(&namespace).map_err(Refusal::bad)?;
    caller.may_read(&namespace)?;
    list(&api, Asked::of(query)?.flag("watch"), move |api| {
        ids(api.names.known(&namespace).as_deref().into_iter())
    })
}

fn ids<'a>(rooms: impl Iterator<Item = &'a Room>) -> Value {
    let mut ids = BTreeSet::new();
    for binding in rooms.flat_map(Room::bound) {
        if let BindState::Bound(tree) = binding.state() {
            ids.extend(tree.leaves().into_iter().map(|leaf| leaf.id.as_str().to_owned()));
        }
    }
    ids.into_iter().collect()
}

fn list(
    api: &Shared,
    watch: bool,
    look: impl Fn(&Shared) -> Value + Send + 'static,
) -> Result<Response, Refusal> {
    if !watch {
        return Ok(([(CONTENT_TYPE, JSON)], look(api).to_string()).into_response());
    }
    let (sender, receiver) = watch::channel(look(api).to_string());
    let shared = Arc::clone(api);
    // The task ends with the last reader.
    tokio::spawn(async move {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !sender.is_closed() {
            ticks.tick().await;
            let now = look(&shared).to_string();
            sender.send_if_modified(|last| {
                let differs = *last != now;
                *last = now;
                differs
            });
        }
    });
    let lines = unfold((receiver, true), |(mut receiver, first)| async move {
        if !first {
            receiver.changed().await.ok()?;
        }
        let now = receiver.borrow_and_update().clone();
        Some((now, (receiver, false)))
    });
    api.stream(JSON, lines)
}
