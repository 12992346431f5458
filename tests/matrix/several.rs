//! Several calls at once on one connection: plain callers hear the answers in order, Mux callers each by its tag.

use crate::cell::{Row, Verdict, is_right, text};
use crate::rule::{Heard, Outcome, SEVERAL, Seen, expect};
use muxgate_testkit::luggage::Luggage;
use muxgate_testkit::speaker::{FIRST, Speaker};
use muxgate_testkit::thrift::Message;

/// A call that has been made.
struct Made {
    tag: u32,
    outcome: Outcome,
    call: Message,
    heard: Heard,
}

impl Row<'_> {
    /// Makes the calls and judges what comes of each.
    pub async fn several(&mut self, caller: &mut Speaker) -> Verdict {
        let before = self.backend.calls().len();
        let (mut open, mut made, mut tries) = (Vec::new(), Vec::new(), 0);
        for (tag, outcome) in (FIRST..).zip(SEVERAL) {
            let call = self.call(outcome);
            caller.number(tag);
            let told = caller.tell(&call, &self.name, &Luggage::default()).await;
            told.map_err(|error| format!("cannot call: {error}"))?;
            let expected = expect(self.inbound, self.outbound, outcome);
            if let Seen::Calls(n) = expected.seen {
                tries += n;
            }
            made.push((outcome, call.clone()));
            if expected.heard != Heard::Nothing {
                open.push(Made { tag, outcome, call, heard: expected.heard });
            }
        }
        while !open.is_empty() {
            let (tag, said) = caller.hear_any().await.map_err(|error| format!("{error}, of several"))?;
            let at =
                if self.inbound.is_mux() { open.iter().position(|made| made.tag == tag) } else { Some(0) };
            let made = open.remove(at.ok_or_else(|| format!("tag {tag} is not open: {said:?}"))?);
            if !is_right(&said, made.outcome, made.heard, &made.call) {
                return Err(format!(
                    "{:?} of several: heard {said:?}, wanted {:?}",
                    made.outcome, made.heard
                ));
            }
        }
        caller.number(FIRST);
        for seen in self.calls(before, tries).await? {
            let is_this = |(outcome, call): &&(Outcome, Message)| {
                outcome.method() == seen.method()
                    && seen.message.as_ref().is_some_and(|m| text(m) == text(call))
            };
            let (outcome, call) = made.iter().find(is_this).ok_or("the service got another call")?;
            self.judge(*outcome, &seen, call)?;
        }
        Ok(())
    }
}
