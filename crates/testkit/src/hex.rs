//! Bytes as the cases write them: lower-case hexadecimal without spaces.

/// The bytes that `text` stands for; white space is skipped.
///
/// # Panics
/// If it is not hexadecimal, which is a mistake in the test.
pub fn decode(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap_or_else(|| panic!("not hexadecimal: {text}")) as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "an odd number of digits: {text}");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// `bytes` in lower-case hexadecimal.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_and_back() {
        assert_eq!(super::decode("00ff 7a"), [0, 255, 0x7a]);
        assert_eq!(super::encode(&[0, 255, 0x7a]), "00ff7a");
    }
}
