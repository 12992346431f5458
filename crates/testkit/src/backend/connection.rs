//! One connection of the backend: serves it in whatever form it turned out to be.

use super::opening::{Opened, open};
use super::{Call, Event, How, Order, Reply, Shared};
use crate::link::{Dialect, Inward, Io, Link, drip, send};
use crate::mux::{self, Dispatch, Pieces};
use crate::theader::Header;
use crate::thrift::{Message, Protocol, REPLY};
use crate::ttwitter;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

/// The tag of [`super::Backend::drain`]'s Tdrain.
const TDRAIN_TAG: u32 = 1;
/// Frames that wait to be written.
const UNWRITTEN: usize = 1024;

/// Accepts until it is aborted; connections end with it.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        shared.note(Event::Open(number));
        let end = End(shared.clone(), number);
        connections.spawn(async move {
            connection(stream, &end.0, number).await;
            drop(end);
        });
        number += 1;
    }
}

/// Notes that a connection has ended, also if its task is aborted.
struct End(Arc<Shared>, usize);

impl Drop for End {
    fn drop(&mut self) {
        self.0.note(Event::Closed(self.1));
    }
}

async fn connection(stream: TcpStream, shared: &Arc<Shared>, number: usize) {
    let mut orders = shared.orders.subscribe();
    let opened = tokio::select! {
        opened = open(stream, shared) => opened,
        () = told_to_close(&mut orders) => None,
    };
    let Some(Opened { link, how, first, window }) = opened else { return };
    let (out, frames) = mpsc::channel(UNWRITTEN);
    let conn = Connection {
        shared: shared.clone(),
        number,
        out,
        tasks: JoinSet::new(),
        tags: HashMap::new(),
        before: None,
        how,
        upgraded: None,
        pieces: Pieces::default(),
        window: window.unwrap_or(usize::MAX),
        asked: shared.accepts.lock().window.map_or(usize::MAX, |window| window as usize),
    };
    let Link { io, inward, packs, .. } = link;
    let (read, write) = tokio::io::split(io);
    let incoming = Incoming { read, inward, dialect: how.dialect, first };
    tokio::select! {
        () = conn.serve(incoming, orders) => (),
        () = writing(write, packs, frames, shared, number) => (),
    }
}

/// Orders to send are for connections whose form is known.
async fn told_to_close(orders: &mut broadcast::Receiver<Order>) {
    while let Ok(Order::Send(_)) = orders.recv().await {}
}

/// What a task of a connection wants written.
enum Write {
    Frame(Bytes),
    /// The answer to a call, to be noted once it is written.
    Answer(Bytes, Option<u32>),
    /// The same, byte by byte.
    Drip(Bytes, Option<u32>),
    Close,
}

async fn writing(
    mut write: WriteHalf<Io>,
    packs: bool,
    mut frames: mpsc::Receiver<Write>,
    shared: &Shared,
    number: usize,
) {
    while let Some(next) = frames.recv().await {
        let (written, tag) = match next {
            Write::Frame(frame) => (send(&mut write, &frame, packs).await, None),
            Write::Answer(frame, tag) => (send(&mut write, &frame, packs).await, Some(tag)),
            Write::Drip(frame, tag) => (drip(&mut write, &frame, packs).await, Some(tag)),
            Write::Close => return,
        };
        if written.is_err() {
            return;
        }
        if let Some(tag) = tag {
            shared.note(Event::Answered(number, tag));
        }
    }
}

struct Incoming {
    read: ReadHalf<Io>,
    inward: Inward,
    dialect: Dialect,
    /// Read before it was known what it is.
    first: Option<Bytes>,
}

impl Incoming {
    /// The next message; `None` at the end. Nothing is lost if it is dropped while it waits.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if let Some(next) = self.inward.take(self.dialect).ok()? {
                return Some(next);
            }
            self.inward.fill(&mut self.read).await.ok()?;
        }
    }
}

struct Connection {
    shared: Arc<Shared>,
    number: usize,
    out: mpsc::Sender<Write>,
    tasks: JoinSet<()>,
    /// Mux calls in flight, by tag.
    tags: HashMap<u32, AbortHandle>,
    /// Plain calls are answered in order: when the last one has been.
    before: Option<oneshot::Receiver<()>>,
    how: How,
    /// TTwitter: a header in this protocol stands before every message.
    upgraded: Option<Protocol>,
    pieces: Pieces,
    /// Bytes of body that the client takes in one piece, and that it was asked to send.
    window: usize,
    asked: usize,
}

impl Connection {
    async fn serve(mut self, mut incoming: Incoming, mut orders: broadcast::Receiver<Order>) {
        loop {
            tokio::select! {
                frame = incoming.next() => match frame {
                    Some(frame) if self.how.dialect == Dialect::Mux => self.mux(frame).await,
                    Some(frame) => self.plain(frame).await,
                    None => return,
                },
                order = orders.recv() => match order {
                    Ok(Order::Send(frame)) => self.write(frame).await,
                    Ok(Order::Close) | Err(_) => return,
                },
                Some(_) = self.tasks.join_next() => (),
            }
        }
    }

