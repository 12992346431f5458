//! Where a byte of a text stands in the file that holds it.
//!
//! YAML takes indentation, quotes and line ends away, but never changes the order of the characters that are left. So
//! the place of a character is found by walking both texts and skipping blanks. This works for literal and folded
//! blocks, plain and quoted text; where an escape changes the characters, the place of the whole value is given.

use std::ops::Range;

/// The bytes in `source` of the character at byte `offset` of `content`, which the value at `at` holds.
pub(super) fn within(source: &str, at: &Range<usize>, content: &str, offset: usize) -> Range<usize> {
    exact(source, at.start, content, offset).unwrap_or_else(|| at.clone())
}

fn exact(source: &str, start: usize, content: &str, offset: usize) -> Option<Range<usize>> {
    let mut place = start + header(source.get(start..)?)?;
    let before = content.get(..offset)?;
    for wanted in before.chars().filter(|c| !c.is_whitespace()) {
        place = next(source, place)?;
        let found = source.get(place..)?.chars().next()?;
        if found != wanted {
            return None;
        }
        place += found.len_utf8();
    }
    match content.get(offset..)?.chars().next() {
        Some(marked) if !marked.is_whitespace() => {
            let place = next(source, place)?;
            source.get(place..)?.starts_with(marked).then(|| place..place + marked.len_utf8())
        }
        // A blank or the end: just behind what was read.
        _ => Some(place..place),
    }
}

/// The next byte that is no blank.
fn next(source: &str, from: usize) -> Option<usize> {
    let rest = source.get(from..)?;
    Some(from + rest.find(|c: char| !c.is_whitespace())?)
}

/// Length of what stands before the characters of a value: the rest of the line after `|` or `>`, or a quote.
fn header(value: &str) -> Option<usize> {
    match value.chars().next() {
        Some('|' | '>') => value.find('\n'),
        Some('"' | '\'') => Some(1),
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::within;

    /// The file's text from the place that was found to the end of its line.
    fn found<'a>(source: &'a str, content: &str, offset: usize) -> &'a str {
        let start = source.find("dtab:").map_or(0, |at| at + 5);
        let start = start + source[start..].find(|c: char| c != ' ').unwrap_or(0);
        let at = within(source, &(start..source.len()), content, offset);
        source[at.start..].lines().next().unwrap_or_default()
    }

    #[test]
    fn every_form_of_text_is_followed() {
        let content = "/a => /b ;\n/c => ?x ;\n";
        let at = content.find('?').unwrap_or(0);
        for source in [
            "dtab: |\n  /a => /b ;\n  /c => ?x ;\n",
            "dtab: |  # names\n\n      /a => /b ;\n\n      /c => ?x ;\nnext: 1\n",
            "dtab: >-\n  /a => /b ;\n  /c => ?x ;\n",
            "dtab: \"/a => /b ; /c => ?x ;\"\n",
            "dtab: '/a => /b ; /c => ?x ;'\n",
            "dtab: /a => /b ;\n  /c => ?x ;\n",
        ] {
            assert!(found(source, content, at).starts_with("?x ;"), "{source}");
        }
    }

    #[test]
    fn the_end_is_behind_the_last_character() {
        assert_eq!(found("dtab: |\n  /a => /b  # why\nnext: 1\n", "/a =>", 5), " /b  # why");
    }

    #[test]
    fn an_escape_falls_back_to_the_whole_value() {
        assert_eq!(found("dtab: \"/\\x61 => ?\"\n", "/a => ?", 6), "\"/\\x61 => ?\"");
    }
}
