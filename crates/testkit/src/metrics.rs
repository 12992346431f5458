//! A strict reader of the Prometheus and OpenMetrics text formats: what it takes, any scraper takes.
//!
//! It refuses a family with two TYPE lines, samples outside of their family, label names or escapes that the format does
//! not have, a value that is no number, and a series that comes twice.

use std::collections::{BTreeMap, HashSet};

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The full name, with `_total`, `_bucket` and the like.
    pub name: String,
    /// Labels, by name.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

/// All that one scrape has.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    /// Types by family.
    pub types: BTreeMap<String, String>,
    /// Samples in their order.
    pub samples: Vec<Sample>,
}

impl Exposition {
    /// The sum of the samples called `name` that have all of `labels`; 0 without one.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.with(name, labels).map(|s| s.value).sum()
    }

    /// The samples called `name` that have all of `labels`.
    pub fn with<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Sample> {
        let has = |s: &Sample| labels.iter().all(|(k, v)| s.labels.get(*k).is_some_and(|have| have == v));
        self.samples.iter().filter(move |s| s.name == name && has(s))
    }
}

/// Suffixes by which a sample's name may differ from its family's, by type.
const SUFFIXES: [(&str, &[&str]); 7] = [
    ("counter", &["", "_total", "_created"]),
    ("gauge", &[""]),
    ("histogram", &["_bucket", "_sum", "_count", "_created"]),
    ("summary", &["", "_sum", "_count", "_created"]),
    ("info", &["_info"]),
    ("unknown", &[""]),
    ("untyped", &[""]),
];

/// Reads a whole page.
///
/// # Errors
/// The number of the first line that is wrong, and why.
pub fn parse(text: &str) -> Result<Exposition, String> {
    if !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        reader.line(line).map_err(|why| format!("line {}: {why}: {line}", number + 1))?;
    }
    Ok(reader.page)
}

#[derive(Default)]
struct Reader {
    page: Exposition,
    /// The family whose samples may come now.
    family: String,
    /// Families that have ended, with or without a type.
    over: HashSet<String>,
    series: HashSet<String>,
    ended: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if self.ended {
            return Err("there is more after # EOF".into());
        }
        if line.is_empty() {
            return Ok(());
        }
        let Some(comment) = line.strip_prefix('#') else { return self.sample(line) };
        let words: Vec<&str> = comment.trim_start().splitn(3, ' ').collect();
        match words[..] {
            ["EOF"] => self.ended = true,
            ["TYPE", family, kind] => {
                if !SUFFIXES.iter().any(|(known, _)| *known == kind) {
                    return Err(format!("no such type: {kind}"));
                }
                self.enter(family)?;
                if self.page.types.insert(family.to_owned(), kind.to_owned()).is_some() {
                    return Err(format!("a second TYPE of {family}"));
                }
            }
            ["HELP", family, text] => {
                self.enter(family)?;
                unescape(text, false)?;
            }
            ["HELP" | "UNIT", family, ..] => self.enter(family)?,
            _ => (),
        }
        Ok(())
    }

    /// Goes on with a family, or to another that has not been before.
    fn enter(&mut self, family: &str) -> Result<(), String> {
        if !is_name(family, true) {
            return Err(format!("not a metric name: {family}"));
        }
        if family != self.family {
            if self.over.contains(family) {
                return Err(format!("{family} goes on after another family"));
            }
            self.over.insert(std::mem::replace(&mut self.family, family.to_owned()));
        }
        Ok(())
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let at = line.find(['{', ' ']).ok_or("no value")?;
        let (name, rest) = line.split_at(at);
        if !is_name(name, true) {
            return Err(format!("not a metric name: {name}"));
        }
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(inside) => labels(inside)?,
            None => (BTreeMap::new(), rest),
        };
        let rest = rest.strip_prefix(' ').ok_or("no space before the value")?;
        // An exemplar is for OpenMetrics only, and has a form of its own: labels, value, time.
        let (number, exemplar) = rest.split_once(" # ").map_or((rest, None), |(n, e)| (n, Some(e)));
        if let Some(exemplar) = exemplar {
            let inside = exemplar.strip_prefix('{').ok_or("an exemplar without labels")?;
            numbers(labels_of_exemplar(inside)?)?;
        }
        let value = numbers(number)?;
        self.belongs(name)?;
        if !self.series.insert(format!("{name}{labels:?}")) {
            return Err("this series has been before".into());
        }
        self.page.samples.push(Sample { name: name.to_owned(), labels, value });
        Ok(())
    }

    /// Checks that a sample stands in its family.
    fn belongs(&mut self, name: &str) -> Result<(), String> {
        if let Some(suffix) = name.strip_prefix(self.family.as_str())
            && let Some(kind) = self.page.types.get(&self.family)
            && SUFFIXES.iter().any(|(k, suffixes)| k == kind && suffixes.contains(&suffix))
        {
            return Ok(());
        }
        // Without a TYPE line a sample is a family by itself.
        self.enter(name)?;
        match self.page.types.get(name) {
            Some(kind) => Err(format!("{name} does not fit its type, {kind}")),
            None => Ok(()),
        }
    }
}

