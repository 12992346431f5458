use super::*;
use crate::Payload;
use muxgate_wire::mux::context::TraceContext;
use muxgate_wire::name::Dtab;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ID: &str = "463ac35c9f6413ad";
const SPAN: &str = "a2fb4a1d1a96d312";
const PARENT: &str = "0020000000000001";
const HIGH: &str = "00000000000000ff";

fn info(pairs: &[(&str, &str)]) -> Vec<(Bytes, Bytes)> {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    pairs.iter().map(|(key, value)| (bytes(key), bytes(value))).collect()
}

fn trace_of(pairs: &[(&str, &str)]) -> Option<TraceContext> {
    from_info(&info(pairs), Instant::now()).unwrap().2.trace
}

fn trace(flags: u64) -> TraceContext {
    TraceContext {
        span_id: 0xa2fb_4a1d_1a96_d312,
        parent_id: 0xa2fb_4a1d_1a96_d312,
        trace_id: 0x463a_c35c_9f64_13ad,
        trace_id_high: None,
        flags,
    }
}

#[test]
fn one_header_holds_a_trace() {
    let (parent, both) = (0x0020_0000_0000_0001, format!("{HIGH}{ID}"));
    for (text, want) in [
        (format!("{ID}-{SPAN}"), trace(0)),
        (format!("{ID}-{SPAN}-0"), trace(2)),
        (format!("{ID}-{SPAN}-1"), trace(6)),
        (format!("{ID}-{SPAN}-d"), trace(1)),
        (format!("{ID}-{SPAN}-1-{PARENT}"), TraceContext { parent_id: parent, ..trace(6) }),
        (format!("{both}-{SPAN}-1"), TraceContext { trace_id_high: Some(255), ..trace(6) }),
        ("0".into(), TraceContext { flags: 2, ..TraceContext::default() }),
        ("1".into(), TraceContext { flags: 6, ..TraceContext::default() }),
        ("d".into(), TraceContext { flags: 1, ..TraceContext::default() }),
    ] {
        assert_eq!(trace_of(&[("B3", &text)]), Some(want), "{text}");
    }
}

#[test]
fn a_trace_that_cannot_be_read_is_none() {
    let zero = "0000000000000000";
    for text in [
        String::new(),
        "2".into(),
        "-".into(),
        ID.into(),
        format!("{ID}-"),
        format!("{ID}-{SPAN}-"),
        format!("{ID}-{SPAN}-2"),
        format!("{ID}-{SPAN}-1-"),
        format!("{ID}-{SPAN}-1-{PARENT}-"),
        format!("{ID}-{SPAN}-1-{zero}"),
        format!("{zero}-{SPAN}-1"),
        format!("{zero}{zero}-{SPAN}-1"),
        format!("{ID}-{zero}-1"),
        format!("{}-{SPAN}-1", ID.to_uppercase()),
        format!("{}-{SPAN}-1", &ID[1..]),
        format!("+{}-{SPAN}-1", &ID[1..]),
        format!("{ID}-{SPAN}{SPAN}-1"),
        format!("{ID}{ID}{ID}-{SPAN}-1"),
        format!(" {ID}-{SPAN}-1"),
    ] {
        assert_eq!(trace_of(&[("b3", &text)]), None, "{text}");
        let instead = trace_of(&[("b3", &text), ("X-B3-TraceId", ID), ("X-B3-SpanId", SPAN)]);
        assert_eq!(instead, Some(trace(0)), "{text}");
    }
    assert_eq!(trace_of(&[("x-b3-traceid", ID)]), None);
    assert_eq!(trace_of(&[("x-b3-spanid", SPAN), ("x-b3-traceid", "junk")]), None);
}

