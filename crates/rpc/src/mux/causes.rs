//! Limits of a caller's session, as the causes under which they are counted.

use muxgate_wire::mux::message::MessageError;
use muxgate_wire::mux::server::Refusal;
use muxgate_wire::mux::session::SessionError;

/// The limit that a session ended for, as a cause; none if it was broken in another way.
pub(super) fn bound(error: &SessionError) -> Option<&'static str> {
    match error {
        SessionError::HandshakeTimeout => Some("slow_handshake"),
        SessionError::PartialIdle => Some("slow_message"),
        SessionError::TooManyPartials => Some("partial_messages"),
        SessionError::Flood => Some("unread_answers"),
        SessionError::Malformed { error, .. } if error.is_limit() => Some("handshake_headers"),
        _ => None,
    }
}

/// The cause under which a refusal is counted.
pub(super) fn refusal(why: &Refusal) -> &'static str {
    match why {
        // `contexts`, `destination` or `dtab`: the call brought more than is read.
        Refusal::Malformed(MessageError::Limit { what, .. }) => what,
        Refusal::Malformed(_) => "malformed_dispatch",
        Refusal::TooLarge => "message_too_large",
        Refusal::InFlight => "in_flight",
        Refusal::Queued => "queued",
        Refusal::Lease => "lease",
        Refusal::Draining => "draining",
    }
}
