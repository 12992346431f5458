//! As much of Thrift as a test service needs: message headers in the binary and compact protocols, and the replies of
//! Echo and Probe, made from the bytes of the call.

use bytes::{BufMut, Bytes, BytesMut};

/// Message types.
pub const CALL: u8 = 1;
/// A result.
pub const REPLY: u8 = 2;
/// A TApplicationException.
pub const EXCEPTION: u8 = 3;
/// A call without a reply.
pub const ONEWAY: u8 = 4;

/// A message's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Strict TBinaryProtocol.
    Binary,
    /// TBinaryProtocol with the old message header, which has no version.
    Old,
    /// TCompactProtocol.
    Compact,
}

/// One message: its header read, its struct not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The encoding.
    pub protocol: Protocol,
    /// [`CALL`] and the like.
    pub kind: u8,
    /// The method, which need not be UTF-8.
    pub name: Bytes,
    /// The sequence id.
    pub seqid: i32,
    /// The arguments or the result.
    pub body: Bytes,
}

impl Message {
    /// Reads a message; `None` if it is not one.
    pub fn parse(bytes: &Bytes) -> Option<Self> {
        let mut at = Cursor { bytes, at: 0 };
        let message = match *bytes.first()? {
            0x80 => {
                let kind = (at.i32()? & 0xff) as u8;
                let length = usize::try_from(at.i32()?).ok()?;
                let name = at.take(length)?;
                Self { protocol: Protocol::Binary, kind, name, seqid: at.i32()?, body: Bytes::new() }
            }
            0x82 => {
                at.take(1)?;
                let kind = at.take(1)?[0] >> 5;
                let seqid = at.varint()? as i32;
                let length = at.varint()? as usize;
                Self { protocol: Protocol::Compact, kind, name: at.take(length)?, seqid, body: Bytes::new() }
            }
            0 => {
                let length = usize::try_from(at.i32()?).ok()?;
                let name = at.take(length)?;
                let kind = at.take(1)?[0];
                Self { protocol: Protocol::Old, kind, name, seqid: at.i32()?, body: Bytes::new() }
            }
            _ => return None,
        };
        Some(Self { body: bytes.slice(at.at..), ..message })
    }

    /// Writes the message.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self.protocol {
            Protocol::Binary => {
                out.put_u32(0x8001_0000 | u32::from(self.kind));
                out.put_u32(self.name.len() as u32);
                out.put_slice(&self.name);
                out.put_i32(self.seqid);
            }
            Protocol::Old => {
                out.put_u32(self.name.len() as u32);
                out.put_slice(&self.name);
                out.put_u8(self.kind);
                out.put_i32(self.seqid);
            }
            Protocol::Compact => {
                out.put_slice(&[0x82, self.kind << 5 | 1]);
                put_varint(&mut out, self.seqid as u32);
                put_varint(&mut out, self.name.len() as u32);
                out.put_slice(&self.name);
            }
        }
        out.put_slice(&self.body);
        out.freeze()
    }

    /// A call of `name` with one string argument.
    pub fn call(protocol: Protocol, name: &str, seqid: i32, argument: &str) -> Self {
        let body = string_field(protocol, 1, argument.as_bytes());
        Self { protocol, kind: CALL, name: Bytes::copy_from_slice(name.as_bytes()), seqid, body }
    }

    /// A TApplicationException in answer to this call.
    pub fn exception(&self, code: i32, text: &str) -> Self {
        let mut body = BytesMut::from(&string_field(self.protocol, 1, text.as_bytes())[..]);
        body.truncate(body.len() - 1);
        put_i32(&mut body, self.protocol, 2, 1, code);
        body.put_u8(0);
        self.answer(EXCEPTION, body.freeze())
    }

    /// The declared exception `{ 1: string why }` as field 1 of the result.
    pub fn declared_exception(&self, why: &str) -> Self {
        let mut body = BytesMut::new();
        match self.protocol {
            Protocol::Binary | Protocol::Old => body.put_slice(&[12, 0, 1]),
            Protocol::Compact => body.put_u8(0x1c),
        }
        body.put_slice(&string_field(self.protocol, 1, why.as_bytes()));
        body.put_u8(0);
        self.answer(EXCEPTION - 1, body.freeze())
    }

    /// What the services Echo and Probe answer: `add` adds, `ping` is void, `all` is "and", `note` and `fire` have no
    /// answer if they are one-way, and everything else with a string as argument 1 returns it.
    pub fn served(&self) -> Option<Self> {
        if self.kind == ONEWAY {
            return None;
        }
        let body = match &self.name[..] {
            b"add" => self.two_i32().map(|(a, b)| {
                let mut body = BytesMut::new();
                put_i32(&mut body, self.protocol, 0, 0, a.wrapping_add(b));
                body.put_u8(0);
                body.freeze()
            }),
            b"ping" | b"note" | b"fire" => Some(Bytes::from_static(&[0])),
            b"all" => self.and(),
            _ => self.string_argument().map(|s| string_field(self.protocol, 0, &s)),
        };
        Some(match body {
            Some(body) => self.answer(REPLY, body),
            None => self.exception(1, "no such method"),
        })
    }

    fn answer(&self, kind: u8, body: Bytes) -> Self {
        Self { kind, body, ..self.clone() }
    }

    /// The string of a struct that begins with one as field 1 (a call) or 0 (a result).
    pub fn string_argument(&self) -> Option<Bytes> {
        let mut at = Cursor { bytes: &self.body, at: 0 };
        let length = match self.protocol {
            Protocol::Binary | Protocol::Old => {
                let head = at.take(3)?;
                (head[0] == 11).then_some(())?;
                usize::try_from(at.i32()?).ok()?
            }
            Protocol::Compact => {
                let head = at.take(1)?[0];
                (head & 0xf == 8).then_some(())?;
                if head == 8 {
                    at.varint()?;
                }
                at.varint()? as usize
            }
        };
        at.take(length)
    }

    fn two_i32(&self) -> Option<(i32, i32)> {
        let mut at = Cursor { bytes: &self.body, at: 0 };
        let mut one = || match self.protocol {
            Protocol::Binary | Protocol::Old => (at.take(3)?[0] == 8).then(|| at.i32())?,
            Protocol::Compact => (at.take(1)?[0] == 0x15).then(|| at.varint())?.map(unzigzag),
        };
        Some((one()?, one()?))
    }

    fn and(&self) -> Option<Bytes> {
        let mut at = Cursor { bytes: &self.body, at: 0 };
        match self.protocol {
            Protocol::Binary | Protocol::Old => {
                at.take(4)?;
                let n = usize::try_from(at.i32()?).ok()?;
                let all = at.take(n)?.iter().all(|b| *b == 1);
                Some(Bytes::copy_from_slice(&[2, 0, 0, u8::from(all), 0]))
            }
            Protocol::Compact => {
                at.take(1)?;
                let head = at.take(1)?[0];
                let n = if head >> 4 == 15 { at.varint()? as usize } else { usize::from(head >> 4) };
                let all = at.take(n)?.iter().all(|b| *b == 1);
                Some(Bytes::copy_from_slice(&[if all { 1 } else { 2 }, 0, 0]))
            }
        }
    }
}

