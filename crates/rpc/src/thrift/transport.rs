//! What stands around a message on the way to a service (thriftmux spec, sections 6, 10 and 14).

use muxgate_wire::thrift::Protocol;

/// How messages to a service are wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A length before each message.
    Framed,
    /// Framed, and on every new connection the TTwitter upgrade is offered; its structs are in this protocol.
    TTwitter(Protocol),
    /// Messages back to back, with nothing around them: the end is found by walking.
    Buffered,
    /// THeader: a length, then a header with a sequence id and info pairs of its own, then the message.
    Header,
}
