use super::*;
use tokio::time::Instant;

fn all(names: &[&str]) -> Bytes {
    let frames = names.iter().enumerate().map(|(seqid, name)| framed(&call(name, seqid as i32)));
    frames.collect::<Vec<_>>().concat().into()
}

#[tokio::test(start_paused = true)]
async fn calls_run_at_once_and_are_answered_in_order() {
    let mut house = house(Framing::Framed, params());
    let begun = Instant::now();
    house.send(&all(&["sleep", "fast", "sleepy", "boom", "fast"])).await;
    for (seqid, name) in ["sleep", "fast", "sleepy"].into_iter().enumerate() {
        assert_eq!(read(&house.frame().await), replied(name, seqid as i32));
    }
    assert_eq!(read(&house.frame().await), refused("boom", 3, Type::InternalError));
    assert_eq!(read(&house.frame().await), replied("fast", 4));
    assert_eq!(begun.elapsed(), SECOND);
    assert_eq!(*house.service.begun.lock(), ["sleep", "fast", "sleepy", "boom", "fast"]);
    // And once more, one by one.
    house.send(&all(&["fast"])).await;
    assert_eq!(read(&house.frame().await), replied("fast", 0));
    assert!(house.ends().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_may() {
    for (most, seconds) in [(1, 10), (3, 4), (20, 1)] {
        let mut house = house(Framing::Framed, ServerParams { max_at_once: most, ..params() });
        let begun = Instant::now();
        house.send(&all(&["sleep"; 10])).await;
        for seqid in 0..10 {
            assert_eq!(read(&house.frame().await), replied("sleep", seqid));
        }
        assert!(house.service.most.load(Ordering::SeqCst) <= most);
        assert_eq!(begun.elapsed(), seconds * SECOND, "{most} at once");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_bytes_are_held_than_may() {
    let mut house = house(Framing::Framed, ServerParams { max_held: call("sleep", 0).len() * 2, ..params() });
    house.send(&all(&["sleep"; 8])).await;
    for seqid in 0..8 {
        assert_eq!(read(&house.frame().await), replied("sleep", seqid));
    }
    // The one that runs in the connection's task, and those behind it until the bound is reached.
    assert_eq!(house.service.most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_read_while_another_runs() {
    let mut house = house(Framing::Framed, params());
    let mut long = BytesMut::from(&call("fast", 1)[..]);
    long.put_bytes(0, 200 << 10);
    house.send(&all(&["sleep"])).await;
    house.send(&framed(&long)).await;
    house.send(&framed(&call("last", 2))).await;
    sleep(SECOND / 2).await;
    assert_eq!(*house.service.begun.lock(), ["sleep", "fast", "last"]);
    for (seqid, name) in ["sleep", "fast", "last"].into_iter().enumerate() {
        assert_eq!(read(&house.frame().await), replied(name, seqid as i32));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_gone_takes_all_its_calls_with_it() {
    let mut house = house(Framing::Framed, params());
    house.send(&all(&["hang", "hang", "fast", "hang"])).await;
    sleep(SECOND / 2).await;
    assert_eq!(house.service.running.load(Ordering::SeqCst), 3);
    let service = Arc::clone(&house.service);
    assert_eq!(house.ends().await, ["abandoned"]);
    assert_eq!(service.running.load(Ordering::SeqCst), 0);
}

/// What cannot be read ends the reading, but the caller's end must still be seen.
#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_behind_garbage_takes_its_calls_with_it() {
    for garbage in [&[0xff; 8][..], &[0; 4], &[0x7f, 0xff, 0xff, 0xff], &[0, 0, 0, 6, 1, 2, 3, 4, 5, 6]] {
        let mut house = house(Framing::Framed, params());
        let sent = [&framed(&call("hang", 1))[..], garbage, &[1; 100_000]].concat();
        house.io.write_all(&sent).await.unwrap();
        house.io.shutdown().await.unwrap();
        house.served.await.unwrap();
        assert_eq!(house.service.running.load(Ordering::SeqCst), 0, "{garbage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn oneway_calls_between_others_have_no_reply() {
    let mut house = house(Framing::Framed, params());
    let oneway = |name| framed(&message(Form::Strict, Kind::Oneway, name, 9));
    house
        .send(&[oneway("hang"), all(&["sleep"]), oneway("hang"), oneway("fast"), all(&["fast"])].concat())
        .await;
    assert_eq!(read(&house.frame().await), replied("sleep", 0));
    assert_eq!(read(&house.frame().await), replied("fast", 0));
    assert_eq!(*house.service.begun.lock(), ["hang", "sleep", "hang", "fast", "fast"]);
    // They go on when their caller is gone.
    let service = Arc::clone(&house.service);
    assert!(house.ends().await.is_empty());
    assert_eq!(service.running.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_room_for_oneway_calls_a_connection_waits_for_its_own() {
    let mut house = house(Framing::Framed, ServerParams { oneways: Arc::new(Semaphore::new(1)), ..params() });
    let oneway = framed(&message(Form::Strict, Kind::Oneway, "sleep", 9));
    let begun = Instant::now();
    house.send(&[&oneway[..], &oneway, &all(&["fast"])].concat()).await;
    assert_eq!(read(&house.frame().await), replied("fast", 0));
    assert_eq!(begun.elapsed(), SECOND);
    assert_eq!(house.service.begun.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_before_the_end_is_answered() {
    let mut house = house(Framing::Buffered, params());
    house.send(&[call("sleep", 1), call("fast", 2), call("sleepy", 3)].concat()).await;
    let rest = house.rest().await;
    let mut want = BytesMut::new();
    for (name, seqid) in [("sleep", 1), ("fast", 2), ("sleepy", 3)] {
        write_head(Form::Strict, Kind::Reply, name.as_bytes(), seqid, &mut want);
        want.put_u8(0);
    }
    assert_eq!(rest, want);
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_all_calls_of_a_connection() {
    let mut house = house(Framing::Framed, params());
    house.send(&all(&["sleep", "sleepy", "fast"])).await;
    sleep(SECOND / 2).await;
    house.drain.begin();
    for (seqid, name) in ["sleep", "sleepy", "fast"].into_iter().enumerate() {
        assert_eq!(read(&house.frame().await), replied(name, seqid as i32));
    }
    assert_eq!(house.io.read(&mut [0]).await.expect("an end"), 0);
    assert!(house.ends().await.is_empty());
}
