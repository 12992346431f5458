//! The content of `vector_` nodes: weights of members.

use super::{Endpoint, Member};
use serde_json::Value;

/// Largest weight that comes out of a product.
const MAX_WEIGHT: f64 = 1e9;

/// Weights for some of the members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector(Vec<Weighted>);

#[derive(Clone, Debug, PartialEq)]
struct Weighted {
    select: Select,
    weight: f64,
    priority: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Select {
    /// `<host>:<port>`.
    Inet(String),
    /// The name of a member's node.
    Member(String),
    Shard(i64),
}

impl Select {
    fn read(text: &str) -> Option<Self> {
        match text.split_once('=')? {
            ("inet", address) => Some(Self::Inet(address.into())),
            ("member", id) => Some(Self::Member(id.into())),
            ("shard", shard) => shard.parse().ok().map(Self::Shard),
            _ => None,
        }
    }

    fn matches(&self, member: &Member, endpoint: &Endpoint) -> bool {
        match self {
            Self::Inet(address) => address
                .rsplit_once(':')
                .is_some_and(|(host, port)| *host == *endpoint.host && port.parse() == Ok(endpoint.port)),
            Self::Member(id) => **id == *member.id,
            Self::Shard(shard) => member.shard == Some(*shard),
        }
    }
}

impl Vector {
    /// Reads the content of a node. Unknown selectors, entries without a weight, and content that cannot be read weigh
    /// nothing. Whole numbers count (Finagle wants a dot).
    pub fn read(content: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(content).unwrap_or_default();
        let entries = json.get("vector").and_then(Value::as_array).into_iter().flatten();
        let entry = |entry: &Value| {
            let select = Select::read(entry.get("select")?.as_str()?)?;
            let weight = entry.get("weight")?.as_f64()?;
            Some(Weighted { select, weight, priority: entry.get("priority").and_then(Value::as_i64) })
        };
        Self(entries.filter_map(entry).collect())
    }
}

/// The weight of an endpoint: the product of all that match it in all vectors; equal vectors count once. None: a negative
/// one takes it out.
pub fn weight<'a>(
    vectors: impl IntoIterator<Item = &'a Vector>,
    member: &Member,
    endpoint: &Endpoint,
) -> Option<f64> {
    let mut distinct: Vec<&Vector> = Vec::new();
    for vector in vectors {
        if !distinct.contains(&vector) {
            distinct.push(vector);
        }
    }
    let entries = distinct.into_iter().flat_map(|vector| &vector.0);
    let weights = entries.filter(|entry| entry.select.matches(member, endpoint)).map(|entry| entry.weight);
    let product = weights.fold(1.0, |product: f64, weight| {
        if product < 0.0 || weight < 0.0 { -1.0 } else { (product * weight).min(MAX_WEIGHT) }
    });
    (product >= 0.0).then_some(product)
}
