//! The mirror: all tables, followed for ever.

use super::super::{MAX_NAMESPACES, Mirror, Table, check_namespace};
use super::{TOGETHER, version};
use crate::outside::zk::{Kind, Lost, Session, Watched, Zk, ZkError};
use futures_util::FutureExt;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use muxgate_rpc::life::jittered;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Everything is read anew after this time.
const RESYNC: Duration = Duration::from_secs(300);

/// First pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Follows all tables.
pub(super) async fn forever(zk: Arc<Zk>, prefix: String, to: watch::Sender<Mirror>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut tables = Tables { prefix: &prefix, known: BTreeMap::new(), to: &to };
        let followed = tokio::select! {
            error = tables.follow(&zk) => Err(error),
            () = sleep(jittered(RESYNC)) => Ok(()),
        };
        let Err(error) = followed else { continue };
        if to.borrow().outage.is_none() {
            pause = FIRST_PAUSE;
        }
        tracing::warn!(%error, "tables cannot be read; what is known goes on");
        to.send_modify(|mirror| mirror.outage = Some(error.text));
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

struct Tables<'a> {
    prefix: &'a str,
    known: BTreeMap<String, Table>,
    to: &'a watch::Sender<Mirror>,
}

enum Never {}

impl Tables<'_> {
    async fn follow(&mut self, zk: &Zk) -> ZkError {
        match self.run(zk).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn run(&mut self, zk: &Zk) -> Result<Never, ZkError> {
        let session = zk.session().await?;
        let mut watched = session.watch_all(self.prefix).await?;
        self.read_all(&session).await?;
        self.show();
        loop {
            let (mut all, mut changed) = (false, BTreeSet::new());
            for path in self.changes(&session, &mut watched).await? {
                match path.strip_prefix(self.prefix).map(|rest| rest.trim_start_matches('/')) {
                    Some("") => all = true,
                    Some(namespace) if !namespace.contains('/') => drop(changed.insert(namespace.to_owned())),
                    _ => {}
                }
            }
            if all {
                self.read_all(&session).await?;
            } else {
                self.read(&session, changed).await?;
            }
            self.show();
        }
    }

    /// Waits for a change; gives all that have come with it.
    async fn changes(&self, session: &Session, watched: &mut Watched) -> Result<Vec<String>, ZkError> {
        let mut changes = vec![watched.changed().await.map_err(|Lost| session.lost())?];
        while let Some(more) = watched.changed().now_or_never() {
            changes.push(more.map_err(|Lost| session.lost())?);
        }
        Ok(changes)
    }

    async fn read_all(&mut self, session: &Session) -> Result<(), ZkError> {
        let namespaces: BTreeSet<_> =
            session.children(self.prefix).await?.unwrap_or_default().into_iter().collect();
        if namespaces.len() > MAX_NAMESPACES {
            let why = format!("{} has more than {MAX_NAMESPACES} namespaces", self.prefix);
            return Err(ZkError::new(Kind::Refused, session.hosts(), &why));
        }
        self.known.retain(|namespace, _| namespaces.contains(namespace));
        self.read(session, namespaces).await
    }

    async fn read(&mut self, session: &Session, namespaces: BTreeSet<String>) -> Result<(), ZkError> {
        let prefix = self.prefix;
        let read = |namespace: String| async move {
            let read = session.read(&format!("{prefix}/{namespace}")).await?;
            Ok::<_, ZkError>((namespace, read))
        };
        // Others may have put names there that no store can have.
        let namespaces = namespaces.into_iter().filter(|namespace| check_namespace(namespace).is_ok());
        let read: Vec<_> = iter(namespaces.map(read)).buffer_unordered(TOGETHER).try_collect().await?;
        for (namespace, read) in read {
            match read {
                Some((content, stat)) => {
                    let dtab = String::from_utf8_lossy(&content).into();
                    self.known.insert(namespace, Table { dtab, version: version(&stat) });
                }
                None => drop(self.known.remove(&namespace)),
            }
        }
        Ok(())
    }

    fn show(&self) {
        self.to.send_if_modified(|mirror| {
            let news = !mirror.known || mirror.outage.is_some() || *mirror.tables != self.known;
            if *mirror.tables != self.known {
                mirror.tables = Arc::new(self.known.clone());
            }
            mirror.known = true;
            mirror.outage = None;
            news
        });
    }
}
