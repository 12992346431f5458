//! A connection's life, under paused time and over pipes.

use super::Params;
use super::connection::Shared;
use muxgate_rpc::events::Uncounted;
use muxgate_rpc::{Failure, Pressure, Request, Response, Serve};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep};

const LIFE: Duration = Duration::from_secs(100);
/// A call takes as long as half a life, and is answered by itself.
const CALL: Duration = Duration::from_secs(50);
/// `ping()`, framed.
const PING: &[u8] = b"\0\0\0\x11\x80\x01\0\x01\0\0\0\x04ping\0\0\0\x07\0";

struct Slow;

impl Serve for Slow {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        sleep(CALL).await;
        let mut response = Response::nothing();
        response.body = request.body.bytes().clone();
        Ok(response)
    }
}

fn listener() -> Result<Arc<Shared<Slow>>, std::net::AddrParseError> {
    let mut params = Params::new("test", "127.0.0.1:0".parse()?);
    params.life = Some(LIFE);
    Ok(Arc::new(Shared::new(params, Slow, Arc::new(Uncounted), Pressure::default())))
}

fn connect(listener: &Arc<Shared<Slow>>) -> Result<DuplexStream, std::net::AddrParseError> {
    let (here, there) = duplex(1024);
    let (listener, peer) = (Arc::clone(listener), "127.0.0.1:1".parse()?);
    tokio::spawn(async move { listener.serve(there, peer).await });
    Ok(here)
}

#[tokio::test(start_paused = true)]
async fn lives_end_apart_and_never_late() -> Result<(), Box<dyn std::error::Error>> {
    let listener = listener()?;
    let mut ages = HashSet::new();
    for _ in 0..20 {
        let begun = Instant::now();
        let mut silent = connect(&listener)?;
        assert_eq!(silent.read(&mut [0]).await?, 0);
        let age = begun.elapsed();
        assert!(age >= LIFE.mul_f64(0.8) && age <= LIFE + Duration::from_millis(1), "{age:?}");
        ages.insert(age);
    }
    assert!(ages.len() > 10, "{ages:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_plain_connection_ends_between_two_calls() -> Result<(), Box<dyn std::error::Error>> {
    let listener = listener()?;
    let mut caller = connect(&listener)?;
    let begun = Instant::now();
    let mut reply = [0; PING.len()];
    for _ in 0..2 {
        caller.write_all(PING).await?;
        caller.read_exact(&mut reply).await?;
        assert_eq!(reply, *PING);
    }
    assert_eq!(caller.read(&mut reply).await?, 0);
    assert!(
        begun.elapsed() < LIFE + Duration::from_secs(1),
        "closed as soon as the second call was answered"
    );
    Ok(())
}

/// A lease of nothing, then Tdrain: "no more calls, please".
const LEAVE: &[u8] = b"\0\0\0\x0d\x43\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\x40\0\0\x01";

/// Calls, and is asked to go after the answer.
async fn asked_to_go(caller: &mut DuplexStream) -> std::io::Result<()> {
    caller.write_all(b"\0\0\0\x0a\x02\0\0\x02\0\0\0\0\0\0").await?;
    let (mut answer, mut leave) = ([0; 11], [0; LEAVE.len()]);
    caller.read_exact(&mut answer).await?;
    assert_eq!(answer, *b"\0\0\0\x07\xfe\0\0\x02\0\0\0");
    caller.read_exact(&mut leave).await?;
    assert_eq!(leave, *LEAVE);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_mux_connection_is_drained() -> Result<(), Box<dyn std::error::Error>> {
    let mut caller = connect(&listener()?)?;
    asked_to_go(&mut caller).await?;
    // What is sent before it has heard is served.
    caller.write_all(b"\0\0\0\x0a\x02\0\0\x03\0\0\0\0\0\0").await?;
    caller.write_all(b"\0\0\0\x04\xc0\0\0\x01").await?;
    let mut answer = [0; 11];
    caller.read_exact(&mut answer).await?;
    assert_eq!(answer, *b"\0\0\0\x07\xfe\0\0\x03\0\0\0");
    assert_eq!(caller.read(&mut answer).await?, 0);
    Ok(())
}

/// Some callers never say that they have heard: they do not keep an old connection for ever.
#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_hear_is_not_waited_for_without_end() -> Result<(), Box<dyn std::error::Error>>
{
    let mut caller = connect(&listener()?)?;
    asked_to_go(&mut caller).await?;
    caller.write_all(b"\0\0\0\x0a\x02\0\0\x03\0\0\0\0\0\0").await?;
    // Longer than it is waited for, and shorter than that call takes.
    sleep(CALL / 2).await;
    caller.write_all(b"\0\0\0\x0a\x02\0\0\x04\0\0\0\0\0\0").await?;
    let mut answer = [0; 11];
    caller.read_exact(&mut answer).await?;
    assert_eq!(answer, *b"\0\0\0\x07\xfe\0\0\x04\x02\0\0", "a nack");
    caller.read_exact(&mut answer).await?;
    assert_eq!(answer, *b"\0\0\0\x07\xfe\0\0\x03\0\0\0");
    assert_eq!(caller.read(&mut answer).await?, 0);
    Ok(())
}
