//! ZooKeeper: one session for a list of hosts, made anew when it is lost for good; every call is bounded in time.
//!
//! ```text
//!   idle ──▶ connecting ──▶ connected ──▶ connection lost ──▶ back within the patience: the same session
//!              │  ▲                              └──────────▶ expired, refused, or patience at its end: a new one
//!              ▼  │
//!            away (since when, why): asked again by the next caller, not more often than ten times a second
//! ```
//!
//! A session lives as long as somebody holds it: ephemeral nodes go with it. Watches do not outlive a lost connection (events
//! of that time may be lost): who watches begins anew. Needs ZooKeeper 3.5 or later.

mod error;
mod session;

pub use error::{Kind, ZkError};
pub use session::{Lost, Once, Session, Watched};
pub use zookeeper_client::{MultiWriter, Stat};

use muxgate_wire::name::Path;
use parking_lot::Mutex as Shared;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::Client;

/// Time limit of each call. A server that froze is noticed within it.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// Time to have a session.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(4);

/// Life of a session whose holder is silent, if nothing else is said (linkerd's, and Finagle's).
pub const SESSION: Duration = Duration::from_secs(10);

/// Longest silence of a server: pings go at three eighths of it.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// A lost connection is waited for this long before a new session is made, by those who only read.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// After a failed attempt to connect, all who waited for it hear of it, and all who ask within this time; then the next
/// one tries.
const REST: Duration = Duration::from_millis(100);

/// The port of hosts that name none.
pub const PORT: u16 = 2181;

/// Hosts of one ensemble.
pub const MAX_HOSTS: usize = 16;

/// How an ensemble is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Its servers: host and port.
    pub hosts: Vec<(String, u16)>,
    /// All paths stand below this one; `/` for none.
    pub chroot: String,
    /// Life of a session whose holder is silent. The server has the last word.
    pub session: Duration,
    /// Who we are.
    pub auth: Option<Auth>,
}

/// Who we are to an ensemble.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    /// Such as `digest`.
    pub scheme: String,
    /// Such as `user:password`.
    pub id: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Auth({}:...)", self.scheme)
    }
}

impl Params {
    /// These hosts, and the defaults.
    pub fn new(hosts: Vec<(String, u16)>) -> Self {
        Self { hosts, chroot: "/".into(), session: SESSION, auth: None }
    }

    /// Reads `host:port,host:port`; a host without a port has [`PORT`].
    ///
    /// # Errors
    /// What is no list of hosts; says what is wanted.
    pub fn parse(hosts: &str) -> Result<Self, String> {
        let hosts: Option<Vec<_>> = hosts.split(',').map(host_and_port).collect();
        match hosts {
            Some(hosts) if hosts.len() <= MAX_HOSTS => Ok(Self::new(hosts)),
            Some(_) => Err(format!("more than {MAX_HOSTS} hosts of ZooKeeper")),
            None => Err("want host:port of ZooKeeper, or several with commas between".into()),
        }
    }
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port.parse().ok()?),
        Some(_) => return None,
        None => (text, PORT),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    (!host.is_empty() && port > 0 && host.bytes().all(plain)).then(|| (host.to_owned(), port))
}

/// As in "ZooKeeper at ...".
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match host.contains(':') {
                true => write!(f, "{comma}[{host}]:{port}")?,
                false => write!(f, "{comma}{host}:{port}")?,
            }
        }
        f.write_str(self.chroot.trim_end_matches('/'))
    }
}

/// A node's path: the elements of a name behind `below`, a path of ZooKeeper. None if ZooKeeper can have no such node.
pub fn node(below: &str, elements: &Path) -> Option<String> {
    let mut node = below.trim_end_matches('/').to_owned();
    for raw in elements.raw_elements() {
        let element = std::str::from_utf8(&raw).ok()?;
        let odd =
            |c: char| c == '/' || c.is_control() || ('\u{e000}'..='\u{f8ff}').contains(&c) || c >= '\u{fff0}';
        if matches!(element, "." | "..") || element.contains(odd) {
            return None;
        }
        node.push('/');
        node.push_str(element);
    }
    Some(if node.is_empty() { "/".into() } else { node })
}

/// What is known of an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody holds a session.
    Idle,
    /// There is a session.
    Connected,
    /// It cannot be reached since then; why, for people.
    Away(Instant, String),
}

/// An ensemble.
pub struct Zk {
    params: Params,
    patience: Duration,
    /// Held while a session is made: the others wait for it, and share what becomes of it.
    making: Mutex<()>,
    now: Shared<Now>,
}

#[derive(Default)]
struct Now {
    session: Weak<Session>,
    failed: Option<(Instant, ZkError)>,
    away: Option<Instant>,
}

impl fmt::Debug for Zk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zk({})", self.params)
    }
}

impl Zk {
    /// An ensemble for those who read. Connects when a session is asked for.
    pub fn new(params: Params) -> Self {
        Self::patient(params, PATIENCE)
    }

    /// An ensemble whose lost connections are waited for. Who owns ephemeral nodes waits as long as the session lives.
    pub fn patient(params: Params, patience: Duration) -> Self {
        Self { params, patience, making: Mutex::default(), now: Shared::default() }
    }

