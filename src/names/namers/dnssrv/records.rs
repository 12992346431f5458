//! From records to members.

use crate::names::namers::dns::Srv;
use crate::names::source::Member;
use std::collections::BTreeMap;

/// The share that all records of weight 0 get together, if others have a weight: RFC 2782 wants it to be very small. Its own
/// procedure would give one of them half of the calls beside a record of weight 1.
const SHARE_OF_ZERO: f64 = 0.01;

/// The records in groups, the lowest priority first. The target `.` and port 0 say that there is nothing.
pub(super) fn by_priority(records: Vec<Srv>) -> Vec<Vec<Srv>> {
    let mut groups = BTreeMap::<u16, Vec<Srv>>::new();
    for record in records.into_iter().filter(|record| !record.target.is_empty() && record.port > 0) {
        groups.entry(record.priority).or_default().push(record);
    }
    groups.into_values().collect()
}

/// The members of a group, in an order that does not depend on the server's. If no record has a weight, all weigh the same.
pub(super) fn members(group: &[Srv]) -> Vec<Member> {
    let sum: f64 = group.iter().map(|record| f64::from(record.weight)).sum();
    let zeros = group.iter().filter(|record| record.weight == 0).count();
    let of_zero = match sum > 0.0 {
        true => sum * SHARE_OF_ZERO / (1.0 - SHARE_OF_ZERO) / zeros.max(1) as f64,
        false => 1.0,
    };
    let weight = |record: &Srv| if record.weight == 0 { of_zero } else { f64::from(record.weight) };
    let member =
        |record: &Srv| Member { weight: weight(record), ..Member::new(record.target.as_str(), record.port) };
    let mut members: Vec<_> = group.iter().map(member).collect();
    members.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)).then(a.weight.total_cmp(&b.weight)));
    members.dedup();
    members
}