    async fn write(&self, frame: Bytes) {
        // The writer ends only together with the connection.
        let _ = self.out.send(Write::Frame(frame)).await;
    }

    async fn mux(&mut self, frame: Bytes) {
        // A client that does not cut as it was asked to gets no answer.
        if !mux::fits(&frame, self.asked) {
            return;
        }
        let Some((kind, tag, body)) = self.pieces.join(frame).as_ref().and_then(mux::split) else { return };
        match kind {
            mux::TPING => self.write(mux::frame(mux::RPING, tag, b"")).await,
            mux::RDRAIN if tag == TDRAIN_TAG => self.shared.note(Event::Drained(self.number)),
            mux::TDISCARDED | mux::OLD_TDISCARDED if body.len() >= 3 => self.discard(&body).await,
            mux::TDISPATCH | mux::TREQ => {
                let dispatch = match kind {
                    mux::TDISPATCH => Dispatch::parse(&body),
                    // A Treq has only trace pairs, one byte for their number and two for each length pair.
                    _ => treq(&body).map(|body| Dispatch { body, ..Dispatch::default() }),
                };
                let Some(dispatch) = dispatch else { return };
                let (is_treq, window) = (kind == mux::TREQ, self.window);
                let answer = self.call(
                    dispatch,
                    self.how,
                    move |reply, message| mux_answer(reply, message, tag, is_treq, window),
                    Some(tag),
                );
                let handle = self.tasks.spawn(answer);
                self.tags.insert(tag, handle);
            }
            _ => (),
        }
    }

    /// Stops the call and says so at once, as Finagle does; what has been answered is left alone.
    async fn discard(&mut self, body: &Bytes) {
        let tag = u32::from_be_bytes([0, body[0], body[1], body[2]]);
        let why = String::from_utf8_lossy(&body[3..]).into_owned();
        self.pieces.forget(tag);
        self.shared.note(Event::Discarded(self.number, tag, why));
        if let Some(call) = self.tags.remove(&tag).filter(|call| !call.is_finished()) {
            call.abort();
            self.write(mux::frame(mux::RDISCARDED, tag, b"")).await;
        }
    }

    async fn plain(&mut self, frame: Bytes) {
        let upgrade = Message::parse(&frame).filter(|m| m.name == ttwitter::UPGRADE.as_bytes());
        if let Some(call) = upgrade.filter(|_| self.shared.ttwitter.load(Ordering::Relaxed)) {
            self.upgraded = Some(call.protocol);
            let reply = Message { kind: REPLY, seqid: 0, body: Bytes::from_static(&[0]), ..call };
            return self.write(framed(&[], &reply.to_bytes())).await;
        }
        let mut how = self.how;
        let mut dispatch = Dispatch { body: frame.clone(), ..Dispatch::default() };
        if let Some(header) = Header::parse(&frame).filter(|_| how.dialect == Dialect::Header) {
            how.zlib = header.zlib;
            dispatch = Dispatch { contexts: header.info, body: header.message, ..Dispatch::default() };
        }
        if let Some(read) = self.upgraded.and_then(|protocol| ttwitter::parse(protocol, &frame)) {
            how.dialect = Dialect::TTwitter;
            dispatch = read;
        }
        let answer = self.call(dispatch, how, move |reply, message| plain_answer(how, reply, message), None);
        let (done, next) = oneshot::channel();
        let before = self.before.replace(next);
        self.tasks.spawn(async move {
            if let Some(before) = before {
                // It ends with the answer before this one, or with that task.
                let _ = before.await;
            }
            answer.await;
            drop(done);
        });
    }

