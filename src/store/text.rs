//! Tables as they come and go: as text, as JSON, and the tags of their versions.

use super::refusal::Refusal;
use super::storage::{Expect, Table, Version};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, IF_MATCH};
use muxgate_wire::name::{Dentry, Dtab, NameTree, Path, Prefix};
use serde::Deserialize;
use serde_json::{Value, json};

/// What a table looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A list of `{"prefix": ..., "dst": ...}`.
    Json,
    /// As it is written: `/a=>/b;/c=>/d`.
    Text,
}

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "application/dtab";

impl Form {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Text => TEXT,
        }
    }

    /// What the caller wants to read; JSON, if it does not say.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds = accepts.flat_map(|value| value.split(',')).map(media);
        match kinds.find(|kind| [JSON, TEXT, "text/plain"].contains(&kind.as_str())) {
            Some(kind) if kind != JSON => Self::Text,
            _ => Self::Json,
        }
    }

    fn sent(headers: &HeaderMap) -> Result<Self, Refusal> {
        let value = headers.get(CONTENT_TYPE).ok_or_else(|| {
            Refusal::bad(format!("the content has no type: say `Content-Type: {TEXT}` or `{JSON}`"))
        })?;
        match media(value.to_str().unwrap_or_default()).as_str() {
            JSON => Ok(Self::Json),
            TEXT => Ok(Self::Text),
            other => {
                Err(Refusal::bad(format!("content of type `{other}` is not read, but `{TEXT}` and `{JSON}`")))
            }
        }
    }

    /// A table in this form.
    ///
    /// # Errors
    /// If what others have put into the storage is no table.
    pub(super) fn show(self, table: &Table) -> Result<String, Refusal> {
        let dtab = stored(&table.dtab)?;
        Ok(match self {
            Self::Text => dtab.to_string(),
            Self::Json => to_json(&dtab).to_string(),
        })
    }
}

fn media(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads what is stored.
pub(super) fn stored(text: &str) -> Result<Dtab, Refusal> {
    Dtab::parse(text).map_err(|error| {
        Refusal(http::StatusCode::INTERNAL_SERVER_ERROR, format!("what is stored is no dtab: {error}"))
    })
}

pub(super) fn to_json(dtab: &Dtab) -> Value {
    let entry = |e: &Dentry| json!({ "prefix": e.prefix.as_str(), "dst": e.dst.to_string() });
    dtab.entries().iter().map(entry).collect()
}

#[derive(Deserialize)]
struct Entry {
    prefix: String,
    dst: String,
}

/// Reads the table in the content of a request.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Dtab, Refusal> {
    match Form::sent(headers)? {
        Form::Text => Dtab::parse(body)
            .map_err(|error| Refusal::bad(format!("line {}, column {}: {error}", error.line, error.column))),
        Form::Json => {
            let entries: Vec<Entry> = serde_json::from_slice(body).map_err(|error| {
                Refusal::bad(format!("want a JSON list of {{\"prefix\": ..., \"dst\": ...}}: {error}"))
            })?;
            if entries.len() > muxgate_wire::name::MAX_ENTRIES {
                return Err(Refusal::bad(format!("{} entries are too many", entries.len())));
            }
            let entries = entries.iter().enumerate().map(|(at, entry)| {
                let wrong = |what, error| Refusal::bad(format!("entry {}, {what}: {error}", at + 1));
                let prefix = Prefix::parse(&entry.prefix).map_err(|error| wrong("prefix", error))?;
                let dst: NameTree<Path> = NameTree::parse(&entry.dst).map_err(|error| wrong("dst", error))?;
                Ok(Dentry::new(prefix, dst))
            });
            Ok(entries.collect::<Result<Vec<_>, _>>()?.into())
        }
    }
}

/// The condition that `If-Match` makes; none if there is none. Tags are taken with quotes, as HTTP has them, and without,
/// as namerd has them. Of several, the one that is `now` counts.
///
/// # Errors
/// What is no tag.
pub(super) fn if_match(headers: &HeaderMap, now: Option<Version>) -> Result<Option<Expect>, Refusal> {
    let mut tags = Vec::new();
    for value in headers.get_all(IF_MATCH) {
        let wrong = || Refusal::bad(format!("`If-Match: {value:?}` holds no tag that was given here"));
        for tag in value.to_str().map_err(|_| wrong())?.split(',') {
            let tag = tag.trim();
            if tag == "*" {
                return Ok(Some(Expect::Present));
            }
            let tag = tag.strip_prefix("W/").unwrap_or(tag);
            let bare = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
            tags.push(Version::parse(bare).ok_or_else(wrong)?);
        }
    }
    let chosen = tags.iter().find(|tag| Some(**tag) == now).or(tags.first());
    Ok(chosen.map(|tag| Expect::Version(*tag)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_form_is_what_the_caller_says() {
        let wanted = |accept| Form::wanted(&headers(&[(ACCEPT, accept)]));
        assert_eq!(wanted("*/*"), Form::Json);
        assert_eq!(wanted("application/dtab"), Form::Text);
        assert_eq!(wanted("text/html, Application/DTAB;q=0.5"), Form::Text);
        assert_eq!(wanted("application/json, application/dtab"), Form::Json);
        assert_eq!(Form::wanted(&HeaderMap::new()), Form::Json);
    }

    #[test]
    fn what_cannot_be_read_is_marked() {
        let read =
            |kind, body: &str| read(&headers(&[(CONTENT_TYPE, kind)]), body.as_bytes()).map_err(|r| r.1);
        let error = read(TEXT, "/a => /b ;\n/c = /d").unwrap_err();
        assert!(error.starts_with("line 2, column 4: ") && error.contains("/c [=] /d"), "{error}");
        let error = read(JSON, r#"[{"prefix":"/a","dst":"/b"},{"prefix":"/c","dst":"/d e"}]"#).unwrap_err();
        assert!(error.starts_with("entry 2, dst: ") && error.contains("[e]"), "{error}");
        assert!(read("text/plain", "/a=>/b").unwrap_err().contains("text/plain"));
        let weights = read("application/dtab; charset=utf-8", "/a=>0.001 * /b & 3 * /c").unwrap();
        let again = read(JSON, &to_json(&weights).to_string()).unwrap();
        assert_eq!(again, weights);
        assert_eq!(weights.to_string(), "/a=>0.001*/b & 3*/c");
    }

    #[test]
    fn tags_are_read_in_every_form() {
        let tag = |text| if_match(&headers(&[(IF_MATCH, text)]), Some(Version(2))).map_err(|_| ());
        let one = Ok(Some(Expect::Version(Version(1))));
        for form in ["AAAAAAAAAAE=", "\"AAAAAAAAAAE=\"", "W/\"AAAAAAAAAAE=\"", " AAAAAAAAAAE "] {
            assert_eq!(tag(form), one, "{form}");
        }
        assert_eq!(tag("\"AAAAAAAAAAE=\", \"AAAAAAAAAAI=\""), Ok(Some(Expect::Version(Version(2)))));
        assert_eq!(tag("*"), Ok(Some(Expect::Present)));
        assert_eq!(tag("nonsense"), Err(()));
        assert_eq!(tag(""), Err(()));
        assert_eq!(if_match(&HeaderMap::new(), None), Ok(None));
    }
}
