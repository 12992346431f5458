//! Apache Thrift and Finagle on different sides: every method, binary and compact, each reply compared.

use crate::world::{COMPACT, FINAGLE, GO, PYTHON, THRIFT, THRIFTMUX, gateway};
use muxgate_testkit::apache::Apache;
use std::net::SocketAddr;

fn call(peers: &[&Apache], server: SocketAddr, upstream: &str, protocol: &str) {
    let gateway = gateway(server, upstream, &[]);
    for peer in peers {
        peer.call(gateway.addr, &["--protocol", protocol, "--n", "10"]).all_ok();
    }
}

#[test]
fn apache_binary_calls_finagle_thriftmux() {
    call(&[&PYTHON, &GO], THRIFTMUX.addr, "thriftmux", "binary");
}

#[test]
fn apache_compact_calls_finagle_thriftmux() {
    call(&[&PYTHON, &GO], COMPACT.addr, "thriftmux", "compact");
}

#[test]
fn apache_binary_calls_finagle_thrift() {
    call(&[&PYTHON, &GO], THRIFT.addr, "framed", "binary");
}

#[test]
fn finagle_calls_apache_servers() {
    for (peer, codec) in [(&*PYTHON, "binary"), (&*PYTHON, "compact"), (&*GO, "binary"), (&*GO, "compact")] {
        let server = peer.server("apache", &["--protocol", codec]);
        let gateway = gateway(server.addr, "framed", &[]);
        let protos: &[&str] = if codec == "binary" { &["thriftmux", "thrift"] } else { &["mux"] };
        for proto in protos {
            let args = [
                "--proto",
                proto,
                "--codec",
                codec,
                "--method",
                "everything",
                "--n",
                "20",
                "--concurrency",
                "4",
            ];
            FINAGLE.call(gateway.addr, &args).all_ok();
        }
        assert_eq!(server.log().iter().filter(|e| e["event"] == "done").count(), 20 * protos.len());
    }
}

#[test]
fn exceptions_of_apache_servers_reach_finagle() {
    let server = GO.server("apache", &[]);
    let gateway = gateway(server.addr, "framed", &[]);
    let call =
        |proto, method| FINAGLE.call(gateway.addr, &["--proto", proto, "--method", method, "--n", "3"]);
    call("thriftmux", "fail").all_raised("EchoError");
    call("thrift", "unknown").all_raised("TApplicationException(1)");
}