#[test]
fn several_headers_hold_a_trace() {
    let ids = [("x-b3-traceid", ID), ("X-B3-SPANID", SPAN)];
    for (more, want) in [
        (&[][..], trace(0)),
        (&[("x-b3-sampled", "1")], trace(6)),
        (&[("x-b3-sampled", "false")], trace(2)),
        (&[("x-b3-sampled", "yes")], trace(0)),
        (&[("x-b3-flags", "1")], trace(1)),
        (&[("x-b3-flags", "3")], trace(0)),
        (&[("x-b3-parentspanid", "junk")], trace(0)),
        (&[("x-b3-parentspanid", PARENT)], TraceContext { parent_id: 0x0020_0000_0000_0001, ..trace(0) }),
        (&[("x-b3-spanid", "junk")], trace(0)),
    ] {
        assert_eq!(trace_of(&[&ids, more].concat()), Some(want), "{more:?}");
    }
    let decided = TraceContext { flags: 6, ..TraceContext::default() };
    assert_eq!(trace_of(&[("x-b3-sampled", "1")]), Some(decided));
    let single = format!("{PARENT}-{SPAN}-0");
    let first = trace_of(&[("b3", &single), ids[0], ids[1]]).unwrap();
    assert_eq!((first.trace_id, first.flags), (0x0020_0000_0000_0001, 2), "b3 comes first");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_two_numbers() {
    let now = Instant::now();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let text = format!("1 {}", wall + 5_000_000_000);
    let deadline = |text: &str| from_info(&info(&[("L5d-Ctx-Deadline", text)]), now).unwrap().2.deadline;
    let read = deadline(&text).unwrap();
    assert!(read.instant() - now > Duration::from_secs(4));
    assert_eq!(read.to_wire().0, 1);
    assert_eq!(deadline("-1 9223372036854775807").unwrap().to_wire(), (-1, i64::MAX));
    for bad in ["", " ", "1", "1 ", " 1", "1  2", "1 2 3", "1 +2", "1 2.5", "1 9223372036854775808", "a b"] {
        assert_eq!(deadline(bad), None, "{bad:?}");
    }
}

#[test]
fn names_are_read_or_fail_the_call() {
    let read = |pairs: &[(&str, &str)]| from_info(&info(pairs), Instant::now());
    let (dst, dtab, _) =
        read(&[("l5d-dst", "/s/users"), ("L5D-DTAB", "/a => /b | /c ; /d/* => /e")]).unwrap();
    assert_eq!(dst.as_str(), "/s/users");
    assert_eq!(Dtab::from_pairs(&dtab).unwrap(), Dtab::parse("/a => /b | /c ; /d/* => /e").unwrap());
    let (dst, dtab, _) = read(&[("l5d-dst", ""), ("l5d-dtab", "")]).unwrap();
    assert!(dst.is_empty() && dtab.is_empty());
    for bad in [("l5d-dst", "s/users"), ("l5d-dtab", "/a => "), ("l5d-dtab", "\u{7f}")] {
        let failure = read(&[bad]).unwrap_err();
        assert_eq!(failure.why(), Why::BadRequest);
        assert!(failure.text().contains(bad.0), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_is_written_again() {
    let now = Instant::now();
    let sent = info(&[
        ("l5d-dst", "/s/users"),
        ("l5d-dtab", "/a=>/b;/d/*=>/e"),
        ("l5d-ctx-deadline", "5 9223372036854775806"),
        ("client-id", "web"),
        ("x-b3-traceid", &format!("{HIGH}{ID}")),
        ("x-b3-spanid", SPAN),
        ("x-b3-parentspanid", PARENT),
        ("x-b3-sampled", "1"),
        ("x-tenant", "7"),
        ("X-Tenant", ""),
    ]);
    let (dst, dtab, ctx) = from_info(&sent, now).unwrap();
    assert_eq!(ctx.rest.len(), 1);
    let mut request = Request::new(Payload::opaque(Bytes::new()), now, None);
    (request.dst, request.dtab, request.ctx) = (dst, dtab, ctx);
    assert_eq!(to_info(&request), sent);
    let debug = TraceContext { flags: 1, ..TraceContext::default() };
    request.ctx = Context { trace: Some(debug), ..Context::default() };
    assert_eq!(to_info(&request)[2..], info(&[("x-b3-flags", "1")]));
}

#[test]
fn an_application_cannot_speak_in_our_name() {
    let mut headers = Headers::default();
    for key in ["L5D-Dst", "b3", "X-B3-Sampled", "Client-Id", "fine"] {
        headers.put(key.as_bytes(), b"1");
    }
    let mut request = Request::new(Payload::opaque(Bytes::new()), Instant::now(), None);
    request.ctx.rest.extend(headers.context(context::REQUEST_HEADERS));
    assert_eq!(to_info(&request), info(&[("fine", "1")]));
}

#[test]
fn replies_carry_application_headers() {
    let sent = info(&[("a", "1"), ("a", "2"), ("client-id", "theirs")]);
    let contexts = reply_from_info(&sent);
    assert_eq!(contexts.len(), 1);
    assert_eq!(reply_to_info(&contexts), sent);
    assert!(reply_from_info(&[]).is_empty());
    let broken = [(Bytes::from_static(context::RESPONSE_HEADERS), Bytes::from_static(b"\0\x09a"))];
    assert!(reply_to_info(&broken).is_empty());
}

#[test]
fn application_headers_are_bounded() {
    let long = "x".repeat(20_000);
    let contexts = reply_from_info(&info(&[("a", &long), ("b", &long), ("c", "1")]));
    assert_eq!(reply_to_info(&contexts), info(&[("a", &long)]), "those behind the limit are left out");
    let many: Vec<_> = (0..theader::MAX_INFO + 9).map(|n| (n.to_string(), "1")).collect();
    let many = info(&many.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>());
    assert_eq!(reply_to_info(&reply_from_info(&many)), many[..theader::MAX_INFO]);
    let huge = "x".repeat(70_000);
    assert!(reply_from_info(&info(&[("a", &huge)])).is_empty());
    let (_, _, ctx) = from_info(&info(&[("client-id", &huge)]), Instant::now()).unwrap();
    assert_eq!(ctx.client_id, None);
}

#[test]
fn delegations_of_all_forms_are_one_table() {
    let read = |pairs: &[(&str, &str)]| from_info(&info(pairs), Instant::now());
    let all = [
        ("L5D-dtab", "/a => /user"),
        ("x-dtab-01-a", "L2I="),
        ("X-Dtab-00-A", "L2E="),
        ("dtab-local", "/a => /local, /c => /d"),
        ("x-dtab-00-b", "L2I="),
        ("X-DTAB-01-B", "L2M="),
        ("l5d-ctx-dtab", "/a => /carried"),
        ("l5d-dtab", "/a => /user/too"),
    ];
    let (_, dtab, ctx) = read(&all).unwrap();
    let table = "/a=>/b;/b=>/c;/a=>/local;/c=>/d;/a=>/carried;/a=>/user;/a=>/user/too";
    assert_eq!(Dtab::from_pairs(&dtab).unwrap().to_string(), table);
    assert!(ctx.rest.is_empty(), "none of them is an application header");
    for bad in [
        &[("x-dtab-00-a", "L2E=")][..],
        &[("x-dtab-00-a", "L2E="), ("x-dtab-00-b", "?")],
        &[("x-dtab-00-a", "L2E="), ("x-dtab-00-b", "L2IgOyAvYyA9PiAvZA==")],
        &[("dtab-local", "/a => /b, bad")],
        &[("l5d-ctx-dtab", "/a => /b, /c => /d")],
    ] {
        assert!(read(bad).is_err(), "{bad:?}");
    }
    let (_, dtab, ctx) = read(&[("x-dtab-0-a", "L2E="), ("x-dtab-00-c", "x"), ("x-dtab", "y")]).unwrap();
    assert!(dtab.is_empty() && ctx.rest.len() == 1);
}
