//! Every case of `tests/golden/dtab-cases.json` that is about names, by its `op`.

use super::fake::{Fake, fakes, namers, path};
use crate::names::namers::fs::file;
use crate::names::namers::pattern::{Pattern, Rewrite, Rewriter};
use crate::names::namers::serversets::{Endpoint, Member, Target, Vector, weight};
use crate::names::used::Outcome;
use crate::names::{
    Answer, BindState, Binder, Binding, Bound, Delegation, Kind, Lookup, Named, Namer, State,
};
use bytes::Bytes;
use muxgate_rpc::headers::tables::Tables;
use muxgate_wire::name::{Dtab, NameTree, Path, Prefix, shares};
use muxgate_wire::pairs::Pairs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dtab-cases.json");

/// Cases of each op.
const COUNTS: &[(&str, usize)] = &[
    ("bind", 120),
    ("bind_l5d", 14),
    ("bind_steps", 7),
    ("delegate", 11),
    ("eval", 17),
    ("fs_file", 12),
    ("global_lookup", 23),
    ("lookup", 6),
    ("mux_dispatch_names", 17),
    ("mux_write_dtab", 4),
    ("parse_dtab", 15),
    ("parse_path", 25),
    ("parse_prefix", 4),
    ("parse_tree", 27),
    ("path_matcher", 7),
    ("show_path", 1),
    ("simplify_dtab", 1),
    ("union_share", 5),
    ("http_dtab", 6),
    ("serverset_member", 8),
    ("serverset_path", 8),
    ("serverset_weight", 6),
];

