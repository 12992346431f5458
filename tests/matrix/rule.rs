//! What must hold in each cell: a function of caller, service and outcome.

use crate::forms::{Inbound, Outbound};
use muxgate_testkit::link::Dialect;
use muxgate_testkit::luggage::Luggage;
use muxgate_testkit::mux::{ERROR, NACK};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Result,
    /// A result, with all around the messages that is not Thrift.
    Luggage,
    /// A result; call and answer come byte by byte.
    Drip,
    /// [`SEVERAL`] calls, without waiting for answers.
    Several,
    Void,
    Declared,
    UnknownMethod,
    /// The service fails, and says so.
    Error,
    /// The service answers something that is no Thrift message.
    Garbage,
    Oneway,
    Nack,
    Timeout,
    Cancel,
    LargeReply,
    LargeCall,
    /// The same as the first call of a connection, whose form is not known yet.
    LargeFirst,
    Cut,
}

impl Outcome {
    /// In the order in which they are tried.
    pub const ALL: [Self; 17] = [
        Self::Result,
        Self::Luggage,
        Self::Drip,
        Self::Several,
        Self::Void,
        Self::Declared,
        Self::UnknownMethod,
        Self::Error,
        Self::Garbage,
        Self::Oneway,
        Self::Nack,
        Self::Timeout,
        Self::Cancel,
        Self::LargeReply,
        Self::LargeCall,
        Self::LargeFirst,
        Self::Cut,
    ];

    /// Its letter in the table.
    pub fn letter(self) -> char {
        match self {
            Self::Result => 'r',
            Self::Luggage => 'h',
            Self::Drip => 'b',
            Self::Several => 's',
            Self::Void => 'v',
            Self::Declared => 'd',
            Self::UnknownMethod => 'u',
            Self::Error => 'e',
            Self::Garbage => 'g',
            Self::Oneway => 'o',
            Self::Nack => 'n',
            Self::Timeout => 't',
            Self::Cancel => 'c',
            Self::LargeReply => 'l',
            Self::LargeCall => 'L',
            Self::LargeFirst => 'F',
            Self::Cut => 'x',
        }
    }

    /// The method that the service answers so.
    pub fn method(self) -> &'static str {
        match self {
            Self::Result | Self::Several | Self::LargeCall | Self::LargeFirst => "echo",
            Self::Luggage => "carry",
            Self::Drip => "drip",
            Self::Void => "ping",
            Self::Declared => "fail",
            Self::UnknownMethod => "nowhere",
            Self::Error => "break",
            Self::Garbage => "babble",
            Self::Oneway => "note",
            Self::Nack => "refuse",
            Self::Timeout => "late",
            Self::Cancel => "wait",
            Self::LargeReply => "large",
            Self::Cut => "cut",
        }
    }
}

/// What several calls at once are.
pub const SEVERAL: [Outcome; 7] = [
    Outcome::Result,
    Outcome::Oneway,
    Outcome::Declared,
    Outcome::Nack,
    Outcome::Void,
    Outcome::UnknownMethod,
    Outcome::Result,
];

/// What comes back to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// What a service of the caller's own form would have said: same method, sequence id and protocol.
    Answer,
    /// By Mux, a status with these flags.
    Refusal(u8, Option<u64>),
    /// On plain connections, a TApplicationException of this type, with the call's method and sequence id.
    Exception(i32),
    /// The same for a call whose method cannot be read: the name is empty.
    Nameless(i32),
    /// By Mux, an OK with nothing in it.
    Empty,
    /// Nothing at all.
    Nothing,
    /// An Rdiscarded.
    Discarded,
    /// The connection is closed.
    End,
}

/// What the service has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// So many calls, each as the caller meant it.
    Calls(usize),
    /// One call, and that nobody waits for its answer: a Tdiscarded, or on plain connections the end.
    Withdrawn,
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub heard: Heard,
    pub seen: Seen,
    /// The caller's connection takes another call.
    pub lives: bool,
}

/// TApplicationException: internal error.
const INTERNAL: i32 = 6;
/// TApplicationException: protocol error.
const PROTOCOL: i32 = 7;
/// MuxFailure: restartable and rejected.
const NOTHING_DONE: u64 = 3;
/// MuxFailure: not to be repeated.
const NOT_AGAIN: u64 = 4;

