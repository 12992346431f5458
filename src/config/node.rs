//! YAML as a tree in which every node knows where it stands.
//!
//! Structures derived for serde stop at the first unknown key. This tree is read first and understood after, so that
//! all mistakes of a file are found together.

use super::problem::Problems;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, Spanned};
use std::fmt;
use std::ops::Range;

/// Most nodes of a file: far more than people write, far less than hurts.
const MAX_NODES: usize = 20_000;

/// Deepest nesting: our own keys need seven.
const MAX_DEPTH: usize = 16;

/// Most uses of anchors; each copies what it stands for.
const MAX_ALIASES: usize = 200;

/// A value and the bytes of the file that hold it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub at: Range<usize>,
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub at: Range<usize>,
    pub name: String,
}

impl Node {
    /// Reads a file. A file without content is an empty map.
    pub fn read(text: &str, problems: &Problems) -> Option<Node> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            duplicate_keys: DuplicateKeyPolicy::PassThrough,
            budget: serde_saphyr::budget! {
                max_nodes: MAX_NODES,
                max_depth: MAX_DEPTH,
                max_documents: 1,
                max_aliases: MAX_ALIASES,
                max_anchors: MAX_ALIASES,
            },
        };
        match serde_saphyr::from_str_with_options::<Option<Node>>(text, options) {
            Ok(node) => Some(node.unwrap_or(Node { at: 0..0, value: Value::Map(Vec::new()) })),
            Err(error) => {
                let at = error.location().map_or(0, |location| byte_of(text, location));
                match limit(&error) {
                    Some((message, help)) => problems.add(at..at, message, help),
                    None => problems.add(at..at, message(&error), advice(&error)),
                }
                None
            }
        }
    }

    /// What this is, in words, for messages.
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(value) => format!("{value}"),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(value) if value.len() <= 40 && !value.contains('\n') => format!("the text `{value}`"),
            Value::Text(_) => "text".into(),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a map".into(),
        }
    }
}

/// What a file has too much of, and what to do; nothing for other mistakes.
fn limit(error: &Error) -> Option<(String, &'static str)> {
    let one = "one file is one configuration: take the `---` line and what is behind it out";
    let Error::Budget { breach, .. } = error else {
        let several = matches!(error, Error::MultipleDocuments { .. });
        return several.then(|| ("the file holds more than one YAML document".into(), one));
    };
    Some(match breach {
        BudgetBreach::Documents { .. } => ("the file holds more than one YAML document".into(), one),
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => (
            format!("the file holds more than {MAX_NODES} values"),
            "long tables belong into `dtab`, as one text",
        ),
        BudgetBreach::Depth { .. } => {
            (format!("values are nested more than {MAX_DEPTH} levels deep"), "our own keys need seven")
        }
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::AliasAnchorRatio { .. } => (
            format!("too many anchors (`&name`), or uses of them (`*name`): at most {MAX_ALIASES} of each"),
            "write some of them out",
        ),
        _ => ("the file is larger than its content can need".into(), "write it without YAML's special forms"),
    })
}

/// The library's message without the place, which is shown apart.
fn message(error: &Error) -> String {
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let text = text.split(" at line ").next().unwrap_or_default().trim_end_matches([':', ' ', ',']);
    format!("not readable as YAML: {text}")
}

/// What to do about the mistakes that people make most.
fn advice(error: &Error) -> &'static str {
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    match () {
        () if text.contains("tab") => "indent with blanks",
        () if text.contains("indicator") => "is a `]`, a `}` or a quote missing before this?",
        () => "",
    }
}

/// The byte of a place that is known by line and column only.
fn byte_of(text: &str, location: Location) -> usize {
    let (line, column) = (location.line() as usize, location.column() as usize);
    let Some(start) =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).reduce(|a, b| a + b)
    else {
        return column_in(text, column);
    };
    start + column_in(text.get(start..).unwrap_or_default(), column)
}

/// The byte of a column, from 1, of the first line of a text.
fn column_in(text: &str, column: usize) -> usize {
    let line = text.lines().next().unwrap_or_default();
    line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at)
}

fn bytes_of(location: Location) -> Range<usize> {
    let span = location.span();
    let start = span.byte_offset().unwrap_or_default() as usize;
    start..start.saturating_add(span.byte_len().unwrap_or_default() as usize)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Node { at: bytes_of(spanned.referenced), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Key { at: bytes_of(spanned.referenced), name: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Build)
    }
}

struct Build;

impl<'de> Visitor<'de> for Build {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Int(i128::try_from(value).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}
