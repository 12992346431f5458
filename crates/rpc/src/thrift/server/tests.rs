mod failures;
mod pipelining;
mod shapes;

use super::*;
use crate::{Failure, Response, Why};
use bytes::{BufMut, BytesMut};
use muxgate_wire::thrift::{
    ApplicationExceptionType as Type, Form, Kind, Protocol, ReplyClass, classify, exception, peek, write_head,
};
use parking_lot::Mutex;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// Does what a method's name says: `sleep` answers after a second, `hang` never, `boom` fails, `odd` answers with more than
/// a message, `missing` with a TApplicationException; the rest answer at once, with void.
#[derive(Default)]
struct Service {
    /// Names in the order in which calls began.
    begun: Mutex<Vec<String>>,
    seen: Mutex<Vec<Request>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

struct Running<'a>(&'a Service);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Serve for Service {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let name = String::from_utf8_lossy(request.body.method_bytes()).into_owned();
        self.begun.lock().push(name.clone());
        self.seen.lock().push(request.clone());
        self.most.fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let _running = Running(self);
        match name.as_str() {
            "hang" => pending().await,
            "sleep" | "sleepy" => sleep(SECOND).await,
            "boom" => return Err(Failure::new(Why::Timeout, "too slow")),
            _ => {}
        }
        if request.body.is_oneway() {
            return Ok(Response::nothing());
        }
        let head = request.body.head().expect("Thrift");
        let mut reply = BytesMut::new();
        if name == "missing" {
            let (name, kind) = (request.body.method_bytes(), Type::UnknownMethod);
            exception::write(head.form(), name, head.seqid, kind, "no such method", &mut reply);
        } else {
            write_head(head.form(), Kind::Reply, name.as_bytes(), head.seqid, &mut reply);
            reply.put_slice(if name == "odd" { &[0, 0] } else { &[0] });
        }
        let contexts = request.ctx.rest.clone();
        Response::judged(&request.body, reply.freeze(), contexts, false)
    }
}

/// Counts what is counted by cause.
#[derive(Default)]
struct Counts(Mutex<Vec<&'static str>>);

impl Events for Counts {
    fn decode_error(&self, cause: &'static str) {
        self.0.lock().push(cause);
    }

    fn limited(&self, cause: &'static str) {
        self.0.lock().push(cause);
    }

    fn abandoned(&self) {
        self.0.lock().push("abandoned");
    }
}

struct House {
    io: DuplexStream,
    service: Arc<Service>,
    counts: Arc<Counts>,
    drain: Drain,
    served: JoinHandle<()>,
}

fn params() -> ServerParams {
    ServerParams::new(1 << 20, 10 * SECOND, None)
}

fn house(framing: Framing, params: ServerParams) -> House {
    let (io, theirs) = duplex(1 << 20);
    let (service, counts) = (Arc::new(Service::default()), Arc::new(Counts::default()));
    let drain = Drain::default();
    let served = tokio::spawn({
        let (service, counts, drain) = (Arc::clone(&service), Arc::clone(&counts), drain.clone());
        async move {
            let read = ReadBuffer::new(4 << 10);
            let caller = Caller { io: theirs, read, framing, peer: Peer::default() };
            serve(caller, &service, &params, &drain, &*counts).await;
        }
    });
    House { io, service, counts, drain, served }
}

/// A message whose arguments are one string as field 1.
fn message(form: Form, kind: Kind, name: &str, seqid: i32) -> Bytes {
    let mut out = BytesMut::new();
    write_head(form, kind, name.as_bytes(), seqid, &mut out);
    match form.protocol() {
        Protocol::Binary => out.put_slice(b"\x0b\0\x01\0\0\0\x02hi\0"),
        Protocol::Compact => out.put_slice(b"\x18\x02hi\0"),
    }
    out.freeze()
}

fn call(name: &str, seqid: i32) -> Bytes {
    message(Form::Strict, Kind::Call, name, seqid)
}

fn framed(content: &[u8]) -> Bytes {
    [&(content.len() as u32).to_be_bytes()[..], content].concat().into()
}

impl House {
    async fn send(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.expect("a connection");
    }

    /// The content of the next frame.
    async fn frame(&mut self) -> Bytes {
        let length = self.io.read_u32().await.expect("a frame");
        let mut content = vec![0; length as usize];
        self.io.read_exact(&mut content).await.expect("the rest of a frame");
        content.into()
    }

    /// All that still comes, after the caller has ended its input.
    async fn rest(&mut self) -> Bytes {
        self.io.shutdown().await.expect("a half close");
        let mut rest = Vec::new();
        self.io.read_to_end(&mut rest).await.expect("an end");
        rest.into()
    }

    async fn ends(self) -> Vec<&'static str> {
        drop(self.io);
        self.served.await.expect("it ends well");
        self.counts.0.lock().clone()
    }
}

/// Kind, name and sequence id, and the type of an exception.
type Read = (Kind, String, i32, Option<Type>);

fn read(message: &Bytes) -> Read {
    let head = peek(message).expect("a Thrift message");
    let kind = match classify(message).expect("a reply") {
        ReplyClass::Application { kind, .. } => Some(kind),
        _ => None,
    };
    (head.kind, String::from_utf8_lossy(head.name_in(message)).into_owned(), head.seqid, kind)
}

fn replied(name: &str, seqid: i32) -> Read {
    (Kind::Reply, name.into(), seqid, None)
}

fn refused(name: &str, seqid: i32, kind: Type) -> Read {
    (Kind::Exception, name.into(), seqid, Some(kind))
}
