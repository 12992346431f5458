//! A backend inside the test's own process: speaks every form of Thrift and Mux on one port, serves Echo and Probe,
//! misbehaves as told, and writes down all that it sees. It lives on the test's runtime, so paused time holds for it too.

mod connection;
mod opening;

pub use opening::How;

use crate::mux::Pairs;
use crate::thrift::Message;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

/// How long [`Backend::wait`] waits.
pub const LIMIT: Duration = Duration::from_secs(20);
/// Orders to connections that one of them may be behind by.
const ORDERS: usize = 64;

/// What is done with a call.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Waited before anything else.
    pub delay: Duration,
    /// Then done.
    pub reply: Reply,
}

impl Plan {
    /// At once.
    pub fn now(reply: Reply) -> Self {
        Self { delay: Duration::ZERO, reply }
    }

    /// The usual reply, later.
    pub fn after(delay: Duration) -> Self {
        Self { delay, reply: Reply::Serve }
    }
}

/// An answer, or the lack of one.
#[derive(Clone, Debug, Default)]
pub enum Reply {
    /// What the service answers.
    #[default]
    Serve,
    /// What the service answers, once [`Backend::release`] is called.
    Hold,
    /// Never any.
    Hang,
    /// The connection is closed instead.
    Close,
    /// A Mux nack with these contexts; on framed Thrift, the connection is closed, as Finagle does it.
    Nack(Pairs),
    /// A Mux error with contexts and a text; on framed Thrift, a TApplicationException of type 6.
    Error(Pairs, String),
    /// A TApplicationException with type and text.
    Exception(i32, String),
    /// The declared exception of Probe.add and Echo.fail, as field 1 of the result.
    Declared(String),
    /// These bytes in place of the Thrift message.
    Bytes(Bytes),
    /// The usual reply, with these contexts (Mux), or this info (THeader).
    With(Pairs),
    /// These bytes on the connection as they are, whatever it speaks; then it is closed.
    Raw(Bytes),
    /// What the service answers, byte by byte.
    Drip,
    /// Half of what the service answers; then the connection is closed.
    Cut,
}

/// One call as it came in.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which connection, counted from 0.
    pub conn: usize,
    /// The Mux tag; `None` on plain Thrift.
    pub tag: Option<u32>,
    /// What it came in.
    pub how: How,
    /// Contexts, in order; THeader's info.
    pub contexts: Pairs,
    /// The destination; empty on framed Thrift.
    pub dest: Bytes,
    /// The dtab, in order.
    pub dtab: Pairs,
    /// The whole Thrift message, with a TTwitter header if the gateway has sent one.
    pub bytes: Bytes,
    /// The Thrift message, if it could be read.
    pub message: Option<Message>,
}

impl Call {
    /// The method's name, as text.
    pub fn method(&self) -> String {
        self.message.as_ref().map_or(String::new(), |m| String::from_utf8_lossy(&m.name).into_owned())
    }

    /// The first context called `key`.
    pub fn context(&self, key: &str) -> Option<&Bytes> {
        self.contexts.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

/// What happened, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// A connection was accepted.
    Open(usize),
    /// A call came in.
    Call(Call),
    /// The answer to a call was written.
    Answered(usize, Option<u32>),
    /// A Tdiscarded came: connection, tag, reason.
    Discarded(usize, u32, String),
    /// An Rdrain came: connection.
    Drained(usize),
    /// A connection ended, by whichever side.
    Closed(usize),
}

/// An order to all connections.
#[derive(Clone, Debug)]
enum Order {
    Send(Bytes),
    Close,
}

/// What is done with a call, by its content.
type Decide = Box<dyn Fn(&Call) -> Plan + Send + Sync>;

struct Shared {
    decide: Mutex<Decide>,
    script: Mutex<VecDeque<Plan>>,
    released: watch::Sender<bool>,
    ttwitter: AtomicBool,
    accepts: Mutex<opening::Accepts>,
    events: watch::Sender<Vec<Event>>,
    orders: broadcast::Sender<Order>,
}

impl Shared {
    fn note(&self, event: Event) {
        self.events.send_modify(|events| events.push(event));
    }

    fn next_plan(&self, call: &Call) -> Plan {
        let scripted = self.script.lock().pop_front();
        scripted.unwrap_or_else(|| (self.decide.lock())(call))
    }
}

/// A listening backend. Dropping it closes everything.
pub struct Backend {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Backend {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start() -> Self {
        Self::on("127.0.0.1:0".parse().expect("an address")).await
    }

    /// Listens on `addr`: where another backend has been before, for example.
    ///
    /// # Panics
    /// If that fails.
    pub async fn on(addr: SocketAddr) -> Self {
        Self::of(TcpListener::bind(addr).await.unwrap_or_else(|e| panic!("{addr}: {e}")))
    }

    /// Begins to accept on a socket that listens already.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn of(listener: TcpListener) -> Self {
        let addr = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            decide: Mutex::new(Box::new(|_| Plan::default())),
            script: Mutex::default(),
            released: watch::Sender::new(false),
            ttwitter: AtomicBool::new(false),
            accepts: Mutex::default(),
            events: watch::Sender::new(Vec::new()),
            orders: broadcast::Sender::new(ORDERS),
        });
        let accepting = tokio::spawn(connection::accept(listener, shared.clone()));
        Self { addr, shared, accepting }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sets what is done with each call from now on.
    pub fn set(&self, plan: Plan) {
        self.decide(move |_| plan.clone());
    }

    /// Sets what is done with each call from now on, by what it holds.
    pub fn decide(&self, decide: impl Fn(&Call) -> Plan + Send + Sync + 'static) {
        *self.shared.decide.lock() = Box::new(decide);
    }

