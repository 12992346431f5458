//! A peer made of bytes: sends what a case says, hex for hex, and compares what comes. Client or server side.

use crate::hex;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long a peer waits for bytes that must come.
pub const LIMIT: Duration = Duration::from_secs(20);
/// Longest frame that a peer reads.
pub const MAX_FRAME: usize = 64 << 20;

/// One end of a connection.
pub struct Raw {
    stream: TcpStream,
}

impl Raw {
    /// Connects to `addr`.
    ///
    /// # Panics
    /// If that fails.
    pub async fn connect(addr: SocketAddr) -> Self {
        let stream = within("a connection", TcpStream::connect(addr)).await;
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        Self { stream }
    }

    /// Takes the next connection of `listener`.
    ///
    /// # Panics
    /// If none comes.
    pub async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = within("a caller", listener.accept()).await;
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        Self { stream }
    }

    /// The socket, for what these methods do not do.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Writes the bytes that `text` stands for.
    ///
    /// # Panics
    /// If they cannot be written.
    pub async fn send(&mut self, text: &str) {
        self.send_bytes(&hex::decode(text)).await;
    }

    /// Writes `bytes`.
    ///
    /// # Panics
    /// If they cannot be written.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        within("room for bytes", self.stream.write_all(bytes)).await;
    }

    /// Reads as many bytes as `text` stands for and compares them.
    ///
    /// # Panics
    /// If other bytes come, or too few.
    pub async fn expect(&mut self, text: &str) {
        let want = hex::decode(text);
        let mut got = vec![0; want.len()];
        let mut have = 0;
        while have < got.len() {
            let n = within(
                &format!("{text}, after {}", hex::encode(&got[..have])),
                self.stream.read(&mut got[have..]),
            )
            .await;
            assert_ne!(n, 0, "closed after {}, wanted {text}", hex::encode(&got[..have]));
            have += n;
        }
        assert_eq!(hex::encode(&got), hex::encode(&want));
    }

    /// Reads one frame: its content, without the length. `None` if the peer has closed instead.
    ///
    /// # Panics
    /// If neither comes in time, or only a part of a frame.
    pub async fn frame(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match timeout(LIMIT, self.stream.read(&mut length[..1])).await.expect("a frame in time") {
            Ok(0) | Err(_) => return None,
            Ok(_) => within("the rest of a length", self.stream.read_exact(&mut length[1..])).await,
        };
        let length = u32::from_be_bytes(length) as usize;
        assert!(length <= MAX_FRAME, "a frame of {length} bytes");
        let mut frame = vec![0; length];
        within("the rest of a frame", self.stream.read_exact(&mut frame)).await;
        Some(frame)
    }

    /// Asserts that the peer closes, with or without unread bytes lost, and sends nothing before that.
    ///
    /// # Panics
    /// If it does not.
    pub async fn expect_close(&mut self) {
        let mut byte = [0; 64];
        match timeout(LIMIT, self.stream.read(&mut byte)).await.expect("the peer closes in time") {
            Ok(0) | Err(_) => (),
            Ok(n) => panic!("wanted a close, got {}", hex::encode(&byte[..n])),
        }
    }

    /// Asserts that nothing comes for `how_long`, not even a close. For rules that say "nothing is ever written".
    ///
    /// # Panics
    /// If something comes.
    pub async fn expect_silence(&mut self, how_long: Duration) {
        let mut byte = [0; 64];
        if let Ok(got) = timeout(how_long, self.stream.read(&mut byte)).await {
            let n = got.expect("the connection holds");
            panic!("wanted silence, got {:?}", hex::encode(&byte[..n]));
        }
    }

    /// Ends the connection by a reset.
    ///
    /// # Panics
    /// If that cannot be asked for.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("SO_LINGER can be set");
    }

    /// Closes this side's half: the peer reads an end, and may still write.
    ///
    /// # Panics
    /// If the connection is gone.
    pub async fn close_write(&mut self) {
        within("a half close", self.stream.shutdown()).await;
    }
}

async fn within<T>(what: &str, work: impl Future<Output = std::io::Result<T>>) -> T {
    match timeout(LIMIT, work).await {
        Ok(Ok(done)) => done,
        Ok(Err(e)) => panic!("waited for {what}: {e}"),
        Err(_) => panic!("waited for {what}: not within {LIMIT:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_peers_say_what_they_are_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (mut client, mut server) = tokio::join!(Raw::connect(addr), Raw::accept(&listener));
        client.send("00000002 ab12").await;
        client.send("00000000").await;
        assert_eq!(server.frame().await.unwrap(), [0xab, 0x12]);
        server.expect("00000000").await;
        client.close_write().await;
        server.expect_close().await;
        server.send("ff").await;
        client.expect("ff").await;
        drop(server);
        assert_eq!(client.frame().await, None);
    }
}
