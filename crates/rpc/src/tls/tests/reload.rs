//! Files that change under a running gateway. Time is paused; the files are real.

use super::*;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

struct Told(UnboundedSender<&'static str>);

impl Reloading for Told {
    fn reloaded(&self) {
        let _ = self.0.send("reloaded");
    }

    fn refused(&self) {
        let _ = self.0.send("refused");
    }
}

fn told() -> (Arc<Told>, UnboundedReceiver<&'static str>) {
    let (tell, told) = unbounded_channel();
    (Arc::new(Told(tell)), told)
}

/// Whom a client sees.
async fn shown(server: &ServerTls, client: &ClientTls) -> String {
    let (_, connected) = meet(server, client).await;
    let stream = connected.unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    Identity::read(&chain[0]).unwrap().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_new_pair_is_used_by_new_connections_and_old_ones_live_on() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = World::new();
    let (events, mut told) = told();
    let server = ServerTls::start(world.server_files(), LOOK_EVERY, events).unwrap();
    let client = client(world.client_files(), "web.example.org");
    let (accepted, connected) = meet(&server, &client).await;
    let ((mut theirs, _), mut ours) = (accepted.unwrap(), connected.unwrap());

    world.authority.issue("web two", &["web.example.org"]).write(world.folder.path(), "server");
    assert_eq!(told.recv().await, Some("reloaded"));
    assert_eq!(shown(&server, &client).await, "CN=web two");
    theirs.write_all(b"still here").await.unwrap();
    theirs.flush().await.unwrap();
    let mut read = [0; 10];
    ours.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"still here");
}

#[tokio::test(start_paused = true)]
async fn a_pair_replaced_in_two_steps_is_used_when_it_is_one_again() {
    let world = World::new();
    let (events, mut told) = told();
    let server = ServerTls::start(world.server_files(), LOOK_EVERY, events).unwrap();
    let client = client(world.client_files(), "web.example.org");
    let next = world.authority.issue("web two", &["web.example.org"]);
    std::fs::write(&world.server.certificate, &next.certificate).unwrap();
    // Said at the second look, and once.
    assert_eq!(told.recv().await, Some("refused"));
    tokio::time::sleep(LOOK_EVERY * 5).await;
    assert!(told.try_recv().is_err());
    assert_eq!(shown(&server, &client).await, "CN=web");
    std::fs::write(&world.server.key, &next.key).unwrap();
    assert_eq!(told.recv().await, Some("reloaded"));
    assert_eq!(shown(&server, &client).await, "CN=web two");
}

#[tokio::test(start_paused = true)]
async fn a_bad_or_missing_file_keeps_the_old_one() {
    let world = World::new();
    let (events, mut told) = told();
    let client = ClientTls::start(world.client_files(), LOOK_EVERY, events).unwrap();
    let client = client.named("web.example.org");
    let server = server(world.server_files());
    let good = std::fs::read(&world.bundle).unwrap();
    std::fs::write(&world.bundle, "no certificates").unwrap();
    assert_eq!(told.recv().await, Some("refused"));
    std::fs::remove_file(&world.bundle).unwrap();
    assert_eq!(told.recv().await, Some("refused"));
    assert_eq!(shown(&server, &client).await, "CN=web");
    // What was in use all the time is no news.
    std::fs::write(&world.bundle, good).unwrap();
    tokio::time::sleep(LOOK_EVERY * 3).await;
    assert!(told.try_recv().is_err());
    let other = Authority::new("Other Authority");
    std::fs::write(&world.bundle, other.pem()).unwrap();
    assert_eq!(told.recv().await, Some("reloaded"));
    let (_, connected) = meet(&server, &client).await;
    assert_eq!(connected.unwrap_err().cause(), Cause::UnknownIssuer);
}

#[tokio::test(start_paused = true)]
async fn nobody_looks_any_more_when_the_last_owner_is_gone() {
    let world = World::new();
    let (events, mut told) = told();
    let server = ServerTls::start(world.server_files(), Duration::from_millis(10), events).unwrap();
    let clone = server.clone();
    drop(server);
    world.authority.issue("web two", &["web.example.org"]).write(world.folder.path(), "server");
    assert_eq!(told.recv().await, Some("reloaded"));
    drop(clone);
    // The task ends and lets go of its end.
    assert_eq!(told.recv().await, None);
}

/// A pipe in the place of a file holds up nobody, and is refused like any other nonsense.
#[tokio::test(start_paused = true)]
async fn a_pipe_in_the_place_of_a_file_keeps_the_old_one() {
    let world = World::new();
    let (events, mut told) = told();
    let server = ServerTls::start(world.server_files(), LOOK_EVERY, events).unwrap();
    let client = client(world.client_files(), "web.example.org");
    std::fs::rename(pipe(world.folder.path()), &world.server.certificate).unwrap();
    assert_eq!(told.recv().await, Some("refused"));
    assert_eq!(shown(&server, &client).await, "CN=web");
    std::fs::remove_file(&world.server.certificate).unwrap();
    world.authority.issue("web two", &["web.example.org"]).write(world.folder.path(), "server");
    assert_eq!(told.recv().await, Some("reloaded"));
    assert_eq!(shown(&server, &client).await, "CN=web two");
}
