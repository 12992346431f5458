//! What a checked file would do, in words.

use crate::config::Plan;
use crate::config::plan::{Discovery, Listener};
use std::fmt::Write;

/// The summary that `muxgate check` prints.
pub(super) fn summary(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    write(plan, &mut out).map_or_else(|_| String::new(), |()| out)
}

fn write(plan: &Plan, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{}: ok", plan.name())?;
    for Listener { accept, address, admit } in plan.listeners() {
        let named = address.prefix.concat(&address.default);
        write!(
            out,
            "  listens on {} ({}); calls without a destination are named {named}",
            accept.address, accept.name
        )?;
        if address.method_in_dst {
            write!(out, "/METHOD")?;
        }
        match admit.max_concurrent {
            Some(most) => writeln!(out, "; at most {most} calls at once")?,
            None => writeln!(out)?,
        }
    }
    for namer in plan.namers() {
        let Discovery::Fs { root } = &namer.discovery;
        let missing = if root.is_dir() { "" } else { " (not there yet)" };
        writeln!(out, "  names below /#{} are files in {}{missing}", namer.prefix, root.display())?;
    }
    for entry in plan.dtab().entries() {
        writeln!(out, "  {} => {}", entry.prefix, entry.dst)?;
    }
    match plan.admin() {
        Some(admin) => writeln!(out, "  admin pages on http://{}/", admin.address)?,
        None => writeln!(out, "  no admin pages")?,
    }
    if let Some(zipkin) = plan.zipkin() {
        writeln!(out, "  spans to {} as {}, share {}", zipkin.url, zipkin.service_name, zipkin.sample_rate)?;
    }
    writeln!(out, "  {} threads, {} ms to finish calls at the end", plan.threads(), plan.grace().as_millis())
}