    /// How it is reached.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// What is known of it.
    pub fn state(&self) -> State {
        let now = self.now.lock();
        match (now.session.upgrade(), now.away, &now.failed) {
            (Some(session), ..) if session.is_connected() => State::Connected,
            (Some(session), away, _) => State::Away(away.unwrap_or_else(Instant::now), session.lost().text),
            (None, Some(away), Some((_, error))) => State::Away(away, error.text.clone()),
            _ => State::Idle,
        }
    }

    /// The session, or a new one. Waits for the ensemble [`CONNECT_WITHIN`] and the patience at most.
    ///
    /// # Errors
    /// It cannot be reached, or does not want us.
    pub async fn session(&self) -> Result<Arc<Session>, ZkError> {
        if let Some(session) = self.live() {
            return Ok(session);
        }
        let asked = Instant::now();
        let _making = self.making.lock().await;
        if let Some(session) = self.live() {
            return Ok(session);
        }
        let lost = self.now.lock().session.upgrade();
        if let Some(session) = lost
            && session.is_back(self.patience).await
        {
            return Ok(session);
        }
        if let Some((at, error)) = &self.now.lock().failed
            && (*at >= asked || at.elapsed() < REST)
        {
            return Err(error.clone());
        }
        let made = self.connect().await;
        let mut now = self.now.lock();
        match made {
            Ok(session) => {
                let session = Arc::new(session);
                tracing::info!(zookeeper = %self.params, "session established: 0x{:x}", session.id());
                *now = Now { session: Arc::downgrade(&session), ..Now::default() };
                Ok(session)
            }
            Err(error) => {
                let at = Instant::now();
                now.session = Weak::new();
                now.failed = Some((at, error.clone()));
                now.away.get_or_insert(at);
                Err(error)
            }
        }
    }

    /// Whether nobody holds a session.
    pub fn is_idle(&self) -> bool {
        self.now.lock().session.strong_count() == 0
    }

    fn live(&self) -> Option<Arc<Session>> {
        self.now.lock().session.upgrade().filter(|session| session.is_connected())
    }

    async fn connect(&self) -> Result<Session, ZkError> {
        let hosts = self.params.to_string();
        let silence = LONGEST_SILENCE.min(self.params.session * 2 / 5);
        let mut connector = Client::connector()
            .with_session_timeout(self.params.session)
            .with_connection_timeout(silence)
            .with_fail_eagerly();
        if let Some(auth) = &self.params.auth {
            connector = connector.with_auth(&auth.scheme, auth.id.as_bytes());
        }
        let connecting = {
            let hosts = hosts.clone();
            let runtime = apart().map_err(|error| ZkError::away(&hosts, &format!("no thread: {error}")))?;
            AbortOnDropHandle::new(runtime.spawn(async move { connector.connect(&hosts).await }))
        };
        match timeout(CONNECT_WITHIN, connecting).await {
            Ok(Ok(Ok(client))) => Ok(Session::new(client, hosts.into())),
            Ok(Ok(Err(zookeeper_client::Error::NoHosts))) => {
                Err(ZkError::away(&hosts, "none of its servers gives us a session"))
            }
            Ok(Ok(Err(error))) => Err(ZkError::of(&hosts, "no session", &error)),
            Ok(Err(_)) => Err(ZkError::away(&hosts, "it talks nonsense")),
            Err(_) => {
                let within = CONNECT_WITHIN.as_secs_f64();
                Err(ZkError::away(&hosts, &format!("no session within {within} s")))
            }
        }
    }
}

/// The library's own tasks run on a thread of their own: they outlive whatever runtime asked first, and get to close their sessions
/// when everything else has ended.
fn apart() -> std::io::Result<&'static Runtime> {
    static APART: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let start =
        || Builder::new_multi_thread().worker_threads(1).thread_name("zookeeper").enable_all().build();
    APART.get_or_init(start).as_ref().map_err(|error| error.kind().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_and_written() {
        let parsed = |text: &str| Params::parse(text).map(|params| params.to_string());
        assert_eq!(parsed("zk.local:2181").unwrap(), "zk.local:2181");
        assert_eq!(parsed("a,b-1:7").unwrap(), "a:2181,b-1:7");
        for wrong in ["", ",", "a:", "a:0", "a:70000", "a:1/x", "a b", "a@b:1", ":1", &"a,".repeat(20)] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        let mut params = Params::new(vec![("::1".into(), 1)]);
        params.chroot = "/x".into();
        assert_eq!(params.to_string(), "[::1]:1/x");
    }

    #[test]
    fn names_become_nodes() {
        let below = |below: &str, path: &str| node(below, &Path::parse(path).unwrap());
        assert_eq!(below("/", "/"), Some("/".into()));
        assert_eq!(below("/", "/a/b"), Some("/a/b".into()));
        assert_eq!(below("/discovery", "/a:b"), Some("/discovery/a:b".into()));
        assert_eq!(below("/", r"/\xc3\xa4"), Some("/\u{e4}".into()));
        for none in ["/..", "/a/.", r"/a\x2fb", r"/a\x00", r"/\xff"] {
            assert_eq!(below("/", none), None, "{none}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let auth = Auth { scheme: "digest".into(), id: "me:secret".into() };
        assert_eq!(format!("{auth:?}"), "Auth(digest:...)");
    }
}