fn labels_of_exemplar(inside: &str) -> Result<&str, String> {
    let (_, rest) = labels(inside)?;
    rest.strip_prefix(' ').ok_or_else(|| "no space before an exemplar's value".into())
}

/// A value, and after it perhaps a time.
fn numbers(text: &str) -> Result<f64, String> {
    let mut words = text.split(' ');
    let value = number(words.next().unwrap_or(""))?;
    if let Some(time) = words.next() {
        number(time)?;
    }
    if words.next().is_some() {
        return Err("too many words".into());
    }
    Ok(value)
}

fn number(word: &str) -> Result<f64, String> {
    match word {
        "+Inf" | "Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        _ if word.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => {
            word.parse().map_err(|_| format!("not a number: {word}"))
        }
        _ => Err(format!("not a number: {word}")),
    }
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut text: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut found = BTreeMap::new();
    while !text.starts_with('}') {
        let (name, rest) = text.split_once("=\"").ok_or("a label without a value")?;
        if !is_name(name, false) {
            return Err(format!("not a label name: {name}"));
        }
        let end = end_of_value(rest).ok_or("a label's value does not end")?;
        let (value, rest) = rest.split_at(end);
        if found.insert(name.to_owned(), unescape(value, true)?).is_some() {
            return Err(format!("the label {name} has been before"));
        }
        let rest = &rest[1..];
        text = match rest.strip_prefix(',') {
            Some(more) => more,
            None if rest.starts_with('}') => rest,
            None => return Err("neither a comma nor a brace after a label".into()),
        };
    }
    Ok((found, &text[1..]))
}

/// Where the quote is that ends a value.
fn end_of_value(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|b| {
        let ends = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        ends
    })
}

fn unescape(text: &str, quotes: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if quotes => '"',
                other => return Err(format!("no such escape: \\{}", other.unwrap_or(' '))),
            },
            '"' if quotes => return Err("a quote without a backslash".into()),
            other => other,
        });
    }
    Ok(out)
}

fn is_name(text: &str, colons: bool) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || (colons && b == b':');
    !text.is_empty() && text.bytes().all(good) && !text.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_page_is_read() {
        let page = "# HELP calls_total Calls, \\\\ and more.\n# TYPE calls_total counter\n\
            calls_total{method=\"we\\\"ird\\\\\\n\u{e9}\",to=\"a\"} 3\ncalls_total{method=\"x\",to=\"a\",} 4 17\n\
            # TYPE took histogram\ntook_bucket{le=\"+Inf\"} 2 # {trace_id=\"a}b\"} 0.1 1.5\ntook_sum 1e-3\ntook_count 2\n\
            bare NaN\n# EOF\n";
        let read = parse(page).unwrap();
        assert_eq!(read.sum("calls_total", &[("to", "a")]), 7.0);
        assert_eq!(read.samples[0].labels["method"], "we\"ird\\\n\u{e9}");
        assert_eq!(read.types["took"], "histogram");
        assert_eq!(read.samples.len(), 6);
    }

    #[test]
    fn open_metrics_counters_have_a_suffix_that_their_type_line_lacks() {
        let read =
            parse("# TYPE calls counter\ncalls_total{a=\"1\"} 1\ncalls_total{a=\"2\"} 1\n# EOF\n").unwrap();
        assert_eq!(read.sum("calls_total", &[]), 2.0);
    }

    #[test]
    fn what_a_scraper_would_refuse_is_refused() {
        for (page, why) in [
            ("a 1", "the last line has no end"),
            ("a{b=\"1\"} 1\na{b=\"1\"} 2\n", "this series has been before"),
            ("a{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 2\n", "this series has been before"),
            ("# TYPE a counter\n# TYPE a counter\n", "a second TYPE"),
            ("# TYPE a counter\na 1\nb 1\na{x=\"1\"} 1\n", "goes on after another family"),
            ("# TYPE a histogram\na 1\n", "does not fit its type"),
            ("# TYPE a thing\n", "no such type"),
            ("a{b-c=\"1\"} 1\n", "not a label name"),
            ("a{b=\"1\\t\"} 1\n", "no such escape"),
            ("a{b=\"1\"2\"} 1\n", "neither a comma nor a brace"),
            ("a{b=\"1} 1\n", "does not end"),
            ("a{b=\"1\",b=\"2\"} 1\n", "the label b has been before"),
            ("1a 1\n", "not a metric name"),
            ("a one\n", "not a number"),
            ("a infinity\n", "not a number"),
            ("# EOF\na 1\n", "there is more after"),
        ] {
            let error = parse(page).unwrap_err();
            assert!(error.contains(why), "{page:?}: {error}");
        }
    }
}
