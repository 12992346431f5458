//! One row of a gateway: a caller, its listener, and a service of its own; its cells are tried in order.

use crate::forms::{Inbound, Outbound};
use crate::rule::{Expectation, Heard, Outcome, Seen, carried, carries_back, expect};
use crate::scene::LARGE;
use bytes::Bytes;
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Call, Event};
use muxgate_testkit::luggage::Luggage;
use muxgate_testkit::mux::{NACK, Pairs};
use muxgate_testkit::speaker::{Said, Security, Speaker};
use muxgate_testkit::thrift::{EXCEPTION, Message, ONEWAY, Protocol};
use rustls::ClientConfig;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a service says that fails.
pub const BROKEN: &str = "it broke";

/// What a failed cell says.
pub type Verdict = Result<(), String>;

/// A row.
pub struct Row<'a> {
    pub inbound: &'a Inbound,
    pub outbound: &'a Outbound,
    /// Where the gateway listens for it.
    pub addr: SocketAddr,
    /// Its service's name.
    pub name: String,
    pub backend: Backend,
    pub tls: Arc<ClientConfig>,
    /// Calls made so far, and where the row began to count.
    pub made: i32,
}

impl Row<'_> {
    /// Tries all cells. The connection is kept from one to the next as long as it works.
    pub async fn run(&mut self) -> Vec<(Outcome, Verdict)> {
        let mut verdicts = Vec::new();
        let mut caller = None;
        for outcome in Outcome::ALL {
            let verdict = self.cell(outcome, &mut caller).await.map_err(|why| {
                let log = caller.take().map_or(String::new(), |caller: Speaker| caller.log().to_owned());
                format!(
                    "{} -> {} {}, {outcome:?}: {why}{log}",
                    self.inbound.name,
                    self.outbound.name,
                    self.outbound.short()
                )
            });
            verdicts.push((outcome, verdict));
        }
        verdicts
    }

    /// One cell, and a plain result behind it.
    async fn cell(&mut self, outcome: Outcome, kept: &mut Option<Speaker>) -> Verdict {
        let caller = match kept.take().filter(|_| outcome != Outcome::LargeFirst) {
            Some(caller) => caller,
            None => self.connect().await?,
        };
        let caller = kept.insert(caller);
        caller.forget();
        match outcome {
            Outcome::Several => self.several(caller).await?,
            _ => self.one(outcome, kept).await?,
        }
        let caller = match kept.take() {
            Some(caller) => caller,
            None => self.connect().await?,
        };
        let (caller, last) = (kept.insert(caller), self.call(Outcome::Result));
        let told = caller.tell(&last, &self.name, &Luggage::default()).await;
        told.map_err(|error| format!("cannot call again: {error}"))?;
        heard(caller, Outcome::Result, Heard::Answer, &last)
            .await
            .map_err(|why| format!("the next call: {why}"))
    }

    /// One call. The caller is kept if its connection should live.
    async fn one(&mut self, outcome: Outcome, kept: &mut Option<Speaker>) -> Verdict {
        let Some(caller) = kept.as_mut() else { return Err("no caller".into()) };
        let expected = expect(self.inbound, self.outbound, outcome);
        let before = self.backend.calls().len();
        let call = self.call(outcome);
        let is_large = matches!(outcome, Outcome::LargeCall | Outcome::LargeFirst);
        let luggage = if outcome == Outcome::Luggage { luggage() } else { Luggage::default() };
        caller.drip(outcome == Outcome::Drip);
        let told = caller.tell(&call, &self.name, &luggage).await;
        caller.drip(false);
        if !is_large {
            told.map_err(|error| format!("cannot call: {error}"))?;
        }
        if outcome == Outcome::Cancel {
            self.calls(before, 1).await?;
            match self.inbound.is_mux() {
                true => caller.discard("not needed").await.map_err(|error| error.to_string())?,
                false => kept.take().map_or((), Speaker::reset),
            }
        }
        if let Some(caller) = kept.as_mut() {
            heard(caller, outcome, expected.heard, &call).await?;
            if !expected.lives && expected.heard != Heard::End {
                heard(caller, outcome, Heard::End, &call).await?;
            }
            let comes_back = outcome == Outcome::Luggage && carries_back(self.inbound, self.outbound);
            let wanted = if comes_back { luggage.headers.clone() } else { Pairs::new() };
            if *caller.headers() != wanted {
                return Err(format!("the caller got headers {:?}, wanted {wanted:?}", caller.headers()));
            }
        }
        self.seen(outcome, &expected, before, &call).await?;
        if outcome == Outcome::Luggage {
            self.carried(before, &luggage).await?;
        }
        if !expected.lives {
            *kept = None;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Speaker, String> {
        Speaker::connect(self.inbound.form, self.addr, &self.tls)
            .await
            .map_err(|error| format!("cannot connect: {error}"))
    }

    pub fn call(&mut self, outcome: Outcome) -> Message {
        self.made += 1;
        // Many callers number everything 0; others may use any number.
        let seqid = match self.made % 3 {
            0 => 0,
            1 => i32::MAX - self.made,
            _ => -self.made,
        };
        let text = match outcome {
            Outcome::LargeCall | Outcome::LargeFirst => "x".repeat(LARGE),
            _ => format!("{outcome:?} {}", self.made),
        };
        message(self.inbound.form.protocol, outcome, seqid, &text)
    }

    /// Waits until the service has `n` calls more than `before`.
    pub async fn calls(&self, before: usize, n: usize) -> Result<Vec<Call>, String> {
        let new = |events: &[Event]| {
            let calls =
                events.iter().filter_map(|e| if let Event::Call(call) = e { Some(call) } else { None });
            Some(calls.skip(before).cloned().collect::<Vec<_>>()).filter(|calls| calls.len() >= n)
        };
        let found = self.backend.find(new).await.ok_or("the service got no call")?;
        match found.len() {
            len if len == n => Ok(found),
            len => Err(format!("the service got {len} calls, not {n}")),
        }
    }

    async fn seen(&self, outcome: Outcome, expected: &Expectation, before: usize, call: &Message) -> Verdict {
        let n = if let Seen::Calls(n) = expected.seen { n } else { 1 };
        for seen in self.calls(before, n).await? {
            self.judge(outcome, &seen, call)?;
            if expected.seen == Seen::Withdrawn {
                let is_told = |event: &Event| match (event, seen.tag) {
                    (Event::Discarded(conn, tag, _), Some(ours)) => (*conn, *tag) == (seen.conn, ours),
                    (Event::Closed(conn), None) => *conn == seen.conn,
                    _ => false,
                };
                let told = self.backend.find(|events| events.iter().any(is_told).then_some(())).await;
                told.ok_or("the service was not told that nobody waits")?;
            }
        }
        Ok(())
    }

    /// Whether the service got what it should of what came with the call.
    async fn carried(&self, before: usize, luggage: &Luggage) -> Verdict {
        let wanted = carried(self.inbound, self.outbound, luggage);
        for seen in self.calls(before, 1).await? {
            let mut got = Luggage::read(seen.how.dialect, &seen.contexts);
            // The gateway begins a trace where there is none.
            if wanted.trace.is_none() {
                got.trace = None;
            }
            if got != wanted {
                return Err(format!("the service got {got:?}, not {wanted:?}"));
            }
        }
        Ok(())
    }

    /// Whether the service got the call in the form that was asked for.
    pub fn judge(&self, outcome: Outcome, seen: &Call, call: &Message) -> Verdict {
        let (how, protocol) = (seen.how, self.outbound.protocol_of(self.inbound));
        let is_encrypted = self.outbound.security != Security::Clear;
        if (how.dialect, how.tls, how.lz4) != (self.outbound.dialect, is_encrypted, self.outbound.lz4) {
            return Err(format!("the service was spoken to in {how:?}"));
        }
        let text = text(call);
        let mut want = message(protocol, outcome, call.seqid, &text);
        // Calls without a number get one on plain connections: a reply too many must not pass for the answer to another.
        if let Some(got) = seen.message.as_ref().filter(|_| call.seqid == 0 && !self.outbound.is_mux()) {
            want.seqid = got.seqid;
        }
        match &seen.message {
            Some(got) if *got == want => Ok(()),
            got => Err(format!("the service got {got:?}, not {want:?}")),
        }
    }
}

fn luggage() -> Luggage {
    Luggage {
        trace: Some(0x1234_5678_9abc_def0),
        // Set long ago, and it passes in 250 years.
        deadline: Some((1_000_000_007, 8_999_999_999_999_999_999)),
        client_id: Some(Bytes::from_static(b"matrix")),
        headers: headers(),
    }
}

/// The application's headers, there and back.
pub fn headers() -> Pairs {
    let pair = |key, value| (Bytes::from_static(key), Bytes::from_static(value));
    vec![pair(b"x-one", b"1"), pair(b"x-two", b"two \xc3\xa9"), pair(b"x-one", b"")]
}

pub fn text(call: &Message) -> String {
    String::from_utf8_lossy(&call.string_argument().unwrap_or_default()).into_owned()
}

fn message(protocol: Protocol, outcome: Outcome, seqid: i32, text: &str) -> Message {
    let mut call = Message::call(protocol, outcome.method(), seqid, text);
    match outcome {
        Outcome::Oneway => call.kind = ONEWAY,
        Outcome::Void => call.body = Bytes::from_static(&[0]),
        _ => {}
    }
    call
}

/// What a service of the caller's own form would say.
pub fn answer(outcome: Outcome, call: &Message) -> Option<Message> {
    match outcome {
        Outcome::Declared => Some(call.declared_exception(&text(call))),
        Outcome::UnknownMethod => Some(call.exception(1, "Invalid method name")),
        Outcome::Error => Some(call.exception(6, BROKEN)),
        _ => call.served(),
    }
}

async fn heard(caller: &mut Speaker, outcome: Outcome, expected: Heard, call: &Message) -> Verdict {
    if expected == Heard::Nothing {
        return Ok(());
    }
    let said = caller.hear().await.map_err(|error| format!("{error}, wanted {expected:?}"))?;
    match is_right(&said, outcome, expected, call) {
        true => Ok(()),
        false => Err(format!("the caller heard {said:?}, wanted {expected:?}")),
    }
}

/// Whether this is what was to be heard in answer to a call.
pub fn is_right(said: &Said, outcome: Outcome, expected: Heard, call: &Message) -> bool {
    match (said, expected) {
        (Said::Message(got), Heard::Answer) => Some(got) == answer(outcome, call).as_ref(),
        (Said::Message(got), Heard::Exception(kind)) => {
            *got == call.exception(kind, &text(got)) && got.kind == EXCEPTION
        }
        (Said::Message(got), Heard::Nameless(kind)) => {
            let call = Message { name: Bytes::new(), ..call.clone() };
            *got == call.exception(kind, &text(got))
        }
        // A nack has no text, an error has one.
        (Said::Refused(status, flags, text), Heard::Refusal(want, wanted)) => {
            (*status, *flags) == (want, wanted) && text.is_empty() == (want == NACK)
        }
        (Said::Empty, Heard::Empty) | (Said::Discarded, Heard::Discarded) | (Said::End, Heard::End) => true,
        _ => false,
    }
}
