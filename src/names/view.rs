//! A delegation tree as JSON, in the shape that linkerd's delegator gives (naming spec, section 12).

use super::{Addr, Bound, Delegation, Kind, Standing};
use serde_json::{Map, Value, json};

impl Delegation {
    /// The tree as JSON: each node has `type`, `path` and `dentry`, and by type `delegate`, `alt`, `union`, `bound` or
    /// `message`. A namer that has not answered is of type `pending`, which linkerd does not know; nor does it know
    /// `used`, which is true at the ends that decide what the name leads to.
    pub fn to_json(&self) -> Value {
        self.json(true)
    }

    fn json(&self, used: bool) -> Value {
        let decisive = if used { self.decisive() } else { Vec::new() };
        let part = |(at, child): (usize, &Self)| child.json(decisive.contains(&at));
        let (kind, key, content) = match &self.kind {
            Kind::Delegate(child) => ("delegate", "delegate", Some(part((0, child)))),
            Kind::Alt(children) => ("alt", "alt", Some(children.iter().enumerate().map(part).collect())),
            Kind::Union(children) => {
                let branches = children
                    .iter()
                    .enumerate()
                    .map(|(at, (weight, tree))| json!({ "weight": weight, "tree": part((at, tree)) }));
                ("union", "union", Some(branches.collect()))
            }
            Kind::Leaf(bound) => ("leaf", "bound", Some(bound.to_json())),
            Kind::Neg => ("neg", "", None),
            Kind::Fail => ("fail", "", None),
            Kind::Empty => ("empty", "", None),
            Kind::Pending => ("pending", "", None),
            Kind::Exception(message) => ("exception", "message", Some(json!(message))),
        };
        let ends = !matches!(self.kind, Kind::Delegate(_) | Kind::Alt(_) | Kind::Union(_) | Kind::Neg);
        let mut node = Map::new();
        node.insert("type".into(), kind.into());
        node.insert("path".into(), self.path.as_str().into());
        node.insert(
            "dentry".into(),
            self.dentry.as_ref().map_or(Value::Null, |entry| json!(entry.to_string())),
        );
        if let Some(content) = content {
            node.insert(key.into(), content);
        }
        if used && ends {
            node.insert("used".into(), true.into());
        }
        Value::Object(node)
    }
}

impl Bound {
    /// The name with its addresses, and how it stands with its source, as JSON.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "id": self.id.as_str(), "path": self.residual.as_str(), "addr": self.addr.borrow().to_json(),
        });
        if let Some(source) = &self.source {
            json["source"] = source.standing().to_json();
        }
        json
    }
}

impl Standing {
    fn to_json(&self) -> Value {
        json!({
            "state": if self.outage.is_some() { "outage" } else { "well" },
            "ageMs": self.age().map(|age| age.as_millis() as u64),
            "outageMs": self.outage.as_ref().map(|(since, _)| since.elapsed().as_millis() as u64),
            "error": self.outage.as_ref().map(|(_, why)| why),
            "fromDisk": self.kept.is_some(),
            "doubtedMs": self.doubted.map(|since| since.elapsed().as_millis() as u64),
        })
    }
}

impl Addr {
    /// The addresses as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Addr::Pending => json!({ "type": "pending" }),
            Addr::Bound(endpoints) => {
                let addresses = endpoints.iter().map(|endpoint| {
                    json!({
                        "ip": endpoint.addr.ip().to_string(),
                        "port": endpoint.addr.port(),
                        "meta": { "endpoint_addr_weight": endpoint.weight },
                    })
                });
                json!({ "type": "bound", "addrs": addresses.collect::<Vec<_>>() })
            }
            Addr::Neg => json!({ "type": "neg" }),
            Addr::Failed(why) => json!({ "type": "failed", "cause": why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muxgate_wire::name::Path;

    #[test]
    fn a_leaf_shows_its_addresses() {
        let path = |text: &str| Path::parse(text).unwrap();
        let addr = Addr::bound(["127.0.0.1:80".parse::<std::net::SocketAddr>().unwrap().into()]).fixed();
        let bound = Bound::new(path("/$/inet/127.0.0.1/80"), path("/x"), addr);
        let leaf = Delegation { path: path("/$/inet/127.0.0.1/80/x"), dentry: None, kind: Kind::Leaf(bound) };
        let tree = Delegation { path: path("/svc/a"), dentry: None, kind: Kind::Alt(vec![leaf]) };
        let json = tree.to_json();
        assert_eq!((&json["type"], &json["alt"][0]["used"]), (&json!("alt"), &json!(true)));
        assert_eq!(json["alt"][0]["bound"]["path"], "/x");
        assert_eq!(json["alt"][0]["bound"]["addr"]["addrs"][0]["port"], 80);
    }
}
