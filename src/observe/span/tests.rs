use super::*;
use bytes::Bytes;
use muxgate_rpc::{Class, Failure, Reply, Response, Why};
use parking_lot::Mutex;
use std::time::Duration;

#[derive(Default)]
struct Kept(Mutex<Vec<Arc<Span>>>);

impl Recorder for Kept {
    fn record(&self, span: &Arc<Span>) {
        self.0.lock().push(Arc::clone(span));
    }
}

fn tracer(sample_rate: f64) -> (Tracer, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let settings = Settings { sample_rate: Some(sample_rate), ..Settings::default() };
    (Tracer::new(&settings, Some(Arc::clone(&kept) as Arc<dyn Recorder>), None, Arc::default()), kept)
}

const LONG: TraceContext = TraceContext {
    span_id: 0x1111_1111_1111_1111,
    parent_id: 0x2222_2222_2222_2222,
    trace_id: 0x463a_c35c_9f64_13ad,
    trace_id_high: Some(0x4848_5a39_53bb_6124),
    flags: 6,
};

fn context(trace: TraceContext) -> Context {
    Context { trace: Some(trace), ..Context::default() }
}

/// BC-17 and BC-18: one trace, parents that exist, both lengths of id.
#[tokio::test(start_paused = true)]
async fn a_hop_joins_the_span_it_got_and_makes_a_child() {
    let (tracer, kept) = tracer(0.0);
    for trace in [LONG, TraceContext { trace_id_high: None, ..LONG }] {
        let mut ctx = context(trace);
        let server = tracer.server(&mut ctx, Instant::now(), None, "in");
        assert_eq!(ctx.trace, Some(trace));
        let (sent, client) = tracer.client(ctx.trace, true, Instant::now());
        assert_eq!((sent.parent_id, sent.trace_id, sent.flags), (trace.span_id, trace.trace_id, 6));
        assert_eq!(sent.trace_id_high, trace.trace_id_high);
        tokio::time::advance(Duration::from_millis(2)).await;
        client.finish(&Ok(Response::nothing()));
        server.finish(&Ok(Response::nothing()));
        let spans = std::mem::take(&mut *kept.0.lock());
        let [client, server] = spans.as_slice() else { panic!("two spans, not {spans:?}") };
        assert_eq!((client.id, client.parent, client.shared), (sent.span_id, Some(server.id), false));
        assert_eq!((server.id, server.parent, server.shared), (trace.span_id, Some(trace.parent_id), true));
        assert_eq!(client.trace_hex(), server.trace_hex());
        assert_eq!(server.trace_hex().len(), if trace.trace_id_high.is_some() { 32 } else { 16 });
        assert_eq!(server.duration_us(), 2000);
    }
}

