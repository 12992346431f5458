use super::*;
use crate::mux::frame::{Frame, kind, next_frame};
use proptest::prelude::*;
use std::collections::BTreeMap;

const D: i8 = kind::TDISPATCH;

fn tag(number: u32) -> Tag {
    Tag::new(number).unwrap()
}

fn push(outbox: &mut Outbox, number: u32, head: &[u8], body: Bytes) -> Ticket {
    let pushed = outbox.push(D, tag(number), body, |out| {
        out.put_slice(head);
        Ok(())
    });
    pushed.unwrap()
}

/// Writes up to `count` bytes of what is ready, gathered as a vectored write would.
fn write(outbox: &mut impl Buf, count: usize, slices: usize) -> Vec<u8> {
    let mut io = vec![IoSlice::new(&[]); slices];
    let filled = outbox.chunks_vectored(&mut io);
    let mut bytes: Vec<u8> = io.iter().take(filled).flat_map(|slice| slice.iter().copied()).collect();
    bytes.truncate(count);
    outbox.advance(bytes.len());
    bytes
}

fn write_all(outbox: &mut Outbox) -> BytesMut {
    let mut out = BytesMut::new();
    while outbox.has_remaining() {
        out.extend_from_slice(&write(outbox, usize::MAX, 3));
    }
    out
}

fn frames(mut bytes: BytesMut) -> Vec<Frame> {
    let frames = std::iter::from_fn(|| next_frame(&mut bytes, u32::MAX).unwrap()).collect();
    assert!(bytes.is_empty(), "half a frame");
    frames
}

#[test]
fn small_frames_are_one_slice_and_large_bodies_are_not_copied() {
    let mut outbox = Outbox::default();
    assert!(outbox.is_empty());
    let large = Bytes::from(vec![7; APART]);
    push(&mut outbox, 2, b"a", Bytes::from_static(b"x"));
    outbox.push_control(kind::TPING, Tag::SESSION, b"");
    push(&mut outbox, 3, b"b", large.clone());
    push(&mut outbox, 4, b"c", Bytes::new());
    let mut io = [IoSlice::new(&[]); 8];
    assert_eq!(outbox.chunks_vectored(&mut io), 3);
    assert_eq!(io[1].as_ptr(), large.as_ptr());
    assert_eq!(outbox.queued_bytes(), 4 * HEADER + 4 + APART);
    let read = frames(write_all(&mut outbox));
    let seen: Vec<_> = read.iter().map(|f| (f.kind, f.tag.get(), f.body.len())).collect();
    assert_eq!(seen, [(2, 2, 2), (65, 1, 0), (2, 3, 1 + APART), (2, 4, 1)]);
    assert!(outbox.is_empty());
}

#[test]
fn long_messages_are_woven_and_let_others_through() {
    let mut outbox = Outbox::default();
    outbox.set_window(16 << 10);
    push(&mut outbox, 2, b"head", Bytes::from(vec![2; 40 << 10]));
    push(&mut outbox, 3, b"", Bytes::from(vec![3; 33 << 10]));
    push(&mut outbox, 4, b"", Bytes::from_static(b"small"));
    let first = write(&mut outbox, 100, 8);
    outbox.push_control(kind::RPING, Tag::SESSION, b"");
    let mut bytes = BytesMut::from(&first[..]);
    bytes.extend_from_slice(&write_all(&mut outbox));
    let read = frames(bytes);
    let seen: Vec<_> = read.iter().map(|f| (f.tag.get(), f.fragment, f.body.len())).collect();
    let w = 16 << 10;
    let last2 = (8 << 10) + 4;
    let woven = [(2, true, w), (3, true, w), (4, false, 5), (1, false, 0), (2, true, w), (3, true, w)];
    assert_eq!(seen[..6], woven);
    assert_eq!(seen[6..], [(2, false, last2), (3, false, 1 << 10)]);
}

