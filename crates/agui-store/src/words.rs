//! The words of a text, for the search indexes.
//!
//! An index finds words, but Chinese, Thai and some other scripts write no spaces between words. So each character of these
//! scripts, with its marks, is a word of its own, and a search for several of them is a search for neighbours.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation as _;

/// The largest number of different words of a text that an index has. The rest of the text is not
/// found.
const MAX_DIFFERENT_WORDS: usize = 500;
/// A shorter beginning of a word is not completed, because it would find most threads.
const MIN_PREFIX_CHARS: usize = 3;

/// Returns the words of a text, separated by spaces.
pub(super) fn separated(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + text.len() / 4);
    let mut before = Class::Separator;
    for character in text.graphemes(true) {
        let class = character.chars().next().map_or(Class::Separator, Class::from_char);
        if class != Class::Separator {
            if !words.is_empty() && (class != Class::Letter || before != Class::Letter) {
                words.push(' ');
            }
            words.push_str(character);
        }
        before = class;
    }
    words
}

/// Returns the words of a text that an index has, separated by spaces.
pub(super) fn indexed(text: &str) -> String {
    let mut words = separated(text);
    let (mut different, mut end) = (HashSet::new(), 0);
    for word in words.split(' ') {
        if !different.contains(word) && different.len() == MAX_DIFFERENT_WORDS {
            break;
        }
        different.insert(word);
        end += word.len() + 1;
    }
    words.truncate(end.saturating_sub(1));
    words
}

/// Returns whether a search for this word also finds longer words that begin with it.
pub(super) fn is_completed(word: &str) -> bool {
    word.chars().count() >= MIN_PREFIX_CHARS
}

/// Returns whether a character belongs to a script without spaces: kana, Hangul, whose words have endings, and letters that Unicode
/// does not join to words, such as Chinese, Thai, Khmer, Lao and Myanmar ones.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{312f}' | '\u{31a0}'..='\u{31ff}' | '\u{ac00}'..='\u{d7ff}')
        || (!c.is_ascii() && c.is_alphanumeric() && !joins_words(c))
}

/// Returns whether two of these letters are one word (Unicode Standard Annex 29, section 4).
fn joins_words(c: char) -> bool {
    let (mut twice, mut buffer) = (String::with_capacity(8), [0; 4]);
    let letter = c.encode_utf8(&mut buffer);
    twice.push_str(letter);
    twice.push_str(letter);
    twice.split_word_bounds().next().is_some_and(|word| word.len() == twice.len())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A part of a word.
    Letter,
    /// A character that is a word, with its marks.
    Ideograph,
    Separator,
}

impl Class {
    fn from_char(c: char) -> Self {
        if is_ideograph(c) {
            Self::Ideograph
        } else if c.is_alphanumeric() {
            Self::Letter
        } else {
            Self::Separator
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_and_ideographs_are_words() {
        assert_eq!(separated("  What's up? x2\n"), "What s up x2");
        assert_eq!(separated("今天GPT-4好吗?かな"), "今 天 GPT 4 好 吗 か な");
        assert_eq!(separated("\"*:()"), "");
        assert_eq!(separated("ภาษาไทย"), "ภ า ษ า ไ ท ย");
        assert_eq!(separated("ที่นี่"), "ที่ นี่");
        assert_eq!(separated("ភាសា"), "ភា សា");
        assert_eq!(separated("हिन्दी की"), "हिन्दी की");
        assert_eq!(separated("한국어"), "한 국 어");
    }

    #[test]
    fn at_most_500_different_words_of_a_text_are_indexed() {
        let text: Vec<_> = (0..499).map(|n| format!("w{n}")).collect();
        let text = format!("{} 天 w1 天 地 w2", text.join(" "));
        assert_eq!(indexed(&text), text.strip_suffix(" 地 w2").unwrap());
        assert_eq!((indexed(""), indexed("a a")), (String::new(), "a a".to_owned()));
    }
}
