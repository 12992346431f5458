//! The matrix as a page.

use crate::forms::{Inbound, Outbound};
use crate::rule::Outcome;

/// Rows are callers, columns are services; a cell is `ok`, or the letters of what failed.
pub fn table(inbound: &[Inbound], outbound: &[Outbound], failed: &[Vec<String>]) -> String {
    let first = inbound.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let width = failed.iter().flatten().map(String::len).max().unwrap_or(0).max(4) + 1;
    let mut page = format!("{:first$}", "");
    for group in outbound.chunk_by(|one, next| one.name == next.name) {
        page += &format!(" {:1$}", group.first().map_or("", |column| column.name), group.len() * width - 1);
    }
    page += &format!("\n{:first$}", "");
    for column in outbound {
        page += &format!(" {:1$}", column.short(), width - 1);
    }
    for (row, inbound) in inbound.iter().enumerate() {
        page += &format!("\n{:first$}", inbound.name);
        for column in failed {
            let failed = column.get(row).map_or("-", String::as_str);
            page += &format!(" {:1$}", if failed.is_empty() { "ok" } else { failed }, width - 1);
        }
    }
    page += "\n";
    for outcome in Outcome::ALL {
        page += &format!("\n{} {outcome:?}", outcome.letter());
    }
    page
}
