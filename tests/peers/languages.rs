//! Programs in other languages on both sides of the gateway, in each form that their libraries have: every call of
//! `tests/peers/programs/README.md`, every value compared at both ends.

use crate::world::{COMPACT, FINAGLE, GO, PYTHON, THRIFTMUX, gateway, inet, language, program};
use muxgate_testkit::Gateway;
use muxgate_testkit::finagle::Summary;
use muxgate_testkit::language::{ALL, FORMS, FRAMED, FRAMED_COMPACT, Form, Language, Name, Report, Server};
use std::fmt::Write;
use std::net::SocketAddr;
use tempfile::TempDir;

/// Calls of the service `Echo`, and with those of `Peer`.
const ECHO: usize = 18;
const PEER: usize = 21;
/// Calls of Finagle's client.
const FINAGLE_CALLS: u64 = 20;

/// What a cell of the table says; an error says what is wrong.
type Cell = Result<String, String>;

/// One line of a table.
struct Row {
    who: String,
    form: Form,
    cells: [Cell; 3],
}

/// A gateway in front of one service, with a listener for each kind of caller.
struct Front {
    gateway: Gateway,
    _file: TempDir,
}

impl Front {
    fn new(to: SocketAddr, upstream: &str, protocol: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("gate.yaml");
        let text = format!(
            "dtab: /svc => {}\nlisteners:\n- {{name: plain, ip: 127.0.0.1, port: 0}}\n\
             - {{name: go, ip: 127.0.0.1, port: 0, onewayMethods: [fire]}}\n\
             clients: [{{protocol: {upstream}, thriftProtocol: {protocol}}}]\nadmin: {{port: 0}}\n",
            inet(to)
        );
        std::fs::write(&file, text).expect("the temporary folder can be written to");
        Self { gateway: Gateway::of_file(&program(), &file), _file: folder }
    }

    /// Where a language calls. Apache's Go library sends oneway methods as ordinary calls.
    fn address(&self, of: Name) -> SocketAddr {
        self.gateway.listeners[if of == Name::Go { "go" } else { "plain" }]
    }
}

fn other(protocol: &str) -> &'static str {
    if protocol == "compact" { "binary" } else { "compact" }
}

fn framed(protocol: &str) -> Form {
    if protocol == "compact" { FRAMED_COMPACT } else { FRAMED }
}

fn header(protocol: &'static str) -> Form {
    Form { transport: "header", protocol }
}

/// The services that every language calls, each behind a gateway that speaks what it speaks.
struct Services {
    protocol: &'static str,
    finagle: Front,
    framed: Front,
    header: Front,
    _go: [Server; 2],
}

impl Services {
    fn new(protocol: &'static str) -> Self {
        let finagle = if protocol == "compact" { &COMPACT } else { &THRIFTMUX };
        let go = [GO.server(framed(protocol), &[]), GO.server(header(protocol), &[])];
        Self {
            protocol,
            finagle: Front::new(finagle.addr, "thriftmux", protocol),
            framed: Front::new(go[0].addr, "framed", "same"),
            header: Front::new(go[1].addr, "header", protocol),
            _go: go,
        }
    }
}

fn judged(report: Report, all: usize) -> Cell {
    match report.failures[..] {
        [] if report.ok == all => Ok(format!("{all} of {all}")),
        _ => Err(format!("{} of {all}: {}", report.ok, report.failures.join("; "))),
    }
}

fn judged_finagle(calls: &Summary) -> Cell {
    match calls.ok() {
        FINAGLE_CALLS => Ok(format!("{FINAGLE_CALLS} of {FINAGLE_CALLS}")),
        _ => Err(calls.0.to_string()),
    }
}

fn calls(language: &Language, form: Form, services: &[Services; 2]) -> Row {
    let with =
        |protocol| services.iter().find(|s| s.protocol == protocol).expect("both protocols are served");
    let (same, translated) = (with(form.protocol), with(other(form.protocol)));
    let call = |to: &Front, service| language.call(form, to.address(language.name), service);
    let cells = [
        judged(call(&same.finagle, "echo"), ECHO),
        judged(call(&same.framed, "peer"), PEER),
        judged(call(&translated.header, "peer"), PEER),
    ];
    Row { who: format!("{:?}", language.name), form, cells }
}

fn serves(language: &Language, form: Form) -> Row {
    let server = language.server(form, &[]);
    let front = Front::new(server.addr, form.transport, form.protocol);
    let to = front.address(Name::Python);
    let n = FINAGLE_CALLS.to_string();
    let args = ["--codec", form.protocol, "--method", "everything", "--n", &n, "--concurrency", "4"];
    let cells = [
        judged_finagle(&FINAGLE.call(to, &args)),
        judged(PYTHON.call(framed(form.protocol), to, "peer"), PEER),
        judged(PYTHON.call(header(other(form.protocol)), to, "peer"), PEER),
    ];
    Row { who: format!("{:?}", language.name), form, cells }
}

fn forms_of(name: Name) -> impl Iterator<Item = Form> {
    FORMS.into_iter().filter(move |form| Language::speaks(name, *form))
}

/// Does `work` for each language, all at the same time.
fn rows(work: impl Fn(&Language, Form) -> Row + Sync) -> Vec<Row> {
    let rows_of = |name| {
        let language = language(name);
        forms_of(name).map(|form| work(language, form)).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let rows = ALL.map(|name| scope.spawn(move || rows_of(name)));
        rows.into_iter().flat_map(|rows| rows.join().expect("a language's thread ends well")).collect()
    })
}

/// Prints the table, and asserts that all of it is right.
fn judge(head: [&str; 5], rows: &[Row]) {
    let mut table = format!("| {} |\n|---|---|---|---|---|\n", head.join(" | "));
    let mut wrong = Vec::new();
    for Row { who, form, cells } in rows {
        let words = cells.iter().map(|cell| cell.as_deref().unwrap_or("WRONG")).collect::<Vec<_>>();
        let _ = writeln!(table, "| {who:<9} | {:<16} | {} |", form.to_string(), words.join(" | "));
        let whys =
            cells.iter().zip(&head[2..]).filter_map(|(cell, column)| Some((cell.as_ref().err()?, column)));
        wrong.extend(whys.map(|(why, column)| format!("{who} {form} {column}: {why}")));
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn languages_call_in_every_form_they_have() {
    let services = &["binary", "compact"].map(Services::new);
    let rows = rows(|language, form| calls(language, form, services));
    judge(["caller", "form", "to Finagle ThriftMux", "to Go framed", "to Go header, translated"], &rows);
}

#[test]
fn languages_serve_in_every_form_they_have() {
    let rows = rows(serves);
    let columns = ["from Finagle ThriftMux", "from Python framed", "from Python header, translated"];
    judge(["service", "form", columns[0], columns[1], columns[2]], &rows);
}

#[test]
fn exceptions_of_a_server_in_go_reach_finagle() {
    let server = GO.server(FRAMED, &[]);
    let gateway = gateway(server.addr, "framed", &[]);
    let call =
        |proto, method| FINAGLE.call(gateway.addr, &["--proto", proto, "--method", method, "--n", "3"]);
    call("thriftmux", "fail").all_raised("EchoError");
    call("thrift", "unknown").all_raised("TApplicationException(1)");
}
