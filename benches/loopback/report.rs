//! Medians, their ratio to the forwarder's in the same run, and the targets.

use super::cases::{Case, Sample, Way};
use super::idle::Idle;
use super::peers::Proto;

/// Most processor time of a call, framed to framed, over the forwarder's.
const FRAMED_CPU: f64 = 1.4;
/// Processor time of a call, framed to ThriftMux, must be below this share of the forwarder's.
const MUX_CPU: f64 = 0.9;
/// Least calls a second, ThriftMux to ThriftMux with [`MANY`] in flight on one connection, over those that one framed
/// connection makes through the forwarder.
const MUX_RATE: f64 = 4.0;
/// See [`MUX_RATE`].
const MANY: usize = 64;
/// Most memory of a gateway that has just started, in KiB.
const START: u64 = 20 << 10;
/// Most memory of an idle connection, in KiB.
const EACH: f64 = 10.0;

/// All samples of one way in one case.
pub struct Row {
    /// The case.
    pub case: Case,
    /// The way.
    pub way: Way,
    /// One a round.
    pub samples: Vec<Sample>,
}

impl Row {
    fn rate(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.rate).collect())
    }

    fn cpu(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.cpu).collect())
    }

    fn name(&self) -> &'static str {
        match (self.way, self.case.proto) {
            (Way::Direct, _) => "direct",
            (Way::Forwarder, _) => "forwarder",
            (Way::ToFramed, Proto::Framed) => "gateway, framed -> framed",
            (Way::ToFramed, Proto::Mux) => "gateway, thriftmux -> framed",
            (Way::ToMux, Proto::Framed) => "gateway, framed -> thriftmux",
            (Way::ToMux, Proto::Mux) => "gateway, thriftmux -> thriftmux",
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

/// Prints both tables.
pub fn print(rows: &[Row], idle: &[Idle], peaks: &[(&str, u64)]) {
    println!(
        "{:<38}{:<33}{:>10}{:>8}{:>12}{:>8}  target",
        "medians", "", "calls/s", "ratio", "CPU us/call", "ratio"
    );
    let mut last = None;
    for row in rows {
        let case = if last == Some(row.case) { String::new() } else { row.case.to_string() };
        last = Some(row.case);
        let forwarder = find(rows, row.case, Way::Forwarder);
        let rate = format!("{:.2}", row.rate() / forwarder.map_or(f64::NAN, Row::rate));
        let (cpu, cpu_ratio) = match row.way {
            Way::Direct => ("-".to_owned(), "-".to_owned()),
            _ => {
                let ratio = row.cpu() / forwarder.map_or(f64::NAN, Row::cpu);
                (format!("{:.2}", row.cpu()), format!("{ratio:.2}"))
            }
        };
        let (name, target) = (row.name(), target(rows, row));
        let line =
            format!("{case:<38}{name:<33}{:>10.0}{rate:>8}{cpu:>12}{cpu_ratio:>8}  {target}", row.rate());
        println!("{}", line.trim_end());
    }
    println!(
        "\n{:<36}{:>12}{:>16}{:>14}  target",
        "memory, KiB", "at start", "idle connection", "connections"
    );
    for idle in idle {
        let target = match idle.name.starts_with("gateway") {
            true => format!(
                "start < {START}: {}, each < {EACH}: {}",
                met(idle.start < START),
                met(idle.each < EACH)
            ),
            false => String::new(),
        };
        let Idle { name, start, each, connections, .. } = idle;
        println!("{}", format!("{name:<36}{start:>12}{each:>16.1}{connections:>14}  {target}").trim_end());
    }
    println!("\npeak memory after all cases, KiB");
    for (name, peak) in peaks {
        println!("{name:<36}{peak:>12}");
    }
}

fn find(rows: &[Row], case: Case, way: Way) -> Option<&Row> {
    rows.iter().find(|row| row.case == case && row.way == way)
}

/// The target of a row and whether it is met; empty for rows without one.
fn target(rows: &[Row], row: &Row) -> String {
    let cpu = || row.cpu() / find(rows, row.case, Way::Forwarder).map_or(f64::NAN, Row::cpu);
    match (row.way, row.case.proto) {
        (Way::ToFramed, Proto::Framed) => {
            format!("CPU ratio <= {FRAMED_CPU}: {}", met(cpu() <= FRAMED_CPU))
        }
        (Way::ToMux, Proto::Framed) => format!("CPU ratio < {MUX_CPU}: {}", met(cpu() < MUX_CPU)),
        (Way::ToMux, Proto::Mux) if row.case.in_flight == MANY => {
            let one = Case { proto: Proto::Framed, in_flight: 1, ..row.case };
            let ratio = row.rate() / find(rows, one, Way::Forwarder).map_or(f64::NAN, Row::rate);
            let verdict = met(ratio >= MUX_RATE);
            format!("calls/s >= {MUX_RATE} x forwarder, 1 framed connection: {ratio:.2}, {verdict}")
        }
        _ => String::new(),
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT MET" }
}
