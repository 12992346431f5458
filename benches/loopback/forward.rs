//! The byte forwarder that the gateway is measured against: what any proxy pays that lives in user space and on tokio.

use std::io;
use std::net::SocketAddr;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};

/// Bytes of the buffer of each direction.
const BUFFER: usize = 16 << 10;

/// Forwards each connection to `dest`, until the listener fails.
///
/// # Errors
/// Those of the listener.
pub async fn serve(listener: TcpListener, dest: SocketAddr) -> io::Result<()> {
    loop {
        let (mut near, _) = listener.accept().await?;
        near.set_nodelay(true)?;
        tokio::spawn(async move {
            let mut far = TcpStream::connect(dest).await?;
            far.set_nodelay(true)?;
            copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER, BUFFER).await
        });
    }
}
