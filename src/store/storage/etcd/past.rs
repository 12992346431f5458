//! What is kept of a change: a line of JSON, and behind it the table's text as it is.

use super::super::{Past, Write};
use super::version;
use crate::outside::etcd::KeyValue;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct Remark {
    deleted: bool,
    who: String,
    when_ms: u64,
    why: String,
}

/// What is kept of a write.
pub(super) fn written(write: &Write) -> Vec<u8> {
    let Write { dtab, who, when_ms, why, .. } = write;
    let remark = Remark { deleted: dtab.is_none(), who: who.clone(), when_ms: *when_ms, why: why.clone() };
    let mut kept = serde_json::to_vec(&remark).unwrap_or_default();
    kept.push(b'\n');
    kept.extend_from_slice(dtab.as_deref().unwrap_or_default().as_bytes());
    kept
}

/// Reads it; nothing, if somebody else has written something else there.
pub(super) fn read(kv: &KeyValue) -> Option<Past> {
    let (remark, dtab) = std::str::from_utf8(&kv.value).ok()?.split_once('\n')?;
    let Remark { deleted, who, when_ms, why } = serde_json::from_str(remark).ok()?;
    Some(Past { version: version(kv), dtab: (!deleted).then(|| dtab.into()), who, when_ms, why })
}

/// A table that was written past us, so that no more is known of the change.
pub(super) fn by_others(kv: &KeyValue) -> Past {
    let dtab = String::from_utf8_lossy(&kv.value).into();
    Past { version: version(kv), dtab: Some(dtab), who: String::new(), when_ms: 0, why: String::new() }
}
