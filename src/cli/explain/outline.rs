//! A delegation tree as text: a line for each node, indented, and what the ends lead to. It works on the JSON, which is all
//! that another process gives.

use serde_json::Value;
use std::fmt::Write;

/// Addresses of one replica set that are spelled out.
const MAX_ADDRESSES: usize = 20;

/// The tree, a last line that says what is used, and whether that has an address.
pub(super) fn text(tree: &Value) -> (String, bool) {
    let mut out = String::new();
    node(tree, "", 0, "", &mut out);
    let mut used = Vec::new();
    collect(tree, &mut used);
    let leads = used.iter().any(|node| !addresses(node).is_empty());
    let ends: Vec<_> = used.iter().map(|node| end(node)).collect();
    let lead = if leads { "leads to " } else { "leads nowhere: " };
    let ends = if ends.is_empty() { "no such name".to_owned() } else { ends.join(", and ") };
    let _ = writeln!(out, "{lead}{ends}");
    (plain(&out), leads)
}

/// Text of others that a terminal shows as it is.
pub(super) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// `above`: the entry that the lines before speak of; it is not said again.
fn node<'a>(tree: &'a Value, lead: &str, depth: usize, above: &'a str, out: &mut String) -> &'a str {
    let entry = word(tree, "dentry");
    let by = if entry.is_empty() || entry == above { String::new() } else { format!(" by {entry}") };
    let mut above = if entry.is_empty() { above } else { entry };
    let what = match word(tree, "type") {
        "delegate" => String::new(),
        "alt" => ": the first of these that is not negative".to_owned(),
        "union" => ": shared by".to_owned(),
        _ => format!(": {}", end(tree)),
    };
    let mark = if tree["used"] == true { "   <- used" } else { "" };
    let indent = "  ".repeat(depth);
    // Writing to a text cannot fail.
    let _ = writeln!(out, "{indent}{lead}{}{by}{what}{mark}", word(tree, "path"));
    for (at, child) in items(&tree["alt"]).iter().enumerate() {
        above = node(child, &format!("{}. ", at + 1), depth + 1, above, out);
    }
    branches(tree, depth + 1, above, out);
    if !tree["delegate"].is_null() {
        node(&tree["delegate"], "", depth + 1, above, out);
    }
    members(tree, depth + 1, out);
    if entry.is_empty() { above } else { entry }
}

/// Branches with their weights; those that are used with their share of the calls.
fn branches<'a>(union: &'a Value, depth: usize, mut above: &'a str, out: &mut String) {
    let branches = items(&union["union"]);
    let weight = |branch: &Value| branch["weight"].as_f64().unwrap_or(1.0);
    let is_used = |branch: &Value| {
        let mut used = Vec::new();
        collect(&branch["tree"], &mut used);
        !used.is_empty()
    };
    let used: Vec<_> = branches.iter().map(is_used).collect();
    let living = branches.iter().zip(&used).filter(|(_, used)| **used);
    let (sum, count) = living.fold((0.0, 0), |(sum, count), (branch, _)| (sum + weight(branch), count + 1));
    for (branch, used) in branches.iter().zip(&used) {
        let share = match (used, sum > 0.0) {
            (false, _) => String::new(),
            (true, true) => format!(", {:.1} %", 100.0 * weight(branch) / sum),
            (true, false) => format!(", {:.1} %", 100.0 / f64::from(count)),
        };
        let lead = format!("[weight {}{share}] ", weight(branch));
        above = node(&branch["tree"], &lead, depth, above, out);
    }
}

fn members(leaf: &Value, depth: usize, out: &mut String) {
    let all = addresses(leaf);
    let indent = "  ".repeat(depth);
    for address in all.iter().take(MAX_ADDRESSES) {
        let ip = word(address, "ip");
        let ip = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        let weight = match address["meta"]["endpoint_addr_weight"].as_f64() {
            Some(weight) if weight != 1.0 => format!(", weight {weight}"),
            _ => String::new(),
        };
        let _ = writeln!(out, "{indent}{ip}:{}{weight}", address["port"]);
    }
    if all.len() > MAX_ADDRESSES {
        let _ = writeln!(out, "{indent}and {} more", all.len() - MAX_ADDRESSES);
    }
}

/// What an end of the tree says.
fn end(node: &Value) -> String {
    match word(node, "type") {
        "neg" => "no such name".to_owned(),
        "fail" => "closed by !".to_owned(),
        "empty" => "$, a name without members".to_owned(),
        "pending" => "not known yet".to_owned(),
        "exception" => format!("failed: {}", word(node, "message")),
        "leaf" => {
            let bound = &node["bound"];
            let residual = match word(bound, "path") {
                "/" | "" => String::new(),
                residual => format!(" + {residual}"),
            };
            format!("{}{residual}, {}{}", word(bound, "id"), known(&bound["addr"]), source(&bound["source"]))
        }
        other => format!("a node of type {other}"),
    }
}

fn known(addr: &Value) -> String {
    match (word(addr, "type"), items(&addr["addrs"]).len()) {
        ("bound", 0) => "no addresses".to_owned(),
        ("bound", 1) => "1 address".to_owned(),
        ("bound", n) => format!("{n} addresses"),
        ("neg", _) => "no such host".to_owned(),
        ("failed", _) => format!("its addresses cannot be looked up: {}", word(addr, "cause")),
        _ => "addresses not known yet".to_owned(),
    }
}

/// How old the answer is, and what is wrong with its source, if somebody watches one.
fn source(source: &Value) -> String {
    let mut out = String::new();
    let seconds = |key: &str| source[key].as_u64().map(|ms| format!("{:.1} s", ms as f64 / 1000.0));
    if let Some(age) = seconds("ageMs") {
        let _ = write!(out, ", heard {age} ago");
    }
    if source["fromDisk"] == true {
        out.push_str(", kept from an earlier run");
    }
    if let Some(outage) = seconds("outageMs") {
        let _ = write!(out, ", its source is away for {outage}: {}", word(source, "error"));
    }
    if let Some(doubted) = seconds("doubtedMs") {
        let _ = write!(out, ", said to be gone since {doubted} and doubted");
    }
    out
}

/// The ends that decide.
fn collect<'a>(node: &'a Value, used: &mut Vec<&'a Value>) {
    if node["used"] == true {
        used.push(node);
    }
    items(&node["alt"]).iter().for_each(|child| collect(child, used));
    items(&node["union"]).iter().for_each(|branch| collect(&branch["tree"], used));
    if !node["delegate"].is_null() {
        collect(&node["delegate"], used);
    }
}

fn addresses(leaf: &Value) -> &[Value] {
    items(&leaf["bound"]["addr"]["addrs"])
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