#[tokio::test(start_paused = true)]
async fn all_cases() {
    let file: Value = serde_json::from_slice(&std::fs::read(FILE).unwrap()).unwrap();
    let (mut seen, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for case in file["cases"].as_array().unwrap() {
        let (id, op) = (text(case, "id"), text(case, "op"));
        *seen.entry(op.to_string()).or_default() += 1;
        let got = run(op, case).await;
        // Where we differ on purpose: a wildcard in a Mux message is understood, as Finagle meant it.
        // And whole numbers are weights, too.
        let want = match id {
            "ss-weight-integer-ignored" => json!({"ok": [{"endpoint": "h:1", "weight": 2.0}]}),
            "mux-wildcard" => {
                json!({"ok": {"destination": "/x", "entries": [{"prefix": "/a/*", "dst": "/b"}]}})
            }
            _ => case["expect"].clone(),
        };
        if got != want {
            wrong.push(format!("{id}\n  want {want}\n  got  {got}"));
        }
    }
    println!("by op: {seen:?}");
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(seen, COUNTS.iter().map(|(op, count)| (op.to_string(), *count)).collect());
    assert_eq!(seen.values().sum::<usize>(), 344);
}

/// What we make of a case, in the form of its `expect`.
async fn run(op: &str, case: &Value) -> Value {
    match op {
        "bind" | "bind_l5d" => bind(case, op == "bind").await,
        "bind_steps" => bind_steps(case).await,
        "delegate" => delegation(case).await,
        "global_lookup" => json!({"ok": global_lookup(case)}),
        "lookup" => json!({"ok": tree_json(&dtab(case).lookup(&path(text(case, "path"))), &path_json)}),
        "parse_path" => result(Path::parse(text(case, "text")).map(|path| {
            let raw = path.raw_elements().map(|raw| String::from_utf8(raw.into_owned()).unwrap());
            json!({"elems": raw.collect::<Vec<_>>(), "show": path.as_str()})
        })),
        "parse_prefix" => result(Prefix::parse(text(case, "text")).map(|prefix| {
            let elements: Vec<_> = prefix.as_str().split('/').skip(1).collect();
            json!({"elems": elements, "show": prefix.as_str()})
        })),
        "parse_tree" => result(NameTree::parse(text(case, "text")).map(|tree| {
            let simplified = tree_json(&tree.clone().simplify(), &path_json);
            json!({"tree": tree_json(&tree, &path_json), "show": two_digits(&tree.to_string()), "simplified": simplified})
        })),
        "parse_dtab" => result(Dtab::parse(text(case, "text")).map(|table| dtab_json(&table))),
        "simplify_dtab" => result(Dtab::parse(text(case, "text")).map(|table| dtab_json(&table.simplified()))),
        "show_path" => {
            let elements: Vec<_> = case["elems"].as_array().unwrap().iter().map(|e| e.as_str().unwrap()).collect();
            result(Path::from_elements(elements.iter().map(|e| e.as_bytes())).map(|path| json!(path.as_str())))
        }
        "eval" => result(NameTree::parse(text(case, "text")).map(|tree| {
            let eval = tree.eval().map(|set| sorted(set.into_iter().map(Path::to_string)));
            json!({"eval": eval, "simplified": tree_json(&tree.clone().simplify(), &path_json)})
        })),
        "path_matcher" => {
            let captures = Pattern::parse(text(case, "pattern")).unwrap().matches(&path(text(case, "path")));
            let utf8 = |(name, raw)| (name, json!(String::from_utf8(raw).unwrap()));
            json!({"ok": captures.map(|all| all.into_iter().map(utf8).collect::<serde_json::Map<_, _>>())})
        }
        "union_share" => {
            let weights: Vec<_> = case["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
            let hundredths = shares(&weights).into_iter().map(|share| (share * 100.0).round() / 100.0);
            json!({"ok": hundredths.collect::<Vec<_>>()})
        }
        "mux_dispatch_names" => result(mux_names(case)),
        "mux_write_dtab" => {
            let pairs = dtab(case).to_pairs().unwrap();
            let texts = pairs.iter().map(|(prefix, dst)| {
                json!([String::from_utf8_lossy(&prefix), two_digits(&String::from_utf8_lossy(&dst))])
            });
            json!({"ok": texts.collect::<Vec<_>>()})
        }
        "fs_file" => result(file::parse(text(case, "text").as_bytes()).map(|lines| {
            let lines = lines.iter().map(|line| json!({"host": *line.host, "port": line.port, "weight": line.weight}));
            Value::from_iter(lines)
        })),
        "http_dtab" => result(header_tables(case).map(|table| dtab_json(&table))),
        "serverset_path" => result(Target::of(&path(text(case, "path"))).map(|target| {
            let Target { hosts, place } = target.unwrap();
            json!({"zkHosts": hosts, "zkPath": place.node, "endpoint": place.endpoint, "shard": place.shard})
        })),
        "serverset_member" => json!({"ok": member(case).iter().flat_map(member_json).collect::<Vec<_>>()}),
        "serverset_weight" => {
            let texts = case["vectors"].as_array().unwrap().iter();
            let vectors: Vec<_> = texts.map(|v| Vector::read(v.as_str().unwrap().as_bytes())).collect();
            let member = member(case).unwrap();
            let weights = member.endpoints.iter().map(|endpoint| {
                let at = format!("{}:{}", endpoint.host, endpoint.port);
                json!({"endpoint": at, "weight": weight(&vectors, &member, endpoint)})
            });
            json!({"ok": weights.collect::<Vec<_>>()})
        }
        other => panic!("an op that nobody runs: {other}"),
    }
}

fn header_tables(case: &Value) -> Result<Dtab, muxgate_rpc::Failure> {
    let mut tables = Tables::default();
    for header in case["headers"].as_array().unwrap() {
        let [key, value] = [0, 1].map(|at| header[at].as_str().unwrap().to_owned());
        assert!(tables.take(key.as_bytes(), &Bytes::from(value))?, "{key} is one of ours");
    }
    tables.read()
}

/// The member of a case, if its node is one.
fn member(case: &Value) -> Option<Member> {
    let id = text(case, "node").rsplit('/').next().unwrap();
    id.starts_with("member_").then(|| Member::read(id, text(case, "json").as_bytes()))
}

fn member_json(member: &Member) -> Vec<Value> {
    let endpoint = |endpoint: &Endpoint| {
        json!({
            "names": endpoint.names.iter().collect::<Vec<_>>(),
            "host": *endpoint.host,
            "port": endpoint.port,
            "shard": member.shard,
            "status": format!("{:?}", member.status),
            "memberId": *member.id,
            "metadata": member.metadata,
        })
    };
    member.endpoints.iter().map(endpoint).collect()
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("no {key} in {case}"))
}

fn dtab(case: &Value) -> Dtab {
    match &case["dtab"] {
        Value::Array(layers) => {
            let layers = layers.iter().map(|layer| Dtab::parse(layer.as_str().unwrap()).unwrap());
            layers.fold(Dtab::empty(), |below, layer| below.concat(&layer))
        }
        text => Dtab::parse(text.as_str().unwrap()).unwrap(),
    }
}

fn result<E>(result: Result<Value, E>) -> Value {
    result.map_or_else(|_| json!({"error": true}), |value| json!({"ok": value}))
}

fn mux_names(case: &Value) -> Result<Value, ()> {
    let destination = Path::from_bytes(Bytes::from(text(case, "destination").to_string())).map_err(drop)?;
    let pairs = case["delegations"].as_array().unwrap().iter();
    let pairs =
        pairs.map(|pair| (pair[0].as_str().unwrap().as_bytes(), pair[1].as_str().unwrap().as_bytes()));
    let table = Dtab::from_pairs(&Pairs::build(pairs).map_err(drop)?).map_err(drop)?;
    Ok(json!({"destination": destination.as_str(), "entries": dtab_json(&table)["entries"]}))
}

/// A binder of a case, and its fake namers.
fn binder(case: &Value) -> (Binder, BTreeMap<String, Arc<Fake>>) {
    let fakes = fakes(case);
    let rewrites = case["rewrite"].as_object().cloned().unwrap_or_default();
    let rewrites = rewrites.iter().map(|(prefix, rewrite)| {
        let [pattern, name] = ["pattern", "name"].map(|key| Pattern::parse(text(rewrite, key)).unwrap());
        let rewrite = Rewrite { pattern, name };
        assert_eq!(rewrite.unknown(), None);
        Arc::new(Rewriter::new(path(prefix), rewrite)) as Arc<dyn Namer>
    });
    let namers = namers(fakes.values().map(|fake| fake.clone() as Arc<dyn Namer>).chain(rewrites));
    (Binder::new(namers, watch::channel(dtab(case).into()).1), fakes)
}

async fn bind(case: &Value, by_id: bool) -> Value {
    let (binder, _fakes) = binder(case);
    let asked = path(text(case, "path"));
    let binding = binder.bind(&asked, &Dtab::empty());
    let dry = binder.dry_run(&asked, &Dtab::empty(), Duration::ZERO).await;
    assert_eq!(dry.state, binding.latest(), "the dry run shows what live traffic sees");
    // What the delegation tree says is used is what is used; it has an end only if all branches have one.
    if let Ok(tree) = binder.delegate(&asked, &Dtab::empty(), Duration::ZERO).await {
        assert_eq!(tree.outcome(), outcome(&dry.state), "{case}");
    }
    state_json(&binding.latest(), &case["expect"], by_id)
}

fn outcome(state: &State) -> Outcome {
    match state {
        State::Pending => Outcome::Pending,
        State::Failed(_) => Outcome::Failed,
        State::Ok(NameTree::Neg) => Outcome::Neg,
        State::Ok(NameTree::Fail) => Outcome::Fail,
        State::Ok(_) => Outcome::Found,
    }
}

async fn bind_steps(case: &Value) -> Value {
    let (binder, fakes) = binder(case);
    let binding = binder.bind(&path(text(case, "path")), &Dtab::empty());
    let expect = case["expect"].as_array().unwrap();
    let mut seen = vec![
        json!({"binding": state_json(&binding.latest(), &expect[0]["binding"], true), "client": client(&binding)}),
    ];
    for (step, expect) in case["steps"].as_array().unwrap().iter().zip(&expect[1..]) {
        for (key, value) in step.as_object().unwrap() {
            let (prefix, fake) =
                fakes.iter().find(|(prefix, _)| path(key).starts_with(&path(prefix))).unwrap();
            fake.set(path(key).skip(path(prefix).len()).as_str(), value.clone());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let state = state_json(&binding.latest(), &expect["binding"], true);
        seen.push(json!({"set": step, "binding": state, "client": client(&binding)}));
    }
    Value::Array(seen)
}

fn client(binding: &Binding) -> Value {
    match binding.state() {
        BindState::Pending => json!("queues"),
        BindState::Failed(_) => json!({"fails": true}),
        BindState::Bound(tree) => json!({"uses": tree_json(&tree, &bound_json)}),
    }
}

/// The state; of a failed one only that it is, as the reason in the file is for the reader.
fn state_json(state: &State, expect: &Value, by_id: bool) -> Value {
    match state {
        State::Pending => json!({"state": "pending"}),
        State::Failed(_) => json!({"state": "failed", "why": expect["why"]}),
        State::Ok(tree) => {
            let eval = tree.eval().map(|mut set| {
                // Finagle takes bound names of one id as equal, whatever the residual; we and linkerd do not.
                let mut ids = std::collections::HashSet::new();
                set.retain(|bound| !by_id || ids.insert(bound.id.clone()));
                sorted(set.into_iter().map(Bound::to_string))
            });
            json!({"state": "ok", "tree": tree_json(tree, &bound_json), "eval": eval})
        }
    }
}

fn global_lookup(case: &Value) -> Value {
    let (namers, asked) = (namers([]), path(text(case, "path")));
    let namer = namers.candidates(&asked)[0];
    match namers.get(namer).unwrap().lookup(&asked) {
        Lookup::Fixed(Answer::Ok(tree)) => {
            json!({"state": "ok", "tree": tree_json(&tree, &|named| match named {
                Named::Path(path) => path_json(path),
                Named::Bound(bound) => bound_json(bound),
            })})
        }
        other => json!(format!("{other:?}")),
    }
}

async fn delegation(case: &Value) -> Value {
    let (binder, _fakes) = binder(case);
    let tree = binder.delegate(&path(text(case, "path")), &Dtab::empty(), Duration::ZERO).await;
    result(tree.map(|tree| delegation_json(&tree)))
}

fn delegation_json(node: &Delegation) -> Value {
    let dentry = node.dentry.as_ref().map(|dentry| two_digits(&dentry.to_string()));
    let (kind, content) = match &node.kind {
        Kind::Delegate(child) => ("delegate", delegation_json(child)),
        Kind::Alt(children) => ("alt", children.iter().map(delegation_json).collect()),
        Kind::Union(children) => {
            let children = children
                .iter()
                .map(|(weight, tree)| json!({"weight": weight, "tree": delegation_json(tree)}));
            ("union", children.collect())
        }
        Kind::Leaf(bound) => ("leaf", bound_json(bound)),
        Kind::Neg => ("neg", Value::Null),
        Kind::Fail => ("fail", Value::Null),
        Kind::Empty => ("empty", Value::Null),
        Kind::Pending => ("pending", Value::Null),
        Kind::Exception(message) => ("exception", json!(message)),
    };
    let mut json = json!({"type": kind, "path": node.path.as_str(), "dentry": dentry});
    if !content.is_null() {
        let key = match kind {
            "leaf" => "bound",
            "exception" => "message",
            other => other,
        };
        json[key] = content;
    }
    json
}

fn tree_json<T>(tree: &NameTree<T>, leaf: &dyn Fn(&T) -> Value) -> Value {
    match tree {
        NameTree::Alt(branches) => {
            json!({"alt": branches.iter().map(|b| tree_json(b, leaf)).collect::<Vec<_>>()})
        }
        NameTree::Union(branches) => {
            let branches =
                branches.iter().map(|b| json!({"weight": b.weight, "tree": tree_json(&b.tree, leaf)}));
            json!({"union": branches.collect::<Vec<_>>()})
        }
        NameTree::Leaf(name) => leaf(name),
        NameTree::Neg => json!("~"),
        NameTree::Fail => json!("!"),
        NameTree::Empty => json!("$"),
    }
}

fn path_json(path: &Path) -> Value {
    json!(path.as_str())
}

fn bound_json(bound: &Bound) -> Value {
    json!({"id": bound.id.as_str(), "residual": bound.residual.as_str()})
}

fn dtab_json(table: &Dtab) -> Value {
    let entries = table.entries().iter();
    let entries = entries.map(|e| json!({"prefix": e.prefix.as_str(), "dst": tree_json(&e.dst, &path_json)}));
    json!({"entries": entries.collect::<Vec<_>>(), "show": two_digits(&table.to_string())})
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<_> = texts.collect();
    texts.sort();
    texts
}

/// Our printed form with the weights as Finagle prints them. A word that begins with a digit is a weight.
fn two_digits(printed: &str) -> String {
    let mut out = String::new();
    let mut rest = printed;
    while let Some(c) = rest.chars().next() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let word = out.is_empty() || out.ends_with([' ', '(', '>']);
        if word && digits > 0 && rest[digits..].starts_with('*') {
            out += &format!("{:.2}", rest[..digits].parse::<f64>().unwrap());
            rest = &rest[digits..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}
