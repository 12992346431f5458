//! What is written of a change: a line of JSON, and behind it the table's text as it is.

use super::{Past, Version, Write};
use crate::outside::zk::Stat;
use serde::{Deserialize, Serialize};

/// The line of JSON.
#[derive(Deserialize, Serialize)]
struct Head<'a> {
    deleted: bool,
    who: std::borrow::Cow<'a, str>,
    when_ms: u64,
    why: std::borrow::Cow<'a, str>,
}

/// What is kept of a write.
pub(super) fn written(write: &Write) -> Vec<u8> {
    let head = Head {
        deleted: write.dtab.is_none(),
        who: write.who.as_str().into(),
        when_ms: write.when_ms,
        why: write.why.as_str().into(),
    };
    let mut content = serde_json::to_vec(&head).unwrap_or_default();
    content.push(b'\n');
    content.extend_from_slice(write.dtab.as_deref().unwrap_or_default().as_bytes());
    content
}

/// Reads a change that was made by the transaction `zxid`; nothing, if others have put something else there.
pub(super) fn read(content: &[u8], zxid: i64) -> Option<Past> {
    let end = content.iter().position(|byte| *byte == b'\n')?;
    let (head, dtab) = content.split_at_checked(end)?;
    let head: Head<'_> = serde_json::from_slice(head).ok()?;
    let dtab = std::str::from_utf8(dtab.get(1..)?).ok()?;
    Some(Past {
        version: Version(u64::try_from(zxid).ok()?),
        dtab: (!head.deleted).then(|| dtab.into()),
        who: head.who.into_owned(),
        when_ms: head.when_ms,
        why: head.why.into_owned(),
    })
}

/// A table as it is, of which no change is known: it was written past us.
pub(super) fn by_others(content: &[u8], stat: &Stat) -> Past {
    Past {
        version: super::version(stat),
        dtab: Some(String::from_utf8_lossy(content).into()),
        who: String::new(),
        when_ms: u64::try_from(stat.mtime).unwrap_or_default(),
        why: String::new(),
    }
}

/// The number of a change.
pub(super) fn number(node: &str) -> Option<i64> {
    node.strip_prefix("c-")?.parse().ok()
}
