//! Finagle on both sides, in every protocol: what is answered is right, and an exception stays the exception it was.

use crate::world::{COMPACT, FINAGLE, MUX, THRIFT, THRIFTMUX, gateway};
use muxgate_testkit::Gateway;
use muxgate_testkit::finagle::Summary;

const PROTOCOLS: [&str; 4] = ["thriftmux", "mux", "ttwitter", "thrift"];

fn call(gateway: &Gateway, proto: &str, more: &[&str]) -> Summary {
    let mut args = vec!["--proto", proto, "--no-retries"];
    args.extend(more);
    FINAGLE.call(gateway.addr, &args)
}

/// All types, some concurrency; each reply is compared by the client.
fn everything(gateway: &Gateway) {
    for proto in PROTOCOLS {
        let calls = call(gateway, proto, &["--method", "everything", "--n", "60", "--concurrency", "6"]);
        calls.all_ok();
        assert_eq!(calls.n(), 60);
    }
}

#[test]
fn every_protocol_to_thriftmux() {
    everything(&gateway(THRIFTMUX.addr, "thriftmux", &[]));
}

#[test]
fn every_protocol_to_mux() {
    everything(&gateway(MUX.addr, "thriftmux", &[]));
}

#[test]
fn every_protocol_to_framed_thrift() {
    everything(&gateway(THRIFT.addr, "framed", &[]));
}

#[test]
fn exceptions_stay_what_they_were() {
    let to_mux = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let to_framed = gateway(THRIFT.addr, "framed", &[]);
    for (gateway, proto) in [
        (&to_mux, "thriftmux"),
        (&to_mux, "mux"),
        (&to_mux, "ttwitter"),
        (&to_mux, "thrift"),
        (&to_framed, "thriftmux"),
    ] {
        call(gateway, proto, &["--method", "fail", "--n", "5"]).all_raised("EchoError");
    }
    call(&to_mux, "thrift", &["--method", "unknown", "--n", "3"]).all_raised("TApplicationException(1)");
    call(&to_framed, "thriftmux", &["--method", "unknown", "--n", "3"])
        .all_raised("TApplicationException(1)");
}

#[test]
fn large_bodies_pass_whole_and_in_fragments() {
    let to_mux = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let big = ["--method", "big", "--size", "300000", "--n", "10", "--concurrency", "5"];
    for more in [&["--max-frame", "700"][..], &[]] {
        call(&to_mux, "thriftmux", &[&big[..], more].concat()).all_ok();
    }
    call(&to_mux, "thrift", &big).all_ok();
    let to_framed = gateway(THRIFT.addr, "framed", &[]);
    call(&to_framed, "thriftmux", &big).all_ok();
}

#[test]
fn one_way_calls_are_not_answered_on_framed_thrift_and_are_on_mux() {
    let to_mux = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let to_framed = gateway(THRIFT.addr, "framed", &[]);
    for (gateway, proto) in
        [(&to_mux, "thrift"), (&to_mux, "mux"), (&to_framed, "thrift"), (&to_framed, "mux")]
    {
        call(gateway, proto, &["--method", "oneway", "--n", "5"]).all_ok();
    }
}

#[test]
fn the_compact_protocol_passes() {
    let gateway = gateway(COMPACT.addr, "thriftmux", &[]);
    for proto in ["thriftmux", "mux", "thrift"] {
        call(&gateway, proto, &["--codec", "compact", "--method", "everything", "--n", "10"]).all_ok();
    }
}
