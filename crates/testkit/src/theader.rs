//! As much of THeader as a test peer needs.

use crate::thrift::{Message, Protocol};
use bytes::{BufMut, Bytes, BytesMut};
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read;

/// How a frame of THeader begins.
pub const MAGIC: [u8; 2] = [0x0f, 0xff];
/// The transform that is known.
const ZLIB: u32 = 1;

/// A frame, without its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sequence id of the header, which should be the message's.
    pub seqid: i32,
    /// Whether the message is compressed on the wire.
    pub zlib: bool,
    /// Info headers.
    pub info: Vec<(Bytes, Bytes)>,
    /// The message.
    pub message: Bytes,
}

fn put_varint(out: &mut BytesMut, mut number: usize) {
    while number > 0x7f {
        out.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

impl Header {
    /// A header around a message, without info.
    pub fn around(message: &Message, zlib: bool) -> Self {
        Self { seqid: message.seqid, zlib, info: Vec::new(), message: message.to_bytes() }
    }

    /// Writes the frame.
    ///
    /// # Panics
    /// If a vector cannot be compressed, which cannot be.
    pub fn to_bytes(&self) -> Bytes {
        let mut section = BytesMut::new();
        let compact = self.message.first() == Some(&0x82);
        section.put_u8(if compact { 2 } else { 0 });
        section.put_slice(if self.zlib { &[1, 1] } else { &[0] });
        if !self.info.is_empty() {
            section.put_u8(1);
            put_varint(&mut section, self.info.len());
            for text in self.info.iter().flat_map(|(key, value)| [key, value]) {
                put_varint(&mut section, text.len());
                section.put_slice(text);
            }
        }
        section.resize(section.len().next_multiple_of(4), 0);
        let mut out = BytesMut::new();
        out.put_slice(&MAGIC);
        out.put_u16(0);
        out.put_i32(self.seqid);
        out.put_u16((section.len() / 4) as u16);
        out.put_slice(&section);
        if self.zlib {
            let mut packed = Vec::new();
            ZlibEncoder::new(&self.message[..], Compression::default())
                .read_to_end(&mut packed)
                .expect("a vector can be read");
            out.put_slice(&packed);
        } else {
            out.put_slice(&self.message);
        }
        out.freeze()
    }

    /// Reads a frame; `None` if it is none, or if header and message disagree about protocol or sequence id.
    pub fn parse(frame: &Bytes) -> Option<Self> {
        let head = frame.get(..10).filter(|head| head[..2] == MAGIC)?;
        let seqid = i32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let size = usize::from(u16::from_be_bytes([head[8], head[9]])) * 4;
        let mut section = frame.get(10..10 + size)?;
        let protocol = varint(&mut section)?;
        let mut zlib = false;
        for _ in 0..varint(&mut section)? {
            (varint(&mut section)? == ZLIB).then(|| zlib = true)?;
        }
        let mut info = Vec::new();
        if varint(&mut section) == Some(1) {
            for _ in 0..varint(&mut section)? {
                info.push((text(&mut section)?, text(&mut section)?));
            }
        }
        let mut message = frame.slice(10 + size..);
        if zlib {
            let mut plain = Vec::new();
            ZlibDecoder::new(&message[..]).read_to_end(&mut plain).ok()?;
            message = plain.into();
        }
        let read = Message::parse(&message)?;
        let right = if read.protocol == Protocol::Compact { 2 } else { 0 };
        (read.seqid == seqid && protocol == right).then_some(Self { seqid, zlib, info, message })
    }
}

fn varint(section: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = section.split_first()?;
        *section = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn text(section: &mut &[u8]) -> Option<Bytes> {
    let length = varint(section)? as usize;
    let (text, rest) = section.split_at_checked(length)?;
    *section = rest;
    Some(Bytes::copy_from_slice(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    #[test]
    fn the_vectors_are_read_and_written() {
        let call = Message::call(Protocol::Binary, "echo", 7, "hello");
        let header = Header::around(&call, false);
        let text = "0fff00000000000700010000000080010001000000046563686f000000070b00010000000568656c6c6f00";
        assert_eq!(hex::encode(&header.to_bytes()), text);
        assert_eq!(Header::parse(&Bytes::from(hex::decode(text))), Some(header));
        // theader-compact-zlib.
        let text =
            "0fff00000000000700030201010101016b0176000000789c6b526467494dcec89760cd48cdc9c967000024c7047f";
        let pair = (Bytes::from_static(b"k"), Bytes::from_static(b"v"));
        let message = Message::call(Protocol::Compact, "echo", 7, "hello").to_bytes();
        let header = Header { seqid: 7, zlib: true, info: vec![pair], message };
        assert_eq!(Header::parse(&Bytes::from(hex::decode(text))), Some(header.clone()));
        assert_eq!(Header::parse(&header.to_bytes()), Some(header));
    }
}
