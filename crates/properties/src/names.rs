//! Paths, prefixes, trees and tables as text.

use bytes::Bytes;
use muxgate_wire::name::{Dtab, NameError, NameTree, Path, Prefix};
use std::fmt::{Debug, Display};

/// What reads is printed, and reads again as the same; what does not says where.
///
/// # Panics
/// When this does not hold.
pub fn names(data: &[u8]) {
    let tree = again(data, |text| NameTree::parse(text));
    if let Some(tree) = &tree {
        let simple = tree.clone().simplify();
        assert_eq!(tree.eval(), simple.eval(), "simplifying keeps the meaning");
        assert_eq!(simple.clone().simplify(), simple);
        assert!(tree.leaves().len() <= data.len());
    }
    again(data, |text| Prefix::parse(text));
    if let Some(path) = again(data, |text| Path::parse(text)) {
        take_apart(&path);
    }
    // A line with a path, and a table to look it up in.
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let (first, rest) = (lines.next().unwrap_or_default(), lines.next());
    let path = again(first, |text| Path::parse(text)).unwrap_or_default();
    if let Some(table) = again(rest.unwrap_or(data), |text| Dtab::parse(text)) {
        look_up(&table, &path);
    }
}

/// Parses, prints, and parses again.
fn again<T: Clone + Debug + Display + PartialEq>(
    text: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, NameError>,
) -> Option<T> {
    match parse(text) {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(parse(printed.as_bytes()).as_ref(), Ok(&value), "{printed}");
            Some(value)
        }
        Err(error) => {
            assert!(error.at <= text.len() && !error.to_string().is_empty(), "{error}");
            None
        }
    }
}

fn take_apart(path: &Path) {
    let raw: Vec<_> = path.raw_elements().map(|element| element.into_owned()).collect();
    assert_eq!(raw.len(), path.len());
    assert_eq!(Path::from_elements(raw.iter().map(Vec::as_slice)).as_ref(), Ok(path));
    assert_eq!(Path::from_bytes(Bytes::copy_from_slice(path.as_bytes())).as_ref(), Ok(path));
    for count in [0, 1, path.len() / 2, path.len(), path.len() + 1] {
        let (front, back) = (path.take(count), path.skip(count));
        assert_eq!(front.len() + back.len(), path.len());
        assert_eq!(&front.concat(&back), path);
        assert!(path.starts_with(&front));
    }
}

fn look_up(table: &Dtab, path: &Path) {
    let found = table.matches(path).count();
    assert!(found <= table.len());
    let tree = table.lookup(path);
    assert!(found > 0 || tree == NameTree::Neg);
    if let Ok(pairs) = table.to_pairs() {
        assert_eq!(Dtab::from_pairs(&pairs).as_ref(), Ok(table));
    }
    let simple = table.simplified();
    assert!(simple.len() <= table.len() && simple.simplified() == simple);
    assert_eq!(table.concat(&simple).len(), table.len() + simple.len());
}