#[tokio::test(start_paused = true)]
async fn decisions_that_came_in_are_law() {
    let (never, _) = tracer(0.0);
    let (always, _) = tracer(1.0);
    let now = Instant::now();
    for (tracer, flags, recording, sent) in [
        (&never, 1, true, 1),
        (&never, 6, true, 6),
        (&always, 2, false, 2),
        (&always, 0, true, 6),
        (&never, 4, false, 2),
    ] {
        let mut ctx = context(TraceContext { flags, ..LONG });
        let span = tracer.server(&mut ctx, now, None, "in");
        assert_eq!(span.is_recording(), recording, "{flags}");
        assert_eq!(ctx.trace.map(|trace| trace.flags), Some(sent), "{flags}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_recorders_a_trace_goes_on_unchanged() {
    let off = Tracer::new(&Settings::default(), None, None, Arc::default());
    let undecided = TraceContext { flags: 0, ..LONG };
    let mut ctx = context(undecided);
    assert!(!off.server(&mut ctx, Instant::now(), None, "in").is_recording());
    assert_eq!(off.client(ctx.trace, true, Instant::now()).0, undecided);
    let mut empty = Context::default();
    let _span = off.server(&mut empty, Instant::now(), None, "in");
    let root = empty.trace.expect("a root");
    assert_eq!((root.parent_id, root.trace_id, root.flags), (root.span_id, root.span_id, 0));
}

#[tokio::test(start_paused = true)]
async fn ids_of_zero_begin_a_new_trace() {
    let (tracer, kept) = tracer(1.0);
    let mut ctx = context(TraceContext { trace_id: 0, trace_id_high: None, flags: 1, ..LONG });
    tracer.server(&mut ctx, Instant::now(), None, "in").finish(&Ok(Response::nothing()));
    let span = Arc::clone(&kept.0.lock()[0]);
    assert!(span.trace_id != 0 && !span.shared && span.debug && span.parent.is_none());
}

#[tokio::test(start_paused = true)]
async fn failures_exceptions_and_drops_are_errors() {
    let (tracer, kept) = tracer(1.0);
    let start = || tracer.client(None, true, Instant::now()).1;
    let reply = |reply, class| Ok(Response { contexts: Vec::new(), body: Bytes::new(), reply, class });
    start().finish(&reply(Reply::Result, Class::Success));
    start().finish(&reply(Reply::Declared(1), Class::Success));
    start().finish(&Err(Failure::new(Why::Timeout, "no answer in 1 s")));
    drop(start());
    let errors: Vec<_> = kept.0.lock().iter().map(|span| span.error.clone()).collect();
    let texts: Vec<_> = errors.iter().map(Option::as_deref).collect();
    assert_eq!(
        texts,
        [None, Some("declared exception (field 1)"), Some("timeout: no answer in 1 s"), Some("cancelled")]
    );
}

/// BC-06, with the bytes of the case: numbers and span tell a result from both kinds of exception.
#[tokio::test(start_paused = true)]
async fn exceptions_are_told_from_results_by_their_bytes() {
    let case = include_str!("../../../tests/golden/cases/bc-06-exception-is-not-success.json");
    let case: serde_json::Value = serde_json::from_str(case).expect("JSON");
    let (tracer, kept) = tracer(1.0);
    let route = crate::observe::Registry::new(crate::observe::stats::Limits::default()).route("/s/probe");
    let add = Bytes::from_static(b"\x80\x01\0\x01\0\0\0\x03add\0\0\0\x08\0");
    let add = muxgate_rpc::Payload::thrift(add).expect("a call");
    for step in case["input"].as_array().expect("steps") {
        let hex = step["hex"].as_str().expect("hex").as_bytes();
        let digits = hex.chunks(2).map(|two| std::str::from_utf8(two).expect("ASCII"));
        let frame: Vec<u8> = digits.map(|two| u8::from_str_radix(two, 16).expect("a byte")).collect();
        for _ in 0..10 {
            let now = Instant::now();
            let (call, span) = (route.begin(now), tracer.client(None, true, now).1);
            let reply = Bytes::copy_from_slice(&frame[4..]);
            let result = Response::judged(&add, reply, Vec::new(), false);
            span.finish(&result);
            call.end(&result, now);
        }
    }
    let totals = route.calls.totals();
    assert_eq!((totals.requests, totals.success, totals.application, totals.declared), (30, 10, 10, 10));
    let errors: Vec<_> = kept.0.lock().iter().map(|span| span.error.clone()).collect();
    let texts = [0, 10, 20].map(|at| errors[at].as_deref());
    let application = Some("application exception (InternalError)");
    assert_eq!(texts, [None, application, Some("declared exception (field 1)")]);
}

/// BC-20: a name is outside input.
#[tokio::test(start_paused = true)]
async fn texts_are_bounded_and_valid() {
    let (tracer, kept) = tracer(1.0);
    let mut span = tracer.client(None, true, Instant::now()).1;
    span.method(b"we\"ird\\\n\xc3\xa9\xff");
    span.remote_service(&"é".repeat(1000));
    for _ in 0..100 {
        span.tag(tags::ROUTE, "x".repeat(1000));
        span.note("retry");
    }
    span.finish(&Ok(Response::nothing()));
    let span = Arc::clone(&kept.0.lock()[0]);
    assert_eq!(span.name, "we\"ird\\\né\u{fffd}");
    assert_eq!(span.remote_service.as_deref().map(str::len), Some(MAX_TEXT));
    assert_eq!((span.tags.len(), span.notes.len()), (MAX_TAGS, MAX_NOTES));
    assert!(span.tags.iter().all(|(_, value)| value.len() == MAX_TEXT));
    let written = json::span(&span).to_string();
    assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok());
}

#[tokio::test(start_paused = true)]
async fn our_own_pages_look_without_deciding_for_anybody() {
    let kept = Arc::new(Kept::default());
    let tracer =
        Tracer::new(&Settings::default(), None, Some(Arc::clone(&kept) as Arc<dyn Recorder>), Arc::default());
    let now = Instant::now();
    let mut ctx = context(TraceContext { flags: 0, ..LONG });
    let looked = tracer.server(&mut ctx, now, None, "in");
    assert!(looked.is_recording());
    assert_eq!(ctx.trace.unwrap().flags, 0, "still undecided");
    assert_eq!(tracer.client(ctx.trace, true, now).0.flags, 0);
    assert!(!tracer.server(&mut ctx, now, None, "in").is_recording(), "not each one");
    let mut ctx = context(TraceContext { flags: 2, ..LONG });
    let later = now + std::time::Duration::from_secs(1);
    assert!(!tracer.server(&mut ctx, later, None, "in").is_recording(), "a no is a no");
}
