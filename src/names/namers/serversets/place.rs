//! Where a server set is, and what is wanted of it: `/prod/web:http#3`.

use crate::outside::zk;
use muxgate_wire::name::Path;

/// A node, and which of its members' endpoints are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node's path, as ZooKeeper has it.
    pub node: String,
    /// The additional endpoint of this name; the service endpoint, if none is named.
    pub endpoint: Option<String>,
    /// Only members of this shard.
    pub shard: Option<i64>,
}

impl Place {
    /// Reads the elements of a path: the suffixes stand on the last one. `Ok(None)`: no node can have such a path.
    ///
    /// # Errors
    /// A shard that is no number, a second endpoint, suffixes in the wrong order: what is wanted instead.
    pub fn of(path: &Path) -> Result<Option<Self>, String> {
        let Some(last) = path.raw_elements().last() else {
            return Ok(Some(Self { node: "/".into(), endpoint: None, shard: None }));
        };
        let Ok(last) = std::str::from_utf8(&last) else { return Ok(None) };
        let want = || format!("{last:?}: want <node>[:<endpoint>][#<shard>]");
        let (front, shard) = match last.split_once('#') {
            None => (last, None),
            Some((front, shard)) if shard.bytes().all(|b| b.is_ascii_digit()) => {
                (front, Some(shard.parse().map_err(|_| want())?))
            }
            Some(_) => return Err(want()),
        };
        let (name, endpoint) = match front.split_once(':') {
            None => (front, None),
            Some((name, endpoint)) if !endpoint.is_empty() && !endpoint.contains(':') => {
                (name, Some(endpoint.to_owned()))
            }
            Some(_) => return Err(want()),
        };
        if name.is_empty() {
            return Err(want());
        }
        let above = zk::node("/", &path.take(path.len() - 1));
        let own = Path::from_elements([name.as_bytes()]).ok();
        let node = above.zip(own).and_then(|(above, own)| zk::node(&above, &own));
        Ok(node.map(|node| Self { node, endpoint, shard }))
    }

    /// Whether the node is a member or a vector of a server set, which has no members of its own.
    pub fn is_part(&self) -> bool {
        let name = self.node.rsplit('/').next().unwrap_or_default();
        is_member(name) || is_vector(name)
    }
}

/// Whether a child of this name is a member.
pub(super) fn is_member(child: &str) -> bool {
    child.starts_with("member_")
}

/// Whether a child of this name holds weights.
pub(super) fn is_vector(child: &str) -> bool {
    child.starts_with("vector_")
}
