//! Text, algebra and limits. The cases of `tests/golden/dtab-cases.json` run in the gateway's `names` tests.

use super::*;
use crate::pairs::Pairs;
use bytes::Bytes;
use proptest::prelude::*;

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn dtab(text: &str) -> Dtab {
    Dtab::parse(text).unwrap()
}

#[test]
fn canonical_bytes_are_kept_where_they_are() {
    for text in ["/", "/a", "/svc/web:http#0", r"/a/\x61\x20\x62"] {
        let bytes = Bytes::from(text.to_string());
        let path = Path::from_bytes(bytes.clone()).unwrap();
        assert_eq!(path.as_bytes().as_ptr(), bytes.as_ptr(), "{text}");
        assert_eq!(path.as_str(), text);
    }
    assert_eq!(Path::from_bytes(Bytes::new()).unwrap(), Path::empty());
    for (text, canonical) in
        [(r"/\x61", "/a"), (" /a ", "/a"), (r"/a\x20", r"/\x61\x20"), (r"/\x2F", r"/\x2f")]
    {
        assert_eq!(Path::from_bytes(Bytes::from(text)).unwrap().as_str(), canonical);
    }
    for text in ["a", "/a/", "//a", r"/\x2", "/a b", "/\u{e9}"] {
        assert!(Path::from_bytes(Bytes::from(text)).is_err(), "{text}");
    }
}

#[test]
fn parts_of_a_path() {
    let long = path(r"/a/b:1/\x61\x2f\x62/d");
    assert_eq!(long.len(), 4);
    assert_eq!(long.elements().collect::<Vec<_>>(), ["a", "b:1", r"\x61\x2f\x62", "d"]);
    assert_eq!(long.raw_elements().nth(2).unwrap().as_ref(), b"a/b");
    assert_eq!(long.skip(2).as_str(), r"/\x61\x2f\x62/d");
    assert_eq!((long.skip(4), long.skip(9), long.skip(0)), (Path::empty(), Path::empty(), long.clone()));
    assert_eq!((long.take(1), long.take(0), long.take(9)), (path("/a"), Path::empty(), long.clone()));
    assert_eq!(long.take(2).concat(&long.skip(2)), long);
    assert!(long.starts_with(&path("/a/b:1")) && long.starts_with(&Path::empty()) && long.starts_with(&long));
    assert!(!long.starts_with(&path("/a/b")) && !path("/a").starts_with(&long));
    assert_eq!(Path::empty().elements().count(), 0);
    assert_eq!(path("/a").child(b"x y").unwrap().as_str(), r"/a/\x78\x20\x79");
    assert!(path("/a").child(b"").is_err());
}

#[test]
fn errors_show_the_place() {
    let error = Dtab::parse("/a => /b ;\n/c => /d , /e => /f").unwrap_err();
    assert_eq!((error.at, error.line, error.column), (20, 2, 10));
    assert_eq!(
        error.to_string(),
        "expected ; or & or | or the end at byte 20 (line 2, column 10): /c => /d [,] /e => /f"
    );
    assert_eq!(
        NameTree::parse("(/a").unwrap_err().to_string(),
        "expected ) at byte 3 (line 1, column 4): (/a[end]"
    );
    assert!(Path::parse("/caf\u{e9}s").unwrap_err().to_string().ends_with("/caf[\u{e9}]s"));
    assert!(Path::parse(b"/a\xff\n").unwrap_err().to_string().ends_with(r"/a[\xff]"));
    let pairs = Pairs::build([(&b"/a"[..], &b"/b"[..]), (b"/c", b"x")]).unwrap();
    assert!(Dtab::from_pairs(&pairs).unwrap_err().to_string().starts_with("pair 1: expected a path"));
}

