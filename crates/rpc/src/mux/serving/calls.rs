//! From a dispatch to the task that answers it, and from its answer to bytes.

use super::{Running, Session, Socket};
use crate::io::Io;
use crate::request::Discarded;
use crate::{Failure, Request, Response, Serve, Why, bridge};
use bytes::Bytes;
use muxgate_wire::mux::message::Status;
use muxgate_wire::mux::server::{Request as MuxRequest, ServerSession};
use muxgate_wire::mux::session::Call;
use muxgate_wire::pairs::Pairs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

impl Session {
    /// Answers a call; the socket's task is woken by the first of a batch only.
    fn reply(&self, call: Call, result: Result<Response, Failure>) {
        let mut machine = self.machine.lock();
        let idle = machine.outbox().is_empty();
        answer(&mut machine, call, result);
        drop(machine);
        if idle {
            self.wake.wake();
        }
    }
}

/// Writes an answer into the outbox in the form that Mux has for it.
fn answer(machine: &mut ServerSession<Running>, call: Call, result: Result<Response, Failure>) {
    match result {
        Ok(Response { contexts, body, .. }) => {
            machine.reply(
                call,
                Status::Ok,
                |out| contexts.iter().for_each(|(key, value)| out.put(key, value)),
                body,
            );
        }
        Err(failure) => {
            let status = if failure.is_retryable() { Status::Nack } else { Status::Error };
            machine.reply(
                call,
                status,
                |out| {
                    if let Some(flags) = bridge::mux_failure(&failure) {
                        out.put_failure(flags);
                    }
                    failure.contexts().iter().for_each(|(key, value)| out.put(key, value));
                },
                Bytes::from(failure.to_string()),
            );
        }
    }
}

/// Bytes that count as in progress until this is dropped.
struct InProgress {
    session: Arc<Session>,
    bytes: usize,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.session.in_progress.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<T: Io, S: Serve> Socket<T, S> {
    /// Starts the task that answers a call. The lock that is held keeps its answer back until the call is recorded.
    pub(super) fn start(
        &mut self,
        session: &Arc<Session>,
        machine: &mut ServerSession<Running>,
        call: Call,
        request: MuxRequest,
        now: Instant,
    ) {
        let built = build(request, session.peer, now).and_then(|mut request| {
            self.rules.apply(&mut request.body)?;
            Ok(request)
        });
        let mut request = match built {
            Ok(request) => request,
            Err(failure) => {
                self.events.decode_error("dispatch");
                return answer(machine, call, Err(failure));
            }
        };
        let bytes = request.body.bytes().len();
        let held = session.in_progress.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Replies that the caller does not take count too: they are what its calls become.
        if held + machine.outbox().queued_bytes() > session.max_in_progress {
            session.in_progress.fetch_sub(bytes, Ordering::Relaxed);
            self.events.limited("bytes_in_progress");
            self.stay_away(machine, session.clock.now());
            let failure =
                Failure::new(Why::Overload, "too many bytes of calls in progress on the connection");
            return answer(machine, call, Err(failure));
        }
        let discarded = Discarded::default();
        request.local.discarded = Some(Arc::clone(&discarded));
        request.local.identity = session.identity.get().cloned();
        let in_progress = InProgress { session: Arc::clone(session), bytes };
        let service = Arc::clone(&self.service);
        // Boxed, since the runtime would move what is large several times before it is at its place.
        let task = tokio::spawn(Box::pin(async move {
            let result = service.call(&mut request).await;
            in_progress.session.reply(call, result);
        }));
        machine.accept(call, Running { task: task.abort_handle(), discarded });
    }
}

fn build(request: MuxRequest, peer: Option<SocketAddr>, now: Instant) -> Result<Request, Failure> {
    match request {
        MuxRequest::Tdispatch(dispatch) => {
            bridge::from_tdispatch(&dispatch.contexts, dispatch.dst, dispatch.dtab, dispatch.body, peer, now)
        }
        MuxRequest::Treq(treq) => {
            let mut request = bridge::from_tdispatch(
                &Pairs::default(),
                Bytes::new(),
                Pairs::default(),
                treq.body,
                peer,
                now,
            )?;
            request.ctx.trace = treq.trace;
            Ok(request)
        }
    }
}
