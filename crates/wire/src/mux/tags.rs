//! Free tags of a client: the smallest one is taken, as Finagle does, so that tables stay dense. A tag that was given back
//! may rest for a while: if a server answers it a second time by mistake, nobody new is there to be hit.

use super::frame::Tag;
use std::collections::VecDeque;

/// Two levels of bits, 1 = free: a bit per tag, and a bit per word that is not all taken.
#[derive(Debug)]
pub(super) struct FreeTags {
    words: Vec<u64>,
    summary: Vec<u64>,
    resting: VecDeque<Tag>,
    rest: usize,
}

impl FreeTags {
    /// `count` tags from [`Tag::FIRST`] upwards, as far as tags go; `rest` of them wait after their use until others were
    /// given back.
    pub(super) fn new(count: usize, rest: usize) -> Self {
        let count = count.min((Tag::MAX.get() - Tag::FIRST.get()) as usize + 1);
        let words = ones(count);
        Self { summary: ones(words.len()), words, resting: VecDeque::new(), rest }
    }

    /// Takes the smallest free tag.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Tag> {
        self.take_rested().or_else(|| self.resting.pop_front())
    }

    #[inline]
    fn take_rested(&mut self) -> Option<Tag> {
        let (high, summary) = self.summary.iter_mut().enumerate().find(|(_, bits)| **bits != 0)?;
        let middle = high * 64 + summary.trailing_zeros() as usize;
        let word = self.words.get_mut(middle)?;
        let number = middle * 64 + word.trailing_zeros() as usize;
        *word &= *word - 1;
        if *word == 0 {
            *summary &= *summary - 1;
        }
        Tag::new(number as u32 + Tag::FIRST.get())
    }

    /// Gives a tag back.
    #[inline]
    pub(super) fn give(&mut self, tag: Tag) {
        if self.rest == 0 {
            return self.free(tag);
        }
        self.resting.push_back(tag);
        if self.resting.len() > self.rest
            && let Some(rested) = self.resting.pop_front()
        {
            self.free(rested);
        }
    }

    #[inline]
    fn free(&mut self, tag: Tag) {
        let Some(number) = tag.get().checked_sub(Tag::FIRST.get()) else { return };
        let (middle, bit) = (number as usize / 64, number % 64);
        if let (Some(word), Some(bits)) = (self.words.get_mut(middle), self.summary.get_mut(middle / 64)) {
            *word |= 1 << bit;
            *bits |= 1 << (middle % 64);
        }
    }
}

fn ones(count: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; count / 64];
    if !count.is_multiple_of(64) {
        words.push((1 << (count % 64)) - 1);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_first_and_none_twice() {
        for count in [0, 1, 63, 64, 65, 4096, 5000] {
            let mut tags = FreeTags::new(count, 0);
            let taken: Vec<u32> = std::iter::from_fn(|| tags.take()).map(Tag::get).collect();
            assert_eq!(taken, (2..count as u32 + 2).collect::<Vec<_>>());
            for tag in taken.iter().rev().filter(|tag| *tag % 7 == 3) {
                tags.give(Tag::new(*tag).unwrap());
            }
            let again: Vec<u32> = std::iter::from_fn(|| tags.take()).map(Tag::get).collect();
            assert_eq!(again, taken.into_iter().filter(|tag| tag % 7 == 3).collect::<Vec<_>>());
        }
    }

    #[test]
    fn there_are_no_more_tags_than_tags() {
        let mut tags = FreeTags::new(usize::MAX, 0);
        tags.words.iter_mut().rev().skip(1).for_each(|word| *word = 0);
        tags.summary.iter_mut().rev().skip(1).for_each(|word| *word = 0);
        let bits = tags.summary.last_mut().unwrap();
        *bits = 1 << (63 - bits.leading_zeros());
        let last = std::iter::from_fn(|| tags.take()).last();
        assert_eq!(last, Some(Tag::MAX));
    }

    #[test]
    fn a_tag_rests_until_others_were_given_back() {
        let mut tags = FreeTags::new(4, 2);
        let number = |tag: Option<Tag>| tag.map(Tag::get);
        for expected in [2, 3, 4] {
            let tag = tags.take().unwrap();
            assert_eq!(tag.get(), expected);
            tags.give(tag);
        }
        assert_eq!(number(tags.take()), Some(2), "two others were given back since");
        assert_eq!(number(tags.take()), Some(5));
        assert_eq!(number(tags.take()), Some(3), "rather than none");
        assert_eq!(number(tags.take()), Some(4));
        assert_eq!(number(tags.take()), None);
    }
}