#[test]
fn hostile_text_is_bounded() {
    let nested = |depth| format!("{}/a{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(NameTree::parse(nested(MAX_NESTING)).unwrap(), NameTree::Leaf(path("/a")));
    for depth in [MAX_NESTING + 1, 200_000] {
        assert_eq!(NameTree::parse(nested(depth)).unwrap_err().what, What::TooDeep(MAX_NESTING));
    }
    let many = |count| "/a=>~;".repeat(count);
    assert_eq!(dtab(&many(MAX_ENTRIES)).len(), MAX_ENTRIES);
    assert_eq!(Dtab::parse(many(MAX_ENTRIES + 1)).unwrap_err().what, What::TooManyEntries(MAX_ENTRIES));
    assert_eq!(Dtab::parse(" ".repeat(MAX_DTAB_TEXT + 1)).unwrap_err().what, What::TooLong(MAX_DTAB_TEXT));
    let long = format!("/{}", "a".repeat(MAX_PATH_TEXT - 1));
    assert!(Path::parse(&long).is_ok() && Path::parse(format!("{long}a")).is_err());
    // Escaping one byte escapes its element, so a text within the limit can become one that is not.
    assert!(Path::parse(format!(r"/{}\x20", "a".repeat(MAX_PATH_TEXT / 2))).is_err());
    let huge = "9".repeat(309);
    assert_eq!(NameTree::parse(format!("{huge}*/a & /b")).unwrap_err().what, What::Weight);
    let large = "9".repeat(308);
    assert_eq!(NameTree::parse(format!("{large}*/a & {large}*/b")).unwrap_err().what, What::Weight);
}

#[test]
fn wildcards_match_one_element_and_a_star_of_its_own_is_escaped() {
    let prefix = Prefix::parse("/a/*/c").unwrap();
    assert!(prefix.matches(&path("/a/x/c")) && prefix.matches(&path("/a/x/c/d")));
    assert!(!prefix.matches(&path("/a/c")) && !prefix.matches(&path("/a/x/d")));
    let literal = Prefix::parse(r"/\x2a").unwrap();
    assert!(!literal.is_wild() && literal.to_string() == r"/\x2a" && !literal.matches(&path("/x")));
}

#[test]
fn a_table_survives_pairs() {
    let table = dtab("/a/* => 0.001*/b & (/c | $) ; / => !");
    let pairs = table.to_pairs().unwrap();
    assert_eq!(Dtab::from_pairs(&pairs).unwrap(), table);
    assert_eq!(pairs.iter().next().unwrap(), (Bytes::from("/a/*"), Bytes::from("0.001*/b & (/c | $)")));
}

fn paths() -> impl Strategy<Value = Path> {
    let element = prop_oneof![
        4 => "[a-d]{1,2}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop::collection::vec(element, 0..4)
        .prop_map(|raw| Path::from_elements(raw.iter().map(Vec::as_slice)).unwrap())
}

fn trees() -> impl Strategy<Value = NameTree<Path>> {
    let weight = prop_oneof![Just(1.0), Just(0.0), 0.0..1e-3f64, 0.0..1e9f64];
    let leaf = prop_oneof![
        4 => paths().prop_map(NameTree::Leaf),
        1 => Just(NameTree::Neg),
        1 => Just(NameTree::Fail),
        1 => Just(NameTree::Empty),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let weighted = (weight.clone(), inner.clone()).prop_map(|(weight, tree)| Weighted { weight, tree });
        prop_oneof![
            prop::collection::vec(inner, 2..4).prop_map(NameTree::Alt),
            prop::collection::vec(weighted, 2..4).prop_map(NameTree::Union),
        ]
    })
}

fn tables() -> impl Strategy<Value = Dtab> {
    let prefix = (paths(), any::<bool>()).prop_map(|(path, wild)| {
        let text = if wild {
            format!("/*{}", if path.is_empty() { "" } else { path.as_str() })
        } else {
            path.to_string()
        };
        Prefix::parse(text).unwrap()
    });
    prop::collection::vec((prefix, trees()).prop_map(|(prefix, dst)| Dentry::new(prefix, dst)), 0..5)
        .prop_map(Dtab::from)
}

proptest! {
    #[test]
    fn paths_round_trip(path in paths()) {
        prop_assert_eq!(&Path::parse(path.as_str()).unwrap(), &path);
        let again = Path::from_bytes(path.as_bytes().clone()).unwrap();
        prop_assert_eq!(again.as_bytes().as_ptr(), path.as_bytes().as_ptr());
        let raw: Vec<_> = path.raw_elements().map(|e| e.into_owned()).collect();
        prop_assert_eq!(Path::from_elements(raw.iter().map(Vec::as_slice)).unwrap(), path);
    }

    #[test]
    fn trees_round_trip(tree in trees()) {
        prop_assert_eq!(NameTree::parse(tree.to_string()).unwrap(), tree);
    }

    #[test]
    fn tables_round_trip(table in tables()) {
        prop_assert_eq!(&Dtab::parse(table.to_string()).unwrap(), &table);
        prop_assert_eq!(Dtab::from_pairs(&table.to_pairs().unwrap()).unwrap(), table);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40), text in r"[/a*0.5&|()~!$#\\x; =>]{0,24}") {
        for text in [&bytes[..], text.as_bytes()] {
            if let Ok(path) = Path::parse(text) { prop_assert_eq!(&Path::parse(path.as_str()).unwrap(), &path); }
            match Dtab::parse(text) {
                Ok(table) => prop_assert_eq!(&Dtab::parse(table.to_string()).unwrap(), &table),
                Err(error) => prop_assert!(!error.to_string().is_empty() && error.at <= text.len()),
            }
        }
    }

    #[test]
    fn simplifying_keeps_the_meaning(tree in trees()) {
        let simple = tree.clone().simplify();
        prop_assert_eq!(tree.eval(), simple.eval());
        prop_assert_eq!(&simple.clone().simplify(), &simple);
    }

    #[test]
    fn the_later_entry_comes_first(table in tables(), later in tables(), path in paths()) {
        let both = table.concat(&later).lookup(&path);
        match (table.lookup(&path), later.lookup(&path)) {
            (early, _) if later.matches(&path).next().is_none() => prop_assert_eq!(both, early),
            (_, late) if table.matches(&path).next().is_none() => prop_assert_eq!(both, late),
            (_, late) => {
                let NameTree::Alt(branches) = both else { panic!("several matches are an alternation") };
                let count = later.matches(&path).count();
                let first = if count == 1 { branches[0].clone() } else { NameTree::Alt(branches[..count].to_vec()) };
                prop_assert_eq!(first, late);
            }
        }
    }

    #[test]
    fn shares_sum_to_one(weights in prop::collection::vec(0.0..1e6f64, 1..8)) {
        prop_assert!((shares(&weights).iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
