//! Strangers that send malformed bytes of every kind harm nobody, and cost no memory.

use crate::support::{Pages, to, yaml};
use muxgate_testkit::caller::framed;
use muxgate_testkit::load::Load;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, Gateway, hex};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Connections with random bytes.
const RANDOM: u64 = 400;
/// How much more memory there may be after all of it.
const GROWTH: u64 = 32 << 20;
/// How long a connection may live on after its input has ended.
const LIMIT: Duration = Duration::from_secs(30);

const HANDSHAKE: &str = "0000000f7f00000174696e697420636865636b 00000006440000010001";

#[tokio::test(flavor = "multi_thread")]
async fn malformed_input_harms_nobody() {
    let backend = Backend::start().await;
    // A stranger that never finishes is cut off soon.
    let text = yaml(&to(backend.addr()), "thriftmux", "")
        .replace("dst: /s/probe}", "dst: /s/probe, stallTimeoutMs: 2000}");
    let gateway = start(text).await;
    let load = Arc::new(Load::start(gateway.addr, 2, Duration::from_millis(1)));
    more(&load, 50).await;
    let (before, _) = gateway.proc.memory();
    for (name, inputs) in vectors().into_iter().chain(random()) {
        for input in inputs {
            stranger(gateway.addr, &name, &input).await;
        }
    }
    let (after, _) = gateway.proc.memory();
    assert!(after < before + GROWTH, "{before} bytes before, {after} after");
    more(&load, 50).await;
    let calls = spawn_blocking(move || Arc::into_inner(load).expect("the only one").stop()).await.unwrap();
    let failed: Vec<_> = calls.iter().filter(|call| call.failure.is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    Pages(gateway.admin).until_idle().await;
    spawn_blocking(move || gateway.stop()).await.expect("it ends well");
}

async fn start(yaml: String) -> Gateway {
    let start = move || {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("muxgate.yaml");
        std::fs::write(&file, yaml).expect("a file");
        Gateway::of_file(env!("CARGO_BIN_EXE_muxgate"), &file)
    };
    spawn_blocking(start).await.expect("a gateway")
}

async fn more(load: &Arc<Load>, n: usize) {
    let load = Arc::clone(load);
    spawn_blocking(move || load.more(n)).await.expect("the load goes on");
}

/// Sends, ends its input, and reads whatever comes, until the gateway ends the connection. That must happen.
async fn stranger(gateway: SocketAddr, name: &str, input: &[u8]) {
    let mut peer = Raw::connect(gateway).await;
    let stream = peer.stream();
    // The gateway may have had enough before the end.
    let _ = stream.write_all(input).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let end = timeout(LIMIT, stream.read_to_end(&mut answer)).await;
    assert!(end.is_ok(), "{name} leaves its connection open; it was answered {}", hex::encode(&answer));
}

/// The reference's malformed and edge cases as a connection's input: as they are, as a frame, and behind a handshake.
fn vectors() -> Vec<(String, Vec<Vec<u8>>)> {
    let text = include_str!("../golden/vectors.json");
    let all: Value = serde_json::from_str(text).expect("JSON");
    let entries = all["malformed_and_edge"].as_array().expect("a list");
    let mut found = Vec::new();
    for entry in entries {
        let name = entry["name"].as_str().expect("a name").to_owned();
        let mut inputs = Vec::new();
        if let Some(bytes) = bytes(&entry["hex"]) {
            inputs.extend([bytes.clone(), framed(&bytes), [hex::decode(HANDSHAKE), framed(&bytes)].concat()]);
        }
        if let Some(steps) = entry["send"].as_array() {
            let mut input = Vec::new();
            if entry["handshake_first"] == true {
                input = hex::decode(HANDSHAKE);
            }
            for step in steps {
                input.extend(bytes(&step["frame"]).map(|frame| framed(&frame)).unwrap_or_default());
                input.extend(bytes(&step["raw"]).unwrap_or_default());
            }
            inputs.push(input);
        }
        found.push((name, inputs));
    }
    assert!(found.len() > 300);
    found
}

/// Hexadecimal, or a list of it and of parts that are repeated.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        // One very long text is cut short in the file.
        Value::String(text) => Some(hex::decode(text.split('.').next()?)),
        Value::Array(parts) => Some(parts.iter().flat_map(|part| bytes(part).unwrap_or_default()).collect()),
        Value::Object(part) => {
            let times = part["times"].as_u64().expect("a number") as usize;
            Some(bytes(&part["repeat"])?.repeat(times))
        }
        _ => None,
    }
}

/// Random bytes: bare, framed, behind a handshake, and whole calls with a few bytes changed.
fn random() -> impl Iterator<Item = (String, Vec<Vec<u8>>)> {
    (0..RANDOM).map(|seed| {
        let mut dice = SmallRng::seed_from_u64(seed);
        let length = dice.random_range(1..300);
        let noise: Vec<u8> = (0..length).map(|_| dice.random()).collect();
        let mut call = hex::decode(crate::support::ADD_MUX);
        let mut plain = hex::decode(crate::support::ADD);
        for _ in 0..dice.random_range(1..4) {
            let at = dice.random_range(0..call.len());
            call[at] = dice.random();
            let at = dice.random_range(0..plain.len());
            plain[at] = dice.random();
        }
        let behind = [hex::decode(HANDSHAKE), framed(&noise)].concat();
        (format!("random {seed}"), vec![framed(&noise), noise, behind, call, plain])
    })
}
