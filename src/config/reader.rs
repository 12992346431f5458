//! One map of a file, read key by key. Every getter notes what is wrong and returns nothing then.

mod times;

use super::locate;
use super::node::{Key, Node, Value};
use super::problem::{Problems, position};
use super::suggest::nearest;
use muxgate_wire::name::{NameError, Path, Prefix, What};
use std::ops::{Range, RangeInclusive};

/// What readers share: the text and the mistakes found in it.
pub(super) struct File<'a> {
    pub text: &'a str,
    pub problems: Problems,
}

/// A kind of map: what it is called in messages, its keys, and words that people bring from elsewhere.
pub(super) struct Shape {
    /// As in "unknown key `x` in a listener".
    pub what: &'static str,
    pub keys: &'static [&'static str],
    /// A key that we do not have, and what to do instead.
    pub strangers: &'static [(&'static str, &'static str)],
}

/// A map whose keys are all known.
pub(super) struct Fields<'a> {
    file: &'a File<'a>,
    shape: &'static Shape,
    entries: &'a [(Key, Node)],
    pub at: Range<usize>,
}

impl<'a> Fields<'a> {
    /// Opens a map; unknown and repeated keys are noted at once.
    pub fn open(file: &'a File<'a>, shape: &'static Shape, node: &'a Node) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let help = format!("write `key: value` lines; the keys are {}", shape.keys.join(", "));
            file.problems.add(
                node.at.clone(),
                format!("{} is a map, this is {}", shape.what, node.kind()),
                help,
            );
            return None;
        };
        let fields = Self { file, shape, entries, at: node.at.clone() };
        fields.check_keys();
        Some(fields)
    }

    fn check_keys(&self) {
        for (index, (key, _)) in self.entries.iter().enumerate() {
            let earlier = self.entries.iter().take(index).find(|(other, _)| other.name == key.name);
            if earlier.is_some() {
                self.file.problems.add(
                    key.at.clone(),
                    format!("`{}` is given twice in {}", key.name, self.shape.what),
                    "keep one of the two",
                );
            }
        }
        for key in self.unknown_keys() {
            let message = format!("unknown key `{}` in {}", key.name, self.shape.what);
            self.file.problems.add(key.at.clone(), message, self.advice(key));
        }
    }

    fn unknown_keys(&self) -> impl Iterator<Item = &'a Key> {
        let known = self.shape.keys;
        self.entries.iter().map(|(key, _)| key).filter(|key| !known.contains(&key.name.as_str()))
    }

    /// What to write instead of an unknown key.
    fn advice(&self, key: &Key) -> String {
        let stranger = self.shape.strangers.iter().find(|(name, _)| *name == key.name);
        match (stranger, nearest(&key.name, self.shape.keys.iter().copied())) {
            (Some((_, advice)), _) => (*advice).to_string(),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => format!("the keys of {} are {}", self.shape.what, self.shape.keys.join(", ")),
        }
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(self.shape.keys.contains(&key), "{key} is read but not declared");
        self.entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node)
    }

    /// Where a key stands, or the whole map.
    pub fn place(&self, key: &str) -> Range<usize> {
        self.entries.iter().find(|(k, _)| k.name == key).map_or(self.at.clone(), |(k, _)| k.at.clone())
    }

    /// Notes that a key must be there and is not, unless an unknown key was advised to become this one.
    pub fn missing(&self, key: &str, help: &str) {
        let quoted = format!("`{key}`");
        let meant = self.unknown_keys().any(|other| self.advice(other).contains(&quoted));
        if self.get(key).is_none() && !meant {
            self.file.problems.add(self.at.clone(), format!("{} has no `{key}`", self.shape.what), help);
        }
    }

    /// Notes a mistake at a key.
    pub fn wrong(&self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let at = self.get(key).map_or_else(|| self.place(key), |node| node.at.clone());
        self.file.problems.add(at, message, help);
    }

    /// Notes a mistake at a key of the map that is the value of a key.
    pub fn wrong_in(&self, key: &str, inner: &str, message: impl Into<String>, help: impl Into<String>) {
        let inner = match self.get(key).map(|node| &node.value) {
            Some(Value::Map(entries)) => entries.iter().find(|(key, _)| key.name == inner),
            _ => None,
        };
        match inner {
            Some((_, node)) => self.file.problems.add(node.at.clone(), message, help),
            None => self.wrong(key, message, help),
        }
    }

    /// The line on which the map begins, from 1.
    pub fn line(&self) -> usize {
        position(self.file.text, self.at.start).0
    }

    /// Notes a mistake at an item of the list that is the value of a key.
    pub fn wrong_item(&self, key: &str, index: usize, message: impl Into<String>, help: impl Into<String>) {
        let item = match self.get(key).map(|node| &node.value) {
            Some(Value::List(items)) => items.get(index),
            _ => None,
        };
        match item {
            Some(item) => self.file.problems.add(item.at.clone(), message, help),
            None => self.wrong(key, message, help),
        }
    }

    /// Notes keys that only another kind of this map has.
    pub fn stray(&self, keys: &[&str], kind: &str) {
        for key in keys.iter().filter(|key| self.get(key).is_some()) {
            let message = format!("kind `{kind}` has no `{key}`");
            self.file.problems.add(self.place(key), message, "leave the key out, or change the kind");
        }
    }

    fn mistyped(&self, key: &str, node: &Node, wanted: &str, help: &str) {
        let message = format!("`{key}` is {wanted}, this is {}", node.kind());
        self.file.problems.add(node.at.clone(), message, help);
    }

    /// Any text.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        let node = self.get(key)?;
        match &node.value {
            Value::Text(text) => return Some(text),
            Value::List(_) | Value::Map(_) => self.mistyped(key, node, "text", ""),
            _ => self.mistyped(key, node, "text", "put it in quotes"),
        }
        None
    }

    /// A text that is not empty.
    pub fn word(&self, key: &str) -> Option<&'a str> {
        let text = self.text(key)?;
        if text.trim().is_empty() {
            self.wrong(key, format!("`{key}` is empty"), "write a text, or leave the key out");
            return None;
        }
        Some(text)
    }

    /// True or false.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        self.mistyped(key, node, "true or false", "");
        None
    }

    /// A whole number within bounds. `zero` says what 0 would mean, and what to do instead.
    pub fn count(&self, key: &str, bounds: RangeInclusive<u64>, zero: &str) -> Option<u64> {
        let node = self.get(key)?;
        let Value::Int(value) = node.value else {
            let quoted = matches!(&node.value, Value::Text(text) if text.parse::<u64>().is_ok());
            self.mistyped(key, node, "a whole number", if quoted { "write it without quotes" } else { "" });
            return None;
        };
        match u64::try_from(value) {
            Ok(value) if bounds.contains(&value) => return Some(value),
            Ok(0) if !zero.is_empty() => self.wrong(key, format!("`{key}` is 0"), zero),
            _ => {
                let bounds = format!("it goes from {} to {}", bounds.start(), bounds.end());
                self.wrong(key, format!("`{key}` cannot be {value}"), bounds);
            }
        }
        None
    }

    /// A number within bounds, whole or not.
    pub fn ratio(&self, key: &str, bounds: RangeInclusive<f64>, help: &str) -> Option<f64> {
        let node = self.get(key)?;
        let value = match node.value {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
            _ => {
                self.mistyped(key, node, "a number", help);
                return None;
            }
        };
        if !bounds.contains(&value) {
            self.wrong(
                key,
                format!("`{key}` cannot be {value}: it goes from {} to {}", bounds.start(), bounds.end()),
                help,
            );
            return None;
        }
        Some(value)
    }

    /// Whether the value is the word `none`.
    pub fn is_none(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Node { value: Value::Text(text), .. }) if text == "none")
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, key: &str, words: &[(&'static str, T)]) -> Option<T> {
        let node = self.get(key)?;
        let list = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let Value::Text(text) = &node.value else {
            self.mistyped(key, node, "a word", &format!("there are {list}"));
            return None;
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let help = match nearest(text, words.iter().map(|(word, _)| *word)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if words.len() == 1 => format!("there is only {list}"),
            None => format!("there are {list}"),
        };
        self.wrong(key, format!("`{key}` cannot be `{text}`"), help);
        None
    }

    /// A path that is not `/`.
    pub fn path(&self, key: &str) -> Option<Path> {
        let text = self.word(key)?;
        match Path::parse(text) {
            Ok(path) if path.is_empty() => {
                self.wrong(key, format!("`{key}` needs at least one element"), "for example /svc");
                None
            }
            Ok(path) => Some(path),
            Err(error) => self.bad_name(key, text, &error),
        }
    }

    /// A path in which `*` stands for any one element.
    pub fn prefix(&self, key: &str) -> Option<Prefix> {
        let text = self.word(key)?;
        Prefix::parse(text).map_err(|error| self.bad_name::<Prefix>(key, text, &error)).ok()
    }

    fn bad_name<T>(&self, key: &str, text: &str, error: &NameError) -> Option<T> {
        let help = match text.starts_with('/') {
            true if error.what == What::Wildcard => {
                "`/a/*/b` has any one element between a and b".to_string()
            }
            true => "elements hold letters, digits and _ : . # $ % -; write other bytes as \\xHH".to_string(),
            false => format!("names begin with a slash: /{text}"),
        };
        self.in_text(key, text, error.at, format!("`{key}` is no path: {}", error.what), help);
        None
    }

    /// Notes a mistake at a byte of a text.
    pub fn in_text(
        &self,
        key: &str,
        text: &str,
        byte: usize,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let at = self.get(key).map_or(self.at.clone(), |node| node.at.clone());
        self.file.problems.add(locate::within(self.file.text, &at, text, byte), message, help);
    }

    /// A map below a key.
    pub fn section(&self, key: &str, shape: &'static Shape) -> Option<Fields<'a>> {
        Fields::open(self.file, shape, self.get(key)?)
    }

    /// A map below a key that may be a word as well; `help` says what can be written.
    pub fn section_or_word(&self, key: &str, shape: &'static Shape, help: &str) -> Option<Fields<'a>> {
        let node = self.get(key)?;
        if !matches!(node.value, Value::Map(_)) {
            self.mistyped(key, node, "a map", help);
            return None;
        }
        self.section(key, shape)
    }

    /// A map below a key that has a `kind`. People who write only the kind are told how.
    pub fn section_of_kind(
        &self,
        key: &str,
        shape: &'static Shape,
        kinds: &[&'static str],
    ) -> Option<Fields<'a>> {
        let node = self.get(key)?;
        if let Value::Text(text) = &node.value
            && let Some(kind) = nearest(text, kinds.iter().copied())
        {
            self.mistyped(key, node, "a map", &format!("write `{key}: {{kind: {kind}}}`"));
            return None;
        }
        self.section(key, shape)
    }

    /// The texts in a list below a key; none of them is empty.
    pub fn words(&self, key: &str, help: &str) -> Option<Vec<&'a str>> {
        let node = self.get(key)?;
        let Value::List(items) = &node.value else {
            self.mistyped(key, node, "a list of texts", help);
            return None;
        };
        let mut words = Vec::new();
        for item in items {
            match &item.value {
                Value::Text(text) if !text.trim().is_empty() => words.push(text.as_str()),
                Value::Text(_) => {
                    self.file.problems.add(item.at.clone(), format!("a text of `{key}` is empty"), help);
                }
                _ => {
                    let message = format!("`{key}` is a list of texts, this is {}", item.kind());
                    self.file.problems.add(item.at.clone(), message, help);
                }
            }
        }
        (words.len() == items.len()).then_some(words)
    }

    /// The maps in a list below a key. Nothing if some item has no usable form, or if there is no such key.
    pub fn list(&self, key: &str, shape: &'static Shape) -> Option<Vec<Fields<'a>>> {
        let node = self.get(key)?;
        let Value::List(items) = &node.value else {
            self.mistyped(key, node, "a list", "begin each item with a dash: `- ...`");
            return None;
        };
        let read: Vec<_> = items.iter().filter_map(|item| Fields::open(self.file, shape, item)).collect();
        (read.len() == items.len()).then_some(read)
    }

    /// A map below a key, with a shape for each `kind`; as of [`Fields::list_by_kind`].
    pub fn section_by_kind(
        &self,
        key: &str,
        unknown: &'static Shape,
        shape_of: impl Fn(&str) -> Option<&'static Shape>,
    ) -> Option<Fields<'a>> {
        self.open_by_kind(self.get(key)?, unknown, &shape_of)
    }

    fn open_by_kind(
        &self,
        item: &'a Node,
        unknown: &'static Shape,
        shape_of: &impl Fn(&str) -> Option<&'static Shape>,
    ) -> Option<Fields<'a>> {
        let Value::Map(entries) = &item.value else { return Fields::open(self.file, unknown, item) };
        let kind = entries.iter().find(|(key, _)| key.name == "kind").map(|(_, node)| &node.value);
        let shape = match kind {
            Some(Value::Text(kind)) => shape_of(kind),
            _ => None,
        };
        match shape {
            Some(shape) => Fields::open(self.file, shape, item),
            None => Some(Self { file: self.file, shape: unknown, entries, at: item.at.clone() }),
        }
    }

    /// The same, with a shape for each `kind`. An item of a kind that `shape_of` does not know is opened as `unknown`, and its
    /// keys are not judged.
    pub fn list_by_kind(
        &self,
        key: &str,
        unknown: &'static Shape,
        shape_of: impl Fn(&str) -> Option<&'static Shape>,
    ) -> Option<Vec<Fields<'a>>> {
        let node = self.get(key)?;
        let Value::List(items) = &node.value else {
            self.mistyped(key, node, "a list", "begin each item with a dash: `- ...`");
            return None;
        };
        let read: Vec<_> =
            items.iter().filter_map(|item| self.open_by_kind(item, unknown, &shape_of)).collect();
        (read.len() == items.len()).then_some(read)
    }
}