/// A struct with one string.
fn string_field(protocol: Protocol, id: u8, value: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    match protocol {
        Protocol::Binary | Protocol::Old => {
            out.put_slice(&[11, 0, id]);
            out.put_u32(value.len() as u32);
        }
        Protocol::Compact => {
            if id == 0 {
                out.put_slice(&[8, 0]);
            } else {
                out.put_u8(id << 4 | 8);
            }
            put_varint(&mut out, value.len() as u32);
        }
    }
    out.put_slice(value);
    out.put_u8(0);
    out.freeze()
}

fn put_i32(out: &mut BytesMut, protocol: Protocol, id: u8, after: u8, value: i32) {
    match protocol {
        Protocol::Binary | Protocol::Old => {
            out.put_slice(&[8, 0, id]);
            out.put_i32(value);
        }
        Protocol::Compact => {
            if id == after {
                out.put_slice(&[5, id << 1]);
            } else {
                out.put_u8((id - after) << 4 | 5);
            }
            put_varint(out, (value << 1 ^ value >> 31) as u32);
        }
    }
}

fn put_varint(out: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

pub(crate) fn unzigzag(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a Bytes,
    pub(crate) at: usize,
}

impl Cursor<'_> {
    pub(crate) fn take(&mut self, n: usize) -> Option<Bytes> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len())?;
        let taken = self.bytes.slice(self.at..end);
        self.at = end;
        Some(taken)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.take(4).map(|b| i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    pub(crate) fn varint(&mut self) -> Option<u32> {
        self.varint_long().map(|value| value as u32)
    }

    pub(crate) fn varint_long(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    fn served(call: &str) -> String {
        let bytes = Bytes::from(hex::decode(call));
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.to_bytes(), bytes);
        message.served().map_or(String::new(), |m| hex::encode(&m.to_bytes()))
    }

    #[test]
    fn the_cases_bytes_are_answered_as_the_cases_say() {
        // bc-01, without the frame length.
        assert_eq!(
            served("800100010000000361646400000008080001000000010800020000000200"),
            "8001000200000003616464000000080800000000000300"
        );
        assert_eq!(served("80010004000000046e6f7465000000070b0001000000017800"), "");
        // add(1,2) and all([true,true]) in compact, seqid 8 and 1.
        assert_eq!(served("822108036164641502150400"), "8241080361646405000600");
        assert_eq!(served("82210103616c6c1921010100"), "82410103616c6c010000");
    }

    #[test]
    fn strings_come_back_in_both_protocols() {
        for protocol in [Protocol::Binary, Protocol::Old, Protocol::Compact] {
            let call = Message::call(protocol, "echo", -7, &"x".repeat(300));
            let reply = Message::parse(&call.to_bytes()).unwrap().served().unwrap();
            let reply = Message::parse(&reply.to_bytes()).unwrap();
            assert_eq!((reply.kind, reply.seqid), (REPLY, -7));
            assert_eq!(reply.string_argument().unwrap().len(), 300);
            let refused = call.exception(6, "no");
            assert_eq!(
                (refused.kind, refused.string_argument().unwrap()),
                (EXCEPTION, Bytes::from_static(b"no"))
            );
        }
    }
}
