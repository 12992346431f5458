//! The endpoint slices of one namespace, and the names that they make. A service may have many slices: a change of one costs
//! a look at those of its own service.

use super::answer::Object;
use crate::names::source::Member;
use muxgate_wire::name::Path;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Slices of one namespace that are kept: with the usual 100 endpoints in each, half a million endpoints.
pub(super) const MAX_SLICES: usize = 50_000;

/// The label by which a slice belongs to a service.
const SERVICE: &str = "kubernetes.io/service-name";

/// Names, and what they have now; nothing: there is no such name any more.
pub(super) type Names = Vec<(Path, Vec<Member>)>;

/// What is known of a namespace.
pub(super) struct Slices {
    /// The label that is part of a name, if one is.
    label: Option<Arc<str>>,
    by_name: HashMap<String, Slice>,
    /// The slices of each service. Its key is what stands behind the port in a name: the service, or the service and the value
    /// of the label.
    services: HashMap<Path, BTreeSet<String>>,
}

/// What counts of a slice.
struct Slice {
    service: Path,
    family: Family,
    /// As they stand in names, and the number: `http` and 8080, `8080` and 8080.
    ports: Vec<(String, u16)>,
    /// Addresses of the endpoints that are ready.
    hosts: Vec<Arc<str>>,
}

/// What kind of addresses a slice has.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    V6,
    /// Or host names.
    V4,
}

impl Slices {
    pub(super) fn new(label: Option<Arc<str>>) -> Self {
        Self { label, by_name: HashMap::new(), services: HashMap::new() }
    }

    /// There is this slice now. Says which names have changed, perhaps.
    pub(super) fn put(&mut self, object: Object) -> Result<Names, String> {
        let name = object.metadata.name.clone();
        let slice = self.read(object);
        if slice.is_some() && self.by_name.len() >= MAX_SLICES && !self.by_name.contains_key(&name) {
            return Err(format!("more than {MAX_SLICES} endpoint slices in one namespace"));
        }
        Ok(self.change(name, slice))
    }

    /// This slice is gone.
    pub(super) fn remove(&mut self, name: &str) -> Names {
        self.change(name.to_owned(), None)
    }

    /// All names.
    pub(super) fn all(&self) -> Names {
        self.services.keys().flat_map(|service| self.of(service)).collect()
    }

    fn change(&mut self, name: String, slice: Option<Slice>) -> Names {
        let old = self.by_name.get(&name).map(|old| old.service.clone());
        let new = slice.as_ref().map(|new| new.service.clone());
        let touched: BTreeSet<Path> = old.iter().chain(&new).cloned().collect();
        let before: Vec<Path> = touched.iter().flat_map(|service| self.of(service).into_keys()).collect();
        if let Some(service) = old {
            self.by_name.remove(&name);
            let others = self.services.get_mut(&service);
            if others.is_some_and(|others| others.remove(&name) && others.is_empty()) {
                self.services.remove(&service);
            }
        }
        if let Some(slice) = slice {
            self.services.entry(slice.service.clone()).or_default().insert(name.clone());
            self.by_name.insert(name, slice);
        }
        let mut after: BTreeMap<_, _> = touched.iter().flat_map(|service| self.of(service)).collect();
        for name in before {
            after.entry(name).or_default();
        }
        after.into_iter().collect()
    }

    /// The names of a service. A pod with an address of each family counts once: by that of IPv4.
    fn of(&self, service: &Path) -> BTreeMap<Path, Vec<Member>> {
        /// By family: hosts and numbers.
        type Families<'a> = [BTreeSet<(&'a Arc<str>, u16)>; 2];
        let mut all: BTreeMap<&str, Families<'_>> = BTreeMap::new();
        let slices = self.services.get(service).into_iter().flatten();
        for slice in slices.filter_map(|name| self.by_name.get(name)) {
            for (port, number) in &slice.ports {
                let [v4, v6] = all.entry(port).or_default();
                let members = if slice.family == Family::V4 { v4 } else { v6 };
                // While an endpoint moves to another slice it may be in both.
                members.extend(slice.hosts.iter().map(|host| (host, *number)));
            }
        }
        let name = |port: &str| Path::from_elements([port.as_bytes()]).map(|port| port.concat(service));
        let named = all.into_iter().filter_map(|(port, [v4, v6])| {
            let members = if v4.is_empty() { v6 } else { v4 };
            let members = members.into_iter().map(|(host, number)| Member::new(Arc::clone(host), number));
            Some((name(port).ok()?, members.collect::<Vec<_>>()))
        });
        named.filter(|(_, members)| !members.is_empty()).collect()
    }

    /// What counts of it; none if it belongs to no service that has a name here.
    fn read(&self, object: Object) -> Option<Slice> {
        let labels = object.metadata.labels.unwrap_or_default();
        let label = self.label.as_ref().map(|label| labels.get(&**label));
        let elements = match label {
            None => vec![labels.get(SERVICE)?.as_bytes()],
            Some(value) => vec![labels.get(SERVICE)?.as_bytes(), value?.as_bytes()],
        };
        let service = Path::from_elements(elements).ok()?;
        let family = if object.address_type == "IPv6" { Family::V6 } else { Family::V4 };
        let mut ports = Vec::new();
        for port in object.ports.unwrap_or_default() {
            let tcp = port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
            let Some(number) = port.port.filter(|number| tcp && *number != 0) else { continue };
            ports.push((number.to_string(), number));
            ports.extend(port.name.filter(|name| !name.is_empty()).map(|name| (name, number)));
        }
        let ready = object.endpoints.unwrap_or_default().into_iter().filter(|endpoint| endpoint.is_ready());
        let hosts = ready.filter_map(|endpoint| endpoint.addresses.into_iter().next().map(Arc::from));
        Some(Slice { service, family, ports, hosts: hosts.collect() })
    }
}