    /// Answers every call that is held, and holds none from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// From now on the TTwitter upgrade is accepted; before, it is refused as any unknown method.
    pub fn accept_upgrades(&self) {
        self.shared.ttwitter.store(true, Ordering::Relaxed);
    }

    /// From now on TLS is taken: from the first byte on, and if `opportunistic` from the Mux handshake on.
    pub fn accept_tls(&self, config: Arc<rustls::ServerConfig>, opportunistic: bool) {
        let mut accepts = self.shared.accepts.lock();
        accepts.tls = Some(config);
        accepts.opportunistic = opportunistic;
    }

    /// From now on Mux sessions are packed if their clients offer it.
    pub fn accept_lz4(&self) {
        self.shared.accepts.lock().lz4 = true;
    }

    /// From now on Mux clients are told to cut bodies into pieces of so many bytes.
    pub fn ask_for_pieces(&self, window: u32) {
        self.shared.accepts.lock().window = Some(window);
    }

    /// From now on connections carry messages without frames, which is not always told from their first bytes.
    pub fn expect_no_frames(&self) {
        self.shared.accepts.lock().buffered = true;
    }

    /// Sets what is done with the next calls, one each, before the plan holds again.
    pub fn script(&self, plans: impl IntoIterator<Item = Plan>) {
        self.shared.script.lock().extend(plans);
    }

    /// Writes a frame, length included, to every open connection.
    pub fn send(&self, frame: Bytes) {
        // Without a connection there is nobody to tell.
        let _ = self.shared.orders.send(Order::Send(frame));
    }

    /// Sends Tdrain with tag 1 on every open connection.
    pub fn drain(&self) {
        self.send(crate::mux::frame(crate::mux::TDRAIN, 1, b""));
    }

    /// Sends Tlease on every open connection.
    pub fn lease(&self, how_long: Duration) {
        let mut body = vec![0];
        body.extend((how_long.as_millis() as u64).to_be_bytes());
        self.send(crate::mux::frame(crate::mux::TLEASE, 0, &body));
    }

    /// Closes every open connection.
    pub fn close_connections(&self) {
        let _ = self.shared.orders.send(Order::Close);
    }

    /// Ends: when this returns, the port is closed and so are all connections.
    pub async fn stop(mut self) {
        self.accepting.abort();
        // It ends by being aborted, which is what was asked for.
        let _ = (&mut self.accepting).await;
        self.wait("the end of all connections", |events| {
            let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
            let open = count(|event| matches!(event, Event::Open(_)));
            (open == count(|event| matches!(event, Event::Closed(_)))).then_some(())
        })
        .await;
    }

    /// All that has happened.
    pub fn events(&self) -> Vec<Event> {
        self.shared.events.borrow().clone()
    }

    /// All calls that came in.
    pub fn calls(&self) -> Vec<Call> {
        calls(&self.shared.events.borrow()).cloned().collect()
    }

    /// How many calls came in.
    pub fn count(&self) -> usize {
        calls(&self.shared.events.borrow()).count()
    }

    /// Waits until `look` makes something of what has happened.
    ///
    /// # Panics
    /// With what has happened, if it does not in time.
    pub async fn wait<T>(&self, what: &str, look: impl FnMut(&[Event]) -> Option<T>) -> T {
        match self.find(look).await {
            Some(found) => found,
            None => panic!("waited for {what}; the backend saw {:#?}", self.events()),
        }
    }

    /// The same without a panic: `None` if it does not in time.
    ///
    /// # Panics
    /// Never: the backend is here as long as this waits.
    pub async fn find<T>(&self, mut look: impl FnMut(&[Event]) -> Option<T>) -> Option<T> {
        let mut events = self.shared.events.subscribe();
        let search = async {
            loop {
                if let Some(found) = look(&events.borrow_and_update()) {
                    return found;
                }
                events.changed().await.expect("the backend is here");
            }
        };
        tokio::time::timeout(LIMIT, search).await.ok()
    }

    /// Waits until `n` calls have come in.
    ///
    /// # Panics
    /// With what has happened, if they have not in time.
    pub async fn wait_calls(&self, n: usize) -> Vec<Call> {
        let all = |events: &[Event]| calls(events).cloned().collect::<Vec<_>>();
        self.wait(&format!("{n} calls"), |events| Some(all(events)).filter(|c| c.len() >= n)).await
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.close_connections();
        self.accepting.abort();
    }
}

/// A port of 127.0.0.1 that is taken and on which nobody listens: connections are refused.
pub struct ClosedPort(TcpSocket, SocketAddr);

impl ClosedPort {
    /// A free port.
    ///
    /// # Panics
    /// If there is none.
    pub fn new() -> Self {
        // Not to be shared: the system would give a port on which nobody listens to anybody who is ready to share it.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let addr = socket.local_addr().expect("a bound socket has an address");
        Self(socket, addr)
    }

    /// Where nobody listens.
    pub fn addr(&self) -> SocketAddr {
        self.1
    }

    /// From now on the system takes connections; nobody reads from them before [`Backend::of`].
    ///
    /// # Panics
    /// If that fails.
    pub fn listen(self) -> TcpListener {
        // So that others may listen here once this one has ended.
        self.0.set_reuseaddr(true).expect("a socket option");
        self.0.listen(1024).expect("a bound socket can listen")
    }
}

impl Default for ClosedPort {
    fn default() -> Self {
        Self::new()
    }
}

fn calls(events: &[Event]) -> impl Iterator<Item = &Call> {
    events.iter().filter_map(|e| if let Event::Call(call) = e { Some(call) } else { None })
}

#[cfg(test)]
mod tests;
