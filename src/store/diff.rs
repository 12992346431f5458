//! What became of a table, entry by entry.

use muxgate_wire::name::Dtab;
use serde_json::{Value, json};

/// Pairs of entries that are compared to find the shortest way; beyond that, all that differs is shown as replaced.
const MAX_PAIRS: usize = 4_000_000;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Same(String),
    Gone(String),
    New(String),
}

impl Step {
    /// Nothing, if it is the same.
    pub(super) fn to_json(&self) -> Option<Value> {
        match self {
            Self::Same(_) => None,
            Self::Gone(entry) => Some(json!({ "removed": entry })),
            Self::New(entry) => Some(json!({ "added": entry })),
        }
    }
}

/// The entries of both, in order.
pub(super) fn diff(before: &Dtab, after: &Dtab) -> Vec<Step> {
    let texts = |dtab: &Dtab| dtab.entries().iter().map(ToString::to_string).collect::<Vec<_>>();
    let (before, after) = (texts(before), texts(after));
    let head = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut steps: Vec<_> = before[..head].iter().cloned().map(Step::Same).collect();
    middle(old, new, &mut steps);
    steps.extend(before[before.len() - tail..].iter().cloned().map(Step::Same));
    steps
}

/// Keeps the longest sequence that both have.
fn middle(old: &[String], new: &[String], steps: &mut Vec<Step>) {
    let width = new.len() + 1;
    if old.len() * new.len() > MAX_PAIRS {
        steps.extend(old.iter().cloned().map(Step::Gone));
        steps.extend(new.iter().cloned().map(Step::New));
        return;
    }
    // lengths[a * width + b]: how much old[a..] and new[b..] share.
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            lengths[a * width + b] = match old[a] == new[b] {
                true => lengths[(a + 1) * width + b + 1] + 1,
                false => lengths[(a + 1) * width + b].max(lengths[a * width + b + 1]),
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            steps.push(Step::Same(old[a].clone()));
            (a, b) = (a + 1, b + 1);
        } else if b == new.len()
            || (a < old.len() && lengths[(a + 1) * width + b] >= lengths[a * width + b + 1])
        {
            steps.push(Step::Gone(old[a].clone()));
            a += 1;
        } else {
            steps.push(Step::New(new[b].clone()));
            b += 1;
        }
    }
}

/// A line for each entry: ` ` the same, `-` gone, `+` new.
pub(super) fn text(steps: &[Step]) -> String {
    let line = |step: &Step| match step {
        Step::Same(entry) => format!("  {entry}\n"),
        Step::Gone(entry) => format!("- {entry}\n"),
        Step::New(entry) => format!("+ {entry}\n"),
    };
    steps.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        text(&diff(&Dtab::parse(before).unwrap(), &Dtab::parse(after).unwrap()))
    }

    #[test]
    fn the_shortest_way_is_shown() {
        assert_eq!(shown("", ""), "");
        assert_eq!(shown("/a=>/b", "/a=>/b"), "  /a=>/b\n");
        assert_eq!(shown("", "/a=>/b"), "+ /a=>/b\n");
        assert_eq!(shown("/a=>/b", ""), "- /a=>/b\n");
        let (before, after) = ("/a=>/1;/b=>/2;/c=>/3;/d=>/4", "/a=>/1;/c=>/3;/b=>/2;/d=>/5;/e=>/6");
        assert_eq!(
            shown(before, after),
            "  /a=>/1\n- /b=>/2\n  /c=>/3\n- /d=>/4\n+ /b=>/2\n+ /d=>/5\n+ /e=>/6\n"
        );
        assert_eq!(shown("/a=>/1;/a=>/1", "/a=>/1;/a=>/1;/a=>/1"), "  /a=>/1\n  /a=>/1\n+ /a=>/1\n");
    }

    #[test]
    fn large_tables_are_replaced() {
        let table = |dst: &str| (0..9000).map(|at| format!("/{at}=>/{dst};")).collect::<String>();
        assert_eq!(shown(&table("x"), &table("y")).lines().count(), 18_000);
    }
}
