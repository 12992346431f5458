//! When callers are told to stay away, and when they may come back.

use super::*;
use crate::pressure::HOLD;
use muxgate_wire::mux::message::Tlease;
use tokio::io::DuplexStream;

/// A caller's end of a connection that has been spoken on.
struct Caller {
    io: DuplexStream,
    read: BytesMut,
}

impl Caller {
    async fn to(params: ServerParams, drain: Drain) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let service = Arc::new(Echo);
            serve(ours, ReadBuffer::new(100), None, service, &params, &drain, Arc::new(Uncounted)).await;
        });
        let mut caller = Self { io: theirs, read: BytesMut::new() };
        caller.send(kind::TPING, Tag::SESSION, &Message::Tping).await;
        assert_eq!(caller.next().await.kind, kind::RPING);
        caller
    }

    async fn send(&mut self, kind: i8, tag: Tag, message: &Message) {
        self.io.write_all(&frame(kind, tag, message)).await.unwrap();
    }

    async fn next(&mut self) -> Frame {
        loop {
            if let Some(frame) = next_frame(&mut self.read, 1 << 20).unwrap() {
                return frame;
            }
            assert!(self.io.read_buf(&mut self.read).await.unwrap() > 0, "the connection ended");
        }
    }

    async fn lease(&mut self) -> u64 {
        let frame = self.next().await;
        assert_eq!((frame.kind, frame.tag), (kind::TLEASE, Tag::MARKER));
        Tlease::decode(frame.body).unwrap().amount
    }
}

const ENDLESS: u64 = u32::MAX as u64;

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_listener_sends_callers_away_until_it_is_calm() {
    let pressure = Pressure::new(Some(1));
    let params =
        ServerParams { pressure: pressure.clone(), ..params(offer(TlsLevel::Off, CompressionLevel::Off)) };
    let mut caller = Caller::to(params, Drain::default()).await;
    let permit = pressure.take().unwrap();
    let begun = Instant::now();
    for _ in 0..3 {
        assert!(pressure.take().is_err());
    }
    assert_eq!(caller.lease().await, 0);
    // It lasts longer than one look: nothing new is said, and pings are answered.
    tokio::time::sleep(HOLD * 2 + HOLD / 2).await;
    drop(permit);
    caller.send(kind::TPING, Tag::SESSION, &Message::Tping).await;
    assert_eq!(caller.next().await.kind, kind::RPING);
    assert_eq!(caller.lease().await, ENDLESS);
    assert_eq!(begun.elapsed(), HOLD * 3);
    let _permit = pressure.take().unwrap();
    assert!(pressure.take().is_err());
    assert_eq!(caller.lease().await, 0, "and again");
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_on_one_connection_send_its_caller_away() {
    let mut params = params(offer(TlsLevel::Off, CompressionLevel::Off));
    params.session.max_in_flight = 0;
    let mut caller = Caller::to(params, Drain::default()).await;
    let call = Message::Tdispatch(Tdispatch::default());
    caller.send(kind::TDISPATCH, Tag::FIRST, &call).await;
    let nack = caller.next().await;
    assert_eq!((nack.kind, nack.tag), (kind::RDISPATCH, Tag::FIRST));
    assert_eq!(caller.lease().await, 0);
    assert_eq!(caller.lease().await, ENDLESS);
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_told_by_a_lease_first_and_nothing_takes_it_back() {
    let pressure = Pressure::new(Some(0));
    for overloaded in [false, true] {
        let params = ServerParams {
            pressure: pressure.clone(),
            ..params(offer(TlsLevel::Off, CompressionLevel::Off))
        };
        let drain = Drain::default();
        let mut caller = Caller::to(params, drain.clone()).await;
        if overloaded {
            assert!(pressure.take().is_err());
            assert_eq!(caller.lease().await, 0);
        }
        drain.begin();
        if !overloaded {
            assert_eq!(caller.lease().await, 0);
        }
        assert_eq!(caller.next().await.kind, kind::TDRAIN);
        assert!(pressure.take().is_err());
        tokio::time::sleep(HOLD * 3).await;
        // Served until it is acknowledged; then the connection ends, for nothing is in flight.
        caller.send(kind::TDISPATCH, Tag::FIRST, &Message::Tdispatch(Tdispatch::default())).await;
        assert_eq!(caller.next().await.kind, kind::RDISPATCH);
        caller.send(kind::RDRAIN, Tag::SESSION, &Message::Rdrain).await;
        assert_eq!(caller.io.read_buf(&mut caller.read).await.unwrap(), 0);
    }
}
