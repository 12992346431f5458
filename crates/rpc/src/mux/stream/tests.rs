use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// Text that shrinks, noise that does not, and more than a block of both.
fn mixed() -> Vec<u8> {
    let mut state = 1u32;
    let noise = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    [&[b'A'; 150_000][..], &noise.take(150_000).collect::<Vec<_>>(), b"the end"].concat()
}

fn changed(io: tokio::io::DuplexStream, read: &[u8], decompress: bool, compress: bool) -> impl Io {
    let mut link = Stream::Plain(io);
    link.change(BytesMut::from(read), Change { tls: None, decompress, compress });
    link
}

#[tokio::test]
async fn what_is_written_compressed_is_read_decompressed_whatever_the_socket_takes() {
    for room in [1, 100, 1 << 20] {
        let (ours, theirs) = duplex(room);
        let mut writer = changed(ours, b"", false, true);
        let mut reader = changed(theirs, b"", true, false);
        let sent = tokio::spawn(async move {
            writer.write_all(&mixed()).await.unwrap();
            writer.flush().await.unwrap();
            // The other direction is as it was.
            let mut answer = [0; 2];
            writer.read_exact(&mut answer).await.unwrap();
            writer.shutdown().await.unwrap();
            answer
        });
        let mut all = vec![0; mixed().len()];
        reader.read_exact(&mut all).await.unwrap();
        assert!(all == mixed());
        reader.write_all(b"ok").await.unwrap();
        assert_eq!(reader.read(&mut all).await.unwrap(), 0, "the end is told");
        assert_eq!(sent.await.unwrap(), *b"ok");
    }
}

#[tokio::test]
async fn pieces_of_one_write_become_one_block() {
    let (ours, mut theirs) = duplex(1 << 20);
    let mut writer = changed(ours, b"", false, true);
    let pieces = [IoSlice::new(b""), IoSlice::new(&[b'A'; 500]), IoSlice::new(&[b'A'; 500])];
    assert_eq!(writer.write_vectored(&pieces).await.unwrap(), 1000);
    drop(writer);
    let mut raw = Vec::new();
    theirs.read_to_end(&mut raw).await.unwrap();
    assert_eq!((&raw[..9], raw[13..17].to_vec()), (&b"LZ4Block\x26"[..], 1000u32.to_le_bytes().to_vec()));
    assert!(raw.len() < 100);
}

#[tokio::test]
async fn what_was_read_too_early_is_read_again() {
    let mut blocks = BytesMut::new();
    muxgate_wire::mux::lz4::Encoder::default().encode(b"early and late", &mut blocks);
    let (ours, mut theirs) = duplex(100);
    let mut reader = changed(ours, &blocks[..10], true, false);
    theirs.write_all(&blocks[10..]).await.unwrap();
    let mut text = [0; 14];
    reader.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"early and late");
}

#[tokio::test]
async fn a_stream_that_is_not_compressed_or_breaks_off_is_an_error() {
    let kind = |sent: &'static [u8]| async move {
        let (ours, mut theirs) = duplex(100);
        let mut reader = changed(ours, b"", true, false);
        theirs.write_all(sent).await.unwrap();
        drop(theirs);
        reader.read(&mut [0; 10]).await.map_err(|error| error.kind())
    };
    assert_eq!(kind(b"\0\0\0\x04").await, Err(io::ErrorKind::InvalidData));
    assert_eq!(kind(b"LZ4Block\x26").await, Err(io::ErrorKind::UnexpectedEof));
    assert_eq!(kind(b"").await, Ok(0));
}
