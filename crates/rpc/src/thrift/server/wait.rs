//! Waiting for an answer, and what goes on meanwhile.

use super::asked::{Reply, Settled};
use super::{MAX_AT_ONCE, Session};
use crate::io::Io;
use crate::mux::{READS_A_TURN, give_way};
use crate::thrift::READ_CHUNK;
use crate::{Request, Serve};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// A oneway call that goes on by itself is over after this time: nobody waits for it, and nothing can be done about it.
const ONEWAY_ENDS: Duration = Duration::from_secs(60);

/// How often a caller that is not read from is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes of later calls that are taken in while a call is in progress, whether they can be begun or not.
const READ_AHEAD: usize = READ_CHUNK;

impl<T: Io, S: Serve> Session<'_, T, S> {
    /// Waits for the answer to `call`, or, without one, to the first in line. Meanwhile it reads ahead: calls that come
    /// are begun, and a reset shows itself and drops them all. A caller that sends no more may have closed only its half,
    /// or be gone: it is waited for, but not for ever. None: it is gone.
    pub(super) async fn wait(
        &mut self,
        mut call: Option<Pin<&mut impl Future<Output = Option<Reply>>>>,
    ) -> Option<Option<Reply>> {
        let mut look = pin!(None::<Sleep>);
        let mut deaf_since = None;
        let answer = poll_fn(|cx| {
            if let Some(call) = &mut call
                && let Poll::Ready(answer) = call.as_mut().poll(cx)
            {
                return Poll::Ready(Some(answer));
            }
            let in_line = call.is_none();
            let in_task = usize::from(!in_line);
            let mut reads = 0;
            loop {
                self.begin_more(in_task, cx);
                if let Some(line) = &mut self.line {
                    line.drive(cx);
                    if in_line && let Some(answer) = line.take() {
                        return Poll::Ready(Some(answer));
                    }
                }
                if !self.may_read(in_task) {
                    break;
                }
                if reads == READS_A_TURN {
                    give_way(cx);
                    return Poll::Pending;
                }
                reads += 1;
                match self.read.poll_fill(&mut self.io, cx, 0) {
                    Poll::Ready(Ok(0)) => self.ended = true,
                    // What follows means nothing, but only behind it the caller's end shows itself.
                    Poll::Ready(Ok(_)) if self.lost => self.read.bytes_mut().clear(),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
            }
            // Nothing is read any more: look now and then whether the caller is still there.
            let since = *deaf_since.get_or_insert_with(Instant::now);
            loop {
                if look.is_none() {
                    look.set(Some(sleep(LOOK_EVERY)));
                }
                let due = look.as_mut().as_pin_mut().is_some_and(|timer| timer.poll(cx).is_ready());
                if !due {
                    return Poll::Pending;
                }
                look.set(None);
                let reset = matches!(Pin::new(&mut self.io).poll_write(cx, &[]), Poll::Ready(Err(_)));
                if reset || (self.ended && since.elapsed() >= self.params.stall) {
                    return Poll::Ready(None);
                }
            }
        });
        let answer = answer.await;
        if answer.is_none() {
            self.events.abandoned();
        }
        answer
    }

    /// Whether bytes beyond those that were read are wanted.
    fn may_read(&self, in_task: usize) -> bool {
        let read = self.read.bytes().len();
        let is_wanted =
            read < READ_AHEAD || (self.has_room(in_task) && self.held() + read < self.params.max_held);
        !self.ended && (self.lost || is_wanted)
    }

    /// Whether one more call may be begun; `in_task` calls run beside those in line.
    fn has_room(&self, in_task: usize) -> bool {
        let running = in_task + self.line.as_ref().map_or(0, |line| line.len());
        running < self.params.max_at_once.min(MAX_AT_ONCE) && self.held() < self.params.max_held
    }

    fn held(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.held())
    }

    /// Begins the calls that have come, as far as there is room.
    fn begin_more(&mut self, in_task: usize, cx: &mut Context<'_>) {
        while !self.lost && !self.read.bytes().is_empty() && self.has_room(in_task) {
            let message = match self.cutter.next(self.read.bytes_mut()) {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(lost) => {
                    if let Some(reply) = self.lose(lost) {
                        self.line.get_or_insert_default().put(reply);
                    }
                    return;
                }
            };
            match self.reader.read(message) {
                Ok((request, _)) if request.body.is_oneway() => self.fire(request, cx),
                Ok((request, envelope)) => {
                    self.line.get_or_insert_default().start(self.service, request, envelope);
                }
                Err(Settled::Answer(reply)) => self.line.get_or_insert_default().put(reply),
                Err(Settled::Nothing) => {}
                Err(Settled::Lost) => self.lost = true,
            }
        }
    }

    /// Nobody waits for a oneway call, nor is it of interest whether its caller is still there. It is begun before the next
    /// call of the connection is, and then goes on beside it: a Mux service may take its time to acknowledge it.
    pub(super) fn fire(&mut self, mut request: Request, cx: &mut Context<'_>) {
        let room = Arc::clone(&self.params.oneways).try_acquire_owned();
        let service = Arc::clone(self.service);
        let mut call = Box::pin(async move {
            let _ = service.call(&mut request).await;
        });
        if call.as_mut().poll(cx).is_ready() {
            return;
        }
        match room {
            Ok(room) => {
                tokio::spawn(async move {
                    let _ = timeout(ONEWAY_ENDS, call).await;
                    drop(room);
                });
            }
            Err(_) => self.line.get_or_insert_default().adopt(call),
        }
    }
}
