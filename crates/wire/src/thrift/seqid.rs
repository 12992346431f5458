//! Sequence ids, changed where they stand.
//!
//! Plain Thrift matches replies by order, and a Finagle client numbers all its calls 0: one reply too many and every later
//! one reaches the wrong caller. So a gateway numbers the calls of a connection itself, and gives each reply its caller's
//! own number back. The message keeps its length, so neither costs more than the few bytes of the number.

use super::{MessageHead, Protocol};
use std::ops::RangeInclusive;

/// A number for a call that takes as many bytes as the one it has, and differs from those of the calls around it.
pub fn in_place_of(head: &MessageHead, serial: u32) -> i32 {
    match head.protocol {
        Protocol::Binary => serial as i32,
        Protocol::Compact => {
            let room = numbers_of(varint_len(head.seqid as u32));
            let span = u64::from(*room.end() - *room.start()) + 1;
            (room.start() + (u64::from(serial) % span) as u32) as i32
        }
    }
}

/// Writes a number over the one that a message has; false, and nothing written, if it does not fit into the same bytes.
pub fn replace(message: &mut [u8], head: &MessageHead, seqid: i32) -> bool {
    match head.protocol {
        Protocol::Binary => {
            let place = head.body_at.checked_sub(4).and_then(|at| message.get_mut(at..head.body_at));
            place.map(|place| place.copy_from_slice(&seqid.to_be_bytes())).is_some()
        }
        Protocol::Compact => replace_varint(message, seqid as u32),
    }
}

/// Where a compact header has the number: behind the protocol's byte and the message's type.
const COMPACT_AT: usize = 2;

fn replace_varint(message: &mut [u8], mut number: u32) -> bool {
    let Some(rest) = message.get_mut(COMPACT_AT..) else { return false };
    let Some(last) = rest.iter().take(5).position(|byte| byte & 0x80 == 0) else { return false };
    if varint_len(number) != last + 1 {
        return false;
    }
    for (at, byte) in rest.iter_mut().take(last + 1).enumerate() {
        *byte = (number & 0x7f) as u8 | if at < last { 0x80 } else { 0 };
        number >>= 7;
    }
    true
}

fn varint_len(number: u32) -> usize {
    (32 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// The numbers whose varint has so many bytes, 1 to 5.
fn numbers_of(len: usize) -> RangeInclusive<u32> {
    let first = if len == 1 { 0 } else { 1u32 << (7 * (len - 1)) };
    let last = if len >= 5 { u32::MAX } else { (1u32 << (7 * len)) - 1 };
    first..=last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thrift::{Form, Kind, peek, write_head};
    use bytes::BytesMut;

    #[test]
    fn any_number_is_replaced_and_given_back_in_any_form() {
        for form in [Form::Strict, Form::Old, Form::Compact] {
            for theirs in [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 27, i32::MAX, -1, i32::MIN] {
                let mut message = BytesMut::new();
                write_head(form, Kind::Call, b"echo", theirs, &mut message);
                message.extend_from_slice(&[0]);
                let before = message.clone();
                let head = peek(&message).unwrap();
                let mut used = Vec::new();
                for serial in [5, 6, 7] {
                    let ours = in_place_of(&head, serial);
                    assert!(replace(&mut message, &head, ours), "{form:?} {theirs} {ours}");
                    let again = peek(&message).unwrap();
                    assert_eq!((again.seqid, again.name.clone()), (ours, head.name.clone()));
                    assert!(!used.contains(&ours));
                    used.push(ours);
                    assert!(replace(&mut message, &again, theirs));
                    assert_eq!(message, before);
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_left_alone() {
        let mut message = BytesMut::new();
        write_head(Form::Compact, Kind::Reply, b"echo", 1, &mut message);
        let head = peek(&message).unwrap();
        let before = message.clone();
        assert!(!replace(&mut message, &head, 128));
        assert_eq!(message, before);
    }
}