#[test]
fn a_tiny_window_still_fills_a_write() {
    let mut outbox = Outbox::default();
    outbox.set_window(1);
    push(&mut outbox, 2, b"ab", Bytes::from(vec![0; 10_000]));
    write(&mut outbox, HEADER + 1, 1);
    assert!(outbox.remaining() >= ROUND, "{}", outbox.remaining());
    assert_eq!(frames(write_all(&mut outbox)).len(), 10_001);
}

#[test]
fn taking_back() {
    let mut outbox = Outbox::default();
    outbox.set_window(4096);
    let small = push(&mut outbox, 2, b"a", Bytes::new());
    let apart = push(&mut outbox, 3, b"b", Bytes::from(vec![3; 2000]));
    let long = push(&mut outbox, 4, b"c", Bytes::from(vec![4; 10_000]));
    let begun = push(&mut outbox, 5, b"d", Bytes::from(vec![5; 10_000]));
    let last = push(&mut outbox, 6, b"e", Bytes::new());
    assert_eq!(outbox.discard(apart), Discarded::Unwritten);
    assert_eq!(outbox.discard(long), Discarded::Unwritten);
    // The first byte of a frame is enough to have to finish it.
    let mut out = BytesMut::from(&write(&mut outbox, 1, 1)[..]);
    assert_eq!(outbox.discard(small), Discarded::Written);
    out.extend_from_slice(&write(&mut outbox, HEADER + 1, 8));
    assert_eq!(outbox.discard(begun), Discarded::Partly);
    assert_eq!(outbox.discard(last), Discarded::Unwritten);
    out.extend_from_slice(&write_all(&mut outbox));
    let seen: Vec<_> = frames(out).iter().map(|f| (f.tag.get(), f.fragment)).collect();
    assert_eq!(seen, [(2, false), (5, true)]);
    assert_eq!(outbox.queued_bytes(), 0);
}

#[test]
fn what_is_handed_out_counts_as_written() {
    let mut outbox = Outbox::default();
    outbox.set_window(4096);
    let mut hand = Staged::default();
    let short = push(&mut outbox, 2, b"a", Bytes::new());
    let long = push(&mut outbox, 3, b"b", Bytes::from(vec![3; 5000]));
    outbox.hand_out(&mut hand);
    assert_eq!(outbox.discard(short), Discarded::Written);
    assert_eq!(outbox.discard(long), Discarded::Partly);
    let later = push(&mut outbox, 4, b"c", Bytes::new());
    assert_eq!(outbox.queued_bytes(), hand.remaining() + HEADER + 1);
    // Not before what was handed out is written.
    outbox.hand_out(&mut hand);
    assert_eq!(outbox.remaining(), HEADER + 1);
    let mut bytes = BytesMut::new();
    while hand.has_remaining() {
        bytes.extend_from_slice(&write(&mut hand, 7, 2));
    }
    assert_eq!(frames(bytes).len(), 2);
    assert_eq!(outbox.discard(later), Discarded::Unwritten);
    outbox.hand_out(&mut hand);
    assert!(!hand.has_remaining() && outbox.is_empty());
}

#[test]
fn what_cannot_be_encoded_leaves_no_trace() {
    let mut outbox = Outbox::default();
    let refused = outbox.push(D, tag(2), Bytes::new(), |out| {
        out.put_slice(b"half");
        Err(EncodeError::TooLong)
    });
    assert_eq!(refused, Err(EncodeError::TooLong));
    assert!(outbox.is_empty());
    push(&mut outbox, 3, b"", Bytes::new());
    assert_eq!(frames(write_all(&mut outbox)).len(), 1);
}

#[test]
fn control_frames_are_counted_while_they_wait() {
    let mut outbox = Outbox::default();
    for _ in 0..100 {
        outbox.push_control(kind::RPING, Tag::SESSION, b"");
    }
    assert_eq!(outbox.queued_control(), 100);
    write_all(&mut outbox);
    for _ in 0..1000 {
        outbox.push_control(kind::RPING, Tag::SESSION, b"");
        write(&mut outbox, HEADER - 1, 1);
        outbox.push_control(kind::RPING, Tag::SESSION, b"");
        write(&mut outbox, HEADER + 1, 1);
    }
    assert!(outbox.queued_control() < 10, "{}", outbox.queued_control());
}

