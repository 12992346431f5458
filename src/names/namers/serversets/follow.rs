//! One server set: asked for, watched, and told.

use super::place::{is_member, is_vector};
use super::vector::weight;
use super::{Member, Place, Vector};
use crate::names::source;
use crate::outside::zk::{Kind, Lost, Once, Session, Zk, ZkError};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use futures_util::stream::{FuturesUnordered, StreamExt, iter};
use muxgate_rpc::life::jittered;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// Members of one set.
pub const MAX_MEMBERS: usize = 50_000;

/// Members that are read at the same time.
const READS: usize = 32;

/// Members that we may not read are tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// While the session is well, that is said this often. The session itself is pinged far more often.
const ALIVE_EVERY: Duration = Duration::from_secs(5);

/// Follows a set until its ensemble cannot be asked any more: tells all members when they are known, and at each change.
pub(super) async fn set(
    zk: &Zk,
    place: &Place,
    tell: impl Fn(Vec<source::Member>),
    alive: impl Fn(),
) -> ZkError {
    let session = match zk.session().await {
        Ok(session) => session,
        Err(error) => return error,
    };
    let mut set = Set {
        session: &session,
        place,
        list: pending().boxed(),
        parts: BTreeMap::new(),
        changes: FuturesUnordered::new(),
        unread: BTreeSet::new(),
    };
    match set.run(tell, alive).await {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

enum Never {}

/// What one child says.
enum Part {
    Member(Member),
    Vector(Vector),
}

/// Word of a child that has changed.
type Change = BoxFuture<'static, String>;

struct Set<'a> {
    session: &'a Session,
    place: &'a Place,
    /// Word of a change of the list of children.
    list: BoxFuture<'static, Result<(), Lost>>,
    parts: BTreeMap<String, Part>,
    /// Word of changes of what is in the children.
    changes: FuturesUnordered<Change>,
    /// Children that we may not read. What was read of them before stays.
    unread: BTreeSet<String>,
}

impl Set<'_> {
    async fn run(&mut self, tell: impl Fn(Vec<source::Member>), alive: impl Fn()) -> Result<Never, ZkError> {
        let mut pulse = interval(ALIVE_EVERY);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.list().await?;
        loop {
            let members = self.members();
            if let (Some(child), true) = (self.unread.first(), members.is_empty()) {
                // Perhaps all of them are hidden from us: that is no answer.
                return Err(self.hidden(child));
            }
            tell(members);
            let again = Instant::now() + jittered(TRY_AGAIN);
            loop {
                tokio::select! {
                    () = self.session.until_lost() => return Err(self.session.lost()),
                    changed = &mut self.list => {
                        changed.map_err(|Lost| self.session.lost())?;
                        self.list().await?;
                        break;
                    }
                    Some(first) = self.changes.next() => {
                        // What came together is read together.
                        let mut changed = BTreeSet::from([first]);
                        while let Some(Some(more)) = self.changes.next().now_or_never() {
                            changed.insert(more);
                        }
                        self.read(changed).await?;
                        break;
                    }
                    () = sleep_until(again), if !self.unread.is_empty() => {
                        let unread = std::mem::take(&mut self.unread);
                        self.read(unread).await?;
                        break;
                    }
                    _ = pulse.tick() => alive(),
                }
            }
        }
    }

    fn hidden(&self, child: &str) -> ZkError {
        let why = format!("we may not read {}/{child}, and know no other member", self.place.node);
        ZkError::new(Kind::Forbidden, self.session.hosts(), &why)
    }

    /// Reads which children there are now, and those that are new.
    async fn list(&mut self) -> Result<(), ZkError> {
        let (children, once) = self.session.children_and_watch(&self.place.node).await?;
        self.list = once.changed().boxed();
        let children: BTreeSet<_> = children
            .unwrap_or_default()
            .into_iter()
            .filter(|child| is_member(child) || is_vector(child))
            .collect();
        if children.len() > MAX_MEMBERS {
            let why = format!("{} has more than {MAX_MEMBERS} members", self.place.node);
            return Err(ZkError::new(Kind::Refused, self.session.hosts(), &why));
        }
        self.parts.retain(|child, _| children.contains(child));
        self.unread.retain(|child| children.contains(child));
        let new = children.into_iter().filter(|child| !self.parts.contains_key(child));
        let new = new.filter(|child| !self.unread.contains(child)).collect();
        self.read(new).await
    }

    async fn read(&mut self, children: BTreeSet<String>) -> Result<(), ZkError> {
        let (session, node) = (self.session, self.place.node.trim_end_matches('/'));
        let read = |child: String| async move {
            let read = session.read_and_watch(&format!("{node}/{child}")).await;
            (child, read)
        };
        let mut reading = iter(children.into_iter().map(read)).buffer_unordered(READS);
        while let Some((child, read)) = reading.next().await {
            match read {
                Ok(Some((content, _, once))) => {
                    let part = match is_member(&child) {
                        true => Part::Member(Member::read(&child, &content)),
                        false => Part::Vector(Vector::read(&content)),
                    };
                    self.parts.insert(child.clone(), part);
                    self.changes.push(Box::pin(change(child, once)));
                }
                Ok(None) => {
                    self.parts.remove(&child);
                }
                Err(error) if error.kind == Kind::Forbidden => {
                    tracing::warn!(child, %error, "a member of a server set cannot be read; it is tried again");
                    self.unread.insert(child);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The members that are meant; each address once, with the largest of its weights.
    fn members(&self) -> Vec<source::Member> {
        let vectors: Vec<&Vector> = self.parts.values().filter_map(Part::vector).collect();
        let mut found: BTreeMap<(&str, u16), source::Member> = BTreeMap::new();
        for member in self.parts.values().filter_map(Part::member) {
            for endpoint in member.endpoints_for(self.place) {
                let Some(weight) = weight(vectors.iter().copied(), member, endpoint) else { continue };
                let (host, port) = (&endpoint.host, endpoint.port);
                let known = found
                    .entry((host, port))
                    .or_insert_with(|| source::Member { weight, ..source::Member::new(host.clone(), port) });
                known.weight = known.weight.max(weight);
            }
        }
        found.into_values().collect()
    }
}

impl Part {
    fn member(&self) -> Option<&Member> {
        if let Self::Member(member) = self { Some(member) } else { None }
    }

    fn vector(&self) -> Option<&Vector> {
        if let Self::Vector(vector) = self { Some(vector) } else { None }
    }
}

/// A lost session is no change: who watches the node hears of it.
async fn change(child: String, once: Once) -> String {
    match once.changed().await {
        Ok(()) => child,
        Err(Lost) => pending().await,
    }
}
