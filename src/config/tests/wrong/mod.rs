//! Files with mistakes, and every word of what is said about them. Each message was judged by one question: does
//! somebody who has never seen the program know what to write now?

mod dns;
mod edges;
mod form;
mod listeners;
mod names;
mod overlay;
mod overrides;
mod rules;
mod store;
mod tls;
mod zookeeper;

use crate::config::parse;

/// A file, and the report about it.
struct Case {
    about: &'static str,
    file: &'static str,
    said: &'static str,
}

#[test]
fn every_mistake_is_explained() {
    for Case { about, file, said } in [
        form::CASES,
        listeners::CASES,
        names::CASES,
        rules::CASES,
        edges::CASES,
        tls::CASES,
        overlay::CASES,
        overrides::CASES,
        store::CASES,
        zookeeper::CASES,
        dns::CASES,
    ]
    .into_iter()
    .flatten()
    {
        let report = match parse("gate.yaml", file) {
            Ok(plan) => format!("taken: {plan:?}"),
            Err(report) => report.to_string(),
        };
        assert_eq!(report.trim_end(), said.trim(), "{about}\n{report}");
    }
}

#[test]
fn the_place_of_the_first_mistake_is_told_apart() {
    let found = parse("-", "threads: 1\ndtab: ''\nlisteners: [{prot: 1}]\n")
        .map_err(|report| (report.count(), report.line(), report.column()));
    assert_eq!(found.err(), Some((1, 3, 14)));
}
