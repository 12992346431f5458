//! The framed transport.

use crate::vectors::{framed, unhex};
use bytes::{BufMut, BytesMut};
use muxgate_wire::thrift::framing::{DEFAULT_MAX_FRAME, FrameError, needed, next_frame, prefix, write_frame};

#[test]
fn frames_come_out_whole_in_order_and_without_a_copy() {
    let stream = [framed(b"first"), framed(b""), framed(b"third")].concat();
    for chunk in 1..=stream.len() {
        let mut buffer = BytesMut::with_capacity(64);
        let mut frames = Vec::new();
        for part in stream.chunks(chunk) {
            buffer.put_slice(part);
            let start = buffer.as_ptr() as usize;
            let mut at = start;
            while let Some(frame) = next_frame(&mut buffer, 5).unwrap() {
                assert_eq!(frame.as_ptr() as usize, at + 4, "in place");
                at += 4 + frame.len();
                frames.push(frame);
            }
        }
        assert_eq!(frames, [&b"first"[..], b"", b"third"]);
        assert!(buffer.is_empty());
    }
}

#[test]
fn needed_says_how_much_is_missing() {
    for (text, missing) in [("", 4), ("0000", 2), ("00000003", 3), ("0000000361", 2), ("00000003616263", 0)] {
        assert_eq!(needed(&unhex(text), 8), missing, "{text}");
    }
    assert_eq!(needed(&unhex("7fffffff"), 8), 0, "next_frame has an error to tell");
}

#[test]
fn a_length_that_is_no_length_leaves_the_buffer_alone() {
    for (text, error) in [
        ("f00000000fff", FrameError::Negative(-0x1000_0000)),
        ("80010001", FrameError::Negative(-0x7ffe_ffff)),
        ("3fffffff", FrameError::TooLong { len: 0x3fff_ffff, max: DEFAULT_MAX_FRAME }),
        ("00fa0001", FrameError::TooLong { len: 16_384_001, max: DEFAULT_MAX_FRAME }),
    ] {
        let mut buffer = BytesMut::from(&unhex(text)[..]);
        assert_eq!(next_frame(&mut buffer, DEFAULT_MAX_FRAME), Err(error), "{text}");
        assert_eq!(buffer, unhex(text));
    }
    let mut at_limit = BytesMut::from(&unhex("00fa0000")[..]);
    let capacity = at_limit.capacity();
    assert_eq!(next_frame(&mut at_limit, DEFAULT_MAX_FRAME), Ok(None));
    assert_eq!(at_limit.capacity(), capacity, "a claim reserves nothing");
}

#[test]
fn frames_are_written_with_their_length() {
    let mut out = BytesMut::new();
    write_frame(b"abc", &mut out).unwrap();
    write_frame(b"", &mut out).unwrap();
    assert_eq!(out, unhex("0000000361626300000000"));
    assert_eq!(prefix(0x0102_0304), Ok([1, 2, 3, 4]));
    assert!(prefix(0x8000_0000).is_err());
}