/// The rule.
pub fn expect(inbound: &Inbound, outbound: &Outbound, outcome: Outcome) -> Expectation {
    let heard = match outcome {
        Outcome::Result | Outcome::Luggage | Outcome::Drip | Outcome::Void => Heard::Answer,
        // Each has its own rule; this is for the last.
        Outcome::Several => Heard::Answer,
        Outcome::Declared | Outcome::UnknownMethod => Heard::Answer,
        // By Mux it is a status; else it is an answer like others.
        Outcome::Error if outbound.is_mux() => refusal(inbound, ERROR, None),
        Outcome::Error => Heard::Answer,
        Outcome::Oneway if inbound.is_mux() => Heard::Empty,
        Outcome::Oneway => Heard::Nothing,
        Outcome::Nack => refusal(inbound, NACK, Some(NOTHING_DONE)),
        // What was done is not known.
        Outcome::Timeout | Outcome::Garbage | Outcome::LargeReply | Outcome::Cut => {
            refusal(inbound, ERROR, None)
        }
        Outcome::Cancel if inbound.is_mux() => Heard::Discarded,
        // A plain caller cancels by going away.
        Outcome::Cancel => Heard::Nothing,
        Outcome::LargeCall | Outcome::LargeFirst => too_large(inbound),
    };
    let seen = match outcome {
        Outcome::Timeout | Outcome::Cancel => Seen::Withdrawn,
        Outcome::LargeCall | Outcome::LargeFirst => Seen::Calls(0),
        // The only endpoint is tried a second time; where connections are refused, it sees neither.
        Outcome::Nack if outbound.is_mux() => Seen::Calls(2),
        Outcome::Nack => Seen::Calls(0),
        _ => Seen::Calls(1),
    };
    let lives = match outcome {
        // Where the next message begins is known only if this one has been read whole.
        Outcome::LargeCall | Outcome::LargeFirst => inbound.form.zlib || inbound.form.window.is_some(),
        Outcome::Cancel => inbound.is_mux(),
        _ => true,
    };
    Expectation { heard, seen, lives }
}

/// A failure in the caller's own form. An Rreq has no room for flags.
fn refusal(inbound: &Inbound, status: u8, flags: Option<u64>) -> Heard {
    match inbound.is_mux() {
        true => Heard::Refusal(status, flags.filter(|_| !inbound.form.treq)),
        false => Heard::Exception(INTERNAL),
    }
}

/// What a caller hears whose call is too large: as much as can be said of what was read.
fn too_large(inbound: &Inbound) -> Heard {
    match inbound.form.dialect {
        // It is short until it is unpacked.
        // Its tag is known all the while, and no piece is large.
        Dialect::Mux if inbound.form.window.is_some() => Heard::Refusal(ERROR, Some(NOT_AGAIN)),
        Dialect::Header if inbound.form.zlib => Heard::Nameless(PROTOCOL),
        Dialect::Framed | Dialect::Buffered | Dialect::Header => Heard::Exception(PROTOCOL),
        Dialect::TTwitter | Dialect::Mux => Heard::End,
    }
}

/// What of a call's luggage reaches the service. Plain Thrift has room for none, a Treq for the trace only.
pub fn carried(inbound: &Inbound, outbound: &Outbound, luggage: &Luggage) -> Luggage {
    let has_room = |dialect| matches!(dialect, Dialect::Mux | Dialect::TTwitter | Dialect::Header);
    match has_room(inbound.form.dialect) && has_room(outbound.dialect) {
        true if inbound.form.treq => Luggage { trace: luggage.trace, ..Luggage::default() },
        true => luggage.clone(),
        false => Luggage::default(),
    }
}

/// Whether the application headers of a reply reach the caller.
pub fn carries_back(inbound: &Inbound, outbound: &Outbound) -> bool {
    let has_room = |dialect| matches!(dialect, Dialect::Mux | Dialect::Header);
    has_room(inbound.form.dialect) && has_room(outbound.dialect) && !inbound.form.treq
}
