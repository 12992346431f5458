//! Which of the words we know was meant.

/// The nearest of `known` to a word that is not one of them, if it is near enough to be a slip.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(word);
    let (best, distance) = known
        .into_iter()
        .map(|candidate| (candidate, distance(&wanted, &fold(candidate))))
        .min_by_key(|(_, distance)| *distance)?;
    (distance <= wanted.len().max(best.len()) / 3).then_some(best)
}

/// `max_size`, `max-size` and `MaxSize` differ from `maxSize` in dress only.
fn fold(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).take(64).collect()
}

/// Changes of one character, and swaps of two neighbours, that lead from one word to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let (mut two_above, mut above) = (vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>());
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = above[j] + usize::from(x != y);
            let mut best = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(two_above[j - 1] + 1);
            }
            row.push(best);
        }
        two_above = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["port", "name", "maxConcurrentRequests", "thriftMethodInDst"];
        for (word, expected) in [
            ("prot", Some("port")),
            ("Port", Some("port")),
            ("nmae", Some("name")),
            ("max_concurrent_requests", Some("maxConcurrentRequests")),
            ("maxConcurentRequest", Some("maxConcurrentRequests")),
            ("tls", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
