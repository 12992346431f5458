//! A bound tree as what a call needs: clusters with their share.

use crate::names::Bound;
use muxgate_rpc::Serve;
use muxgate_wire::name::{NameTree, Path};

/// Where the clusters are: the room below, keyed by bound id.
pub trait Clusters: Send + Sync + 'static {
    /// A shared handle to a cluster.
    type Cluster: Serve + Clone;

    /// The cluster of a bound name; the same one for the same id, for as long as anybody holds it.
    fn cluster(&self, bound: &Bound) -> Self::Cluster;
}

/// A cluster, and what is left of the name.
#[derive(Clone, Debug)]
pub struct Target<S> {
    /// The cluster.
    pub cluster: S,
    /// Goes on as the destination of a Mux dispatch.
    pub residual: Path,
}

/// The leaves of a bound tree with the share of traffic of each; `None` is an empty branch, which keeps its share
/// (naming spec, section 6).
#[derive(Debug)]
pub struct Targets<S>(Vec<(f64, Option<Target<S>>)>);

impl<S: Clone> Targets<S> {
    /// The leaves of `tree`; none if there is no way to any.
    pub fn of(tree: &NameTree<Bound>, clusters: &impl Clusters<Cluster = S>) -> Option<Self> {
        let mut leaves = Vec::new();
        collect(tree, 1.0, clusters, &mut leaves);
        leaves.iter().any(|(_, target)| target.is_some()).then_some(Self(leaves))
    }

    /// One of the leaves, at random by share; none if that is an empty branch.
    pub fn pick(&self) -> Option<Target<S>> {
        let [(_, only)] = &self.0[..] else {
            let mut at = rand::random::<f64>() * self.0.iter().map(|(share, _)| share).sum::<f64>();
            for (share, target) in &self.0 {
                if at < *share {
                    return target.clone();
                }
                at -= share;
            }
            return self
                .0
                .iter()
                .rev()
                .find(|(share, _)| *share > 0.0)
                .and_then(|(_, target)| target.clone());
        };
        only.clone()
    }
}

/// Shares multiply on the way down. A union whose weights are all zero is even.
fn collect<C: Clusters>(
    tree: &NameTree<Bound>,
    share: f64,
    clusters: &C,
    leaves: &mut Vec<(f64, Option<Target<C::Cluster>>)>,
) {
    match tree {
        NameTree::Leaf(bound) => {
            let target = Target { cluster: clusters.cluster(bound), residual: bound.residual.clone() };
            leaves.push((share, Some(target)));
        }
        NameTree::Union(branches) => {
            let sum: f64 = branches.iter().map(|branch| branch.weight).sum();
            for branch in branches {
                let part = if sum > 0.0 { branch.weight / sum } else { 1.0 / branches.len() as f64 };
                collect(&branch.tree, share * part, clusters, leaves);
            }
        }
        NameTree::Empty => leaves.push((share, None)),
        NameTree::Alt(_) | NameTree::Neg | NameTree::Fail => {}
    }
}
