//! The recorded bytes, by name.

use serde_json::Value;
use std::sync::OnceLock;

fn load(file: &str) -> Value {
    let path = format!("{}/../../tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// A case from the field.
pub fn case(file: &str) -> Value {
    load(&format!("cases/{file}.json"))
}

/// The vectors of a section whose names begin with one of the prefixes.
pub fn named(section: &str, prefixes: &[&str]) -> Vec<&'static Value> {
    static ALL: OnceLock<Value> = OnceLock::new();
    let all = ALL.get_or_init(|| load("vectors.json"));
    let section = all[section].as_array().unwrap();
    section.iter().filter(|vector| prefixes.iter().any(|prefix| name(vector).starts_with(prefix))).collect()
}

/// One vector of a section.
pub fn one(section: &str, full_name: &str) -> &'static Value {
    named(section, &[full_name]).into_iter().find(|vector| name(vector) == full_name).unwrap()
}

pub fn name(vector: &Value) -> &str {
    vector["name"].as_str().unwrap()
}

/// The bytes of a vector. One is written down only in part: its 100,000 nested structs go on as they begin.
pub fn bytes_of(vector: &Value) -> Vec<u8> {
    match vector["hex"].as_str().and_then(|text| text.strip_suffix("...")) {
        None => hex(&vector["hex"]),
        Some(start) => {
            assert_eq!(name(vector), "th-bin-deep");
            let nested = unhex("0c0001").repeat(100_000);
            let bytes = [&unhex("80010001000000016100000001")[..], &nested].concat();
            assert!(to_hex(&bytes).starts_with(start));
            bytes
        }
    }
}

/// Hex text, or a list of hex texts and repetitions.
pub fn hex(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => unhex(text),
        Value::Array(parts) => parts.iter().flat_map(hex).collect(),
        Value::Object(part) => {
            unhex(part["repeat"].as_str().unwrap()).repeat(part["times"].as_u64().unwrap() as usize)
        }
        other => panic!("not hex: {other}"),
    }
}

pub fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "odd hex");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts the frame length in front.
pub fn framed(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes()[..], content].concat()
}
