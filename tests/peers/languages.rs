//! Programs in other languages on both sides of the gateway, in each form that their libraries have: every call of
//! `tests/peers/programs/README.md`, every value compared at both ends.

use crate::world::{COMPACT, FINAGLE, GO, THRIFTMUX, gateway, language};
use muxgate_testkit::finagle;
use muxgate_testkit::language::{ALL, FORMS, FRAMED, FRAMED_COMPACT, Form, Language, Name, Report, Server};
use std::fmt::Write;
use std::net::SocketAddr;

/// Calls of the service `Echo`, and with those of `Peer`.
const ECHO: usize = 18;
const PEER: usize = 21;

/// One line of the table.
struct Row {
    who: String,
    form: Form,
    /// What was found, by column; an error is why it is wrong.
    cells: Vec<Result<String, String>>,
}

fn judged(report: Report, all: usize) -> Result<String, String> {
    match report.failures[..] {
        [] if report.ok == all => Ok(format!("{all} of {all}")),
        _ => Err(format!("{} of {all}: {}", report.ok, report.failures.join("; "))),
    }
}

fn server(of: Form) -> &'static finagle::Server {
    if of.protocol == "compact" { &COMPACT } else { &THRIFTMUX }
}

/// The language calls; what it calls is Finagle with ThriftMux, and the Go peer.
fn calls(language: &Language, form: Form, go: SocketAddr) -> Row {
    let to_finagle = gateway(server(form).addr, "thriftmux", &[]);
    let to_go = gateway(go, "framed", &[]);
    let cells = vec![
        judged(language.call(form, to_finagle.addr, "echo"), ECHO),
        judged(language.call(form, to_go.addr, "peer"), PEER),
    ];
    Row { who: format!("{:?} calls", language.name), form, cells }
}

/// The language serves; the Go peer calls it, and Finagle with ThriftMux.
fn serves(language: &Language, form: Form) -> Row {
    let server = language.server(form, &[]);
    let gateway = gateway(server.addr, form.transport, &[]);
    let from = if form.protocol == "compact" { FRAMED_COMPACT } else { FRAMED };
    let args = ["--codec", form.protocol, "--method", "everything", "--n", "20", "--concurrency", "4"];
    let finagle = FINAGLE.call(gateway.addr, &args);
    let finagle = if finagle.ok() == 20 { Ok("20 of 20".to_owned()) } else { Err(finagle.0.to_string()) };
    let cells = vec![judged(GO.call(from, gateway.addr, "peer"), PEER), finagle];
    Row { who: format!("{:?} serves", language.name), form, cells }
}

fn rows_of(name: Name, go: &[Server]) -> Vec<Row> {
    let language = language(name);
    let forms = FORMS.iter().filter(|form| Language::speaks(name, **form));
    let row = |form: &Form| {
        let go = &go[usize::from(form.protocol == "compact")];
        [calls(&language, *form, go.addr), serves(&language, *form)]
    };
    forms.flat_map(row).collect()
}

fn table(title: &str, columns: [&str; 2], rows: &[&Row]) -> String {
    let mut out =
        format!("| {title:<16} | form            | {} | {} |\n|---|---|---|---|\n", columns[0], columns[1]);
    for row in rows {
        let cell = |at: usize| row.cells[at].as_deref().unwrap_or("WRONG");
        let form = row.form.to_string();
        let _ = writeln!(out, "| {:<16} | {form:<15} | {} | {} |", row.who, cell(0), cell(1));
    }
    out
}

#[test]
fn languages_call_and_serve_in_every_form_they_have() {
    let go = [GO.server(FRAMED, &[]), GO.server(FRAMED_COMPACT, &[])];
    let rows: Vec<Row> = std::thread::scope(|scope| {
        let work = ALL.map(|name| {
            scope.spawn({
                let go = &go;
                move || rows_of(name, go)
            })
        });
        work.into_iter().flat_map(|rows| rows.join().expect("a language's thread panicked")).collect()
    });
    let side = |what: &str| rows.iter().filter(|row| row.who.ends_with(what)).collect::<Vec<_>>();
    println!("{}", table("caller", ["to Finagle ThriftMux", "to Go framed"], &side("calls")));
    println!("{}", table("service", ["from Go framed", "from Finagle ThriftMux"], &side("serves")));
    let wrong = |row: &Row| {
        let whys = row.cells.iter().filter_map(|cell| cell.as_ref().err());
        whys.map(|why| format!("{} {}: {why}", row.who, row.form)).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = rows.iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
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