    /// Notes a call and carries out what is planned for it.
    fn call<A>(
        &self,
        dispatch: Dispatch,
        how: How,
        answer: A,
        tag: Option<u32>,
    ) -> impl Future<Output = ()> + use<A>
    where
        A: FnOnce(Reply, Option<Message>) -> Option<Write>,
    {
        let message = Message::parse(&dispatch.body);
        let call = Call {
            conn: self.number,
            tag,
            how,
            contexts: dispatch.contexts,
            dest: dispatch.dest,
            dtab: dispatch.dtab,
            bytes: dispatch.body,
            message: message.clone(),
        };
        let plan = self.shared.next_plan(&call);
        self.shared.note(Event::Call(call));
        let out = self.out.clone();
        let mut released = self.shared.released.subscribe();
        async move {
            if !plan.delay.is_zero() {
                tokio::time::sleep(plan.delay).await;
            }
            match plan.reply {
                // In flight until it is discarded or the connection ends.
                Reply::Hang => std::future::pending::<()>().await,
                // The sender lives as long as the backend; without it, nobody waits any more.
                Reply::Hold => drop(released.wait_for(|released| *released).await),
                Reply::Raw(bytes) => {
                    let _ = out.send(Write::Frame(bytes)).await;
                    let _ = out.send(Write::Close).await;
                    return;
                }
                Reply::Drip => {
                    if let Some(Write::Answer(bytes, tag)) = answer(Reply::Serve, message) {
                        let _ = out.send(Write::Drip(bytes, tag)).await;
                    }
                    return;
                }
                Reply::Cut => {
                    if let Some(Write::Answer(bytes, _)) = answer(Reply::Serve, message) {
                        let _ = out.send(Write::Frame(bytes.slice(..bytes.len() / 2))).await;
                    }
                    let _ = out.send(Write::Close).await;
                    return;
                }
                _ => (),
            }
            if let Some(write) = answer(plan.reply, message) {
                let _ = out.send(write).await;
            }
        }
    }
}

/// The Thrift message that is due, or why there is none.
fn thrift_answer(reply: Reply, message: Option<Message>) -> Result<Bytes, Reply> {
    let Some(message) = message else {
        return match reply {
            Reply::Bytes(bytes) => Ok(bytes),
            Reply::Serve | Reply::Hold | Reply::With(_) | Reply::Exception(..) | Reply::Declared(_) => {
                Err(Reply::Close)
            }
            other => Err(other),
        };
    };
    match reply {
        Reply::Serve | Reply::Hold | Reply::With(_) => {
            Ok(message.served().map_or(Bytes::new(), |m| m.to_bytes()))
        }
        Reply::Exception(code, text) => Ok(message.exception(code, &text).to_bytes()),
        Reply::Declared(why) => Ok(message.declared_exception(&why).to_bytes()),
        Reply::Bytes(bytes) => Ok(bytes),
        other => Err(other),
    }
}

fn mux_answer(
    reply: Reply,
    message: Option<Message>,
    tag: u32,
    is_treq: bool,
    window: usize,
) -> Option<Write> {
    let contexts = if let Reply::With(contexts) = &reply { contexts.clone() } else { Vec::new() };
    let answer = match thrift_answer(reply, message.clone()) {
        // As Finagle does it: the session has other calls.
        Err(Reply::Close) if message.is_none() => Err(Reply::Error(contexts.clone(), "not a call".into())),
        answer => answer,
    };
    let (status, contexts, body) = match answer {
        Ok(body) => (mux::OK, contexts, body),
        Err(Reply::Nack(contexts)) => (mux::NACK, contexts, Bytes::new()),
        Err(Reply::Error(contexts, text)) => (mux::ERROR, contexts, Bytes::from(text)),
        Err(Reply::Close) => return Some(Write::Close),
        Err(_) => return None,
    };
    let frame = if is_treq {
        let mut out = vec![status];
        out.extend_from_slice(&body);
        mux::frame(mux::RREQ, tag, &out)
    } else {
        mux::pieces(mux::RDISPATCH, tag, &mux::rdispatch(status, &contexts, &body), window)
    };
    Some(Write::Answer(frame, Some(tag)))
}

fn plain_answer(how: How, reply: Reply, message: Option<Message>) -> Option<Write> {
    let info = if let Reply::With(pairs) = &reply { pairs.clone() } else { Vec::new() };
    let body = match thrift_answer(reply, message.clone()) {
        // A one-way call: nothing at all is written.
        Ok(body) if body.is_empty() => return None,
        Ok(body) => body,
        Err(Reply::Error(_, text)) => message?.exception(6, &text).to_bytes(),
        Err(Reply::Close | Reply::Nack(_)) => return Some(Write::Close),
        Err(_) => return None,
    };
    let bytes = match how.dialect {
        Dialect::Buffered => body,
        Dialect::TTwitter => framed(&[0], &body),
        Dialect::Header => {
            let seqid = Message::parse(&body).map_or(0, |message| message.seqid);
            let header = Header { seqid, zlib: how.zlib, info, message: body };
            framed(&[], &header.to_bytes())
        }
        Dialect::Framed | Dialect::Mux => framed(&[], &body),
    };
    Some(Write::Answer(bytes, None))
}

fn framed(header: &[u8], body: &[u8]) -> Bytes {
    let length = header.len() + body.len();
    let mut out = BytesMut::with_capacity(4 + length);
    out.put_u32(length as u32);
    out.put_slice(header);
    out.put_slice(body);
    out.freeze()
}

/// The Thrift message of a Treq's body.
fn treq(body: &Bytes) -> Option<Bytes> {
    let mut at = 1;
    for _ in 0..*body.first()? {
        at += 2 + usize::from(*body.get(at + 1)?);
    }
    (at <= body.len()).then(|| body.slice(at..))
}