#[derive(Clone, Debug)]
enum Step {
    Push { head: usize, body: usize },
    Control,
    Write { count: usize, slices: usize },
    HandOut,
    Discard(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![0..40usize, 0..3000usize];
    prop_oneof![
        3 => (0..30usize, size).prop_map(|(head, body)| Step::Push { head, body }),
        1 => Just(Step::Control),
        3 => (1..2500usize, 1..5usize).prop_map(|(count, slices)| Step::Write { count, slices }),
        1 => Just(Step::HandOut),
        2 => any::<prop::sample::Index>().prop_map(Step::Discard),
    ]
}

/// What a message should look like on the other side.
struct Sent {
    bytes: Vec<u8>,
    ticket: Ticket,
    discarded: Option<Discarded>,
}

fn run(window: u32, steps: Vec<Step>) {
    let mut outbox = Outbox::default();
    outbox.set_window(window);
    let (mut hand, mut wire) = (Staged::default(), BytesMut::new());
    let mut sent: Vec<Sent> = Vec::new();
    let mut controls = 0;
    for step in steps {
        match step {
            Step::Push { head, body } => {
                let bytes: Vec<u8> = (0..head + body).map(|n| (n * 7 + sent.len()) as u8).collect();
                let (front, back) = bytes.split_at(head);
                let number = sent.len() as u32 + 2;
                let ticket = push(&mut outbox, number, front, Bytes::copy_from_slice(back));
                sent.push(Sent { bytes, ticket, discarded: None });
            }
            Step::Control => {
                controls += 1;
                outbox.push_control(kind::TPING, Tag::SESSION, b"");
            }
            Step::Write { count, slices } if hand.has_remaining() => {
                wire.extend_from_slice(&write(&mut hand, count, slices));
            }
            Step::Write { count, slices } => wire.extend_from_slice(&write(&mut outbox, count, slices)),
            Step::HandOut => outbox.hand_out(&mut hand),
            Step::Discard(index) if !sent.is_empty() => {
                let message = index.get_mut(&mut sent[..]);
                if message.discarded.is_none() {
                    message.discarded = Some(outbox.discard(message.ticket));
                }
            }
            Step::Discard(_) => {}
        }
    }
    wire.extend_from_slice(&write(&mut hand, usize::MAX, 10_000));
    outbox.hand_out(&mut hand);
    while hand.has_remaining() {
        wire.extend_from_slice(&write(&mut hand, usize::MAX, 10_000));
        outbox.hand_out(&mut hand);
    }
    assert!(outbox.is_empty() && outbox.longs.is_empty());
    check(window as usize, frames(wire), &sent, controls);
}

fn check(window: usize, frames: Vec<Frame>, sent: &[Sent], controls: usize) {
    let mut got: BTreeMap<u32, (Vec<u8>, bool)> = BTreeMap::new();
    for frame in &frames {
        let (bytes, ended) = got.entry(frame.tag.get()).or_default();
        assert!(frame.tag == Tag::SESSION || !*ended, "bytes after the last piece");
        assert!(if frame.fragment { frame.body.len() == window } else { frame.body.len() <= window });
        bytes.extend_from_slice(&frame.body);
        *ended = !frame.fragment;
    }
    assert_eq!(frames.iter().filter(|frame| frame.tag == Tag::SESSION).count(), controls);
    for (message, number) in sent.iter().zip(2u32..) {
        let got = got.get(&number);
        match message.discarded {
            None | Some(Discarded::Written) => {
                let (bytes, ended) = got.expect("message was sent");
                assert!(*ended && *bytes == message.bytes);
            }
            Some(Discarded::Unwritten) => assert!(got.is_none()),
            Some(Discarded::Partly) => {
                let (bytes, ended) = got.expect("some of it was sent");
                assert!(!*ended && message.bytes.starts_with(bytes));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_message_arrives_whole_or_as_told(window in prop_oneof![1..50u32, 50..4000u32], steps in prop::collection::vec(step(), 0..80)) {
        run(window, steps);
    }
}
