//! Bytes as they come from a socket, into the session machines.

use bytes::{Bytes, BytesMut};
use muxgate_wire::mux::client::{ClientConfig, ClientSession, DispatchHead, Event, SessionStatus};
use muxgate_wire::mux::frame::next_frame;
use muxgate_wire::mux::message::Status;
use muxgate_wire::mux::server::{ServerConfig, ServerEvent, ServerSession};
use muxgate_wire::pairs::Pairs;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;
/// Longest frame here.
const MAX_FRAME: u32 = 1 << 20;
/// Input of a few kilobytes: whatever comes of it must be in proportion.
const PROPORTIONATE: usize = 1 << 20;

/// A client's bytes, to a server session.
///
/// # Panics
/// When it panics, does not end with its first error, or queues more than is in proportion.
pub fn feed_server(mut bytes: BytesMut) {
    let most = PROPORTIONATE.max(bytes.len() * 64);
    let mut session: ServerSession<u32> = ServerSession::new(ServerConfig::default());
    while let Ok(Some(frame)) = next_frame(&mut bytes, MAX_FRAME) {
        match session.receive(frame, NOW) {
            Ok(ServerEvent::Dispatch { call, .. }) if call.tag().get() % 2 == 0 => {
                assert!(session.accept(call, 7));
                assert!(session.reply(call, Status::Ok, |_| {}, Bytes::from_static(b"x")));
            }
            Ok(_) => {}
            Err(_) => assert!(session.is_closed()),
        }
    }
    assert!(session.outbox().queued_bytes() < most);
    session.take_all().for_each(drop);
    assert_eq!(session.in_flight(), 0);
}

/// A server's bytes, to a client session with three dispatches.
///
/// # Panics
/// As [`feed_server`], and when a dispatch has another number of ends than one.
pub fn feed_client(mut bytes: BytesMut, handshake: bool) {
    let most = PROPORTIONATE.max(bytes.len() * 64);
    let config = ClientConfig { handshake, ..ClientConfig::default() };
    let mut session: ClientSession<u32> = ClientSession::new(config);
    let mut outcomes = 0;
    for token in 0..3 {
        let head = DispatchHead { contexts: |_| {}, dst: b"/s", dtab: &Pairs::default() };
        session.dispatch(token, head, Bytes::new()).expect("a new session takes three");
    }
    while let Ok(Some(frame)) = next_frame(&mut bytes, MAX_FRAME) {
        match session.receive(frame, NOW) {
            Ok(Some(Event::Replied { .. } | Event::Failed { .. })) => outcomes += 1,
            Ok(_) => {}
            Err(_) => assert_eq!(session.status(NOW), SessionStatus::Closed),
        }
    }
    assert!(session.outbox().queued_bytes() < most);
    assert_eq!(outcomes + session.close().len(), 3, "each dispatch has one end");
}
