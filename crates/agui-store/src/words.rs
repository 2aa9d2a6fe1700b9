//! The words of a text, for the search indexes.
//!
//! An index finds words, but Chinese and Japanese write no spaces between words. So each character
//! of these scripts is a word of its own, and a search for several of them is a search for
//! neighbours.

use std::collections::HashSet;

/// The largest number of different words of a text that an index has. The rest of the text is not
/// found.
const MAX_DIFFERENT_WORDS: usize = 500;
/// A shorter beginning of a word is not completed, because it would find most threads.
const MIN_PREFIX_CHARS: usize = 3;

/// Returns the words of a text, separated by spaces.
pub(super) fn separated(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + text.len() / 4);
    let mut before = Class::Separator;
    for c in text.chars() {
        let class = Class::from_char(c);
        if class != Class::Separator {
            if !words.is_empty() && (class != Class::Letter || before != Class::Letter) {
                words.push(' ');
            }
            words.push(c);
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

/// Returns whether a character belongs to a script without spaces: kana, bopomofo, Chinese characters with their
/// extensions, Hangul.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{312f}'
        | '\u{31a0}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A part of a word.
    Letter,
    /// A character that is a word.
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
    }

    #[test]
    fn at_most_500_different_words_of_a_text_are_indexed() {
        let text: Vec<_> = (0..499).map(|n| format!("w{n}")).collect();
        let text = format!("{} 天 w1 天 地 w2", text.join(" "));
        assert_eq!(indexed(&text), text.strip_suffix(" 地 w2").unwrap());
        assert_eq!((indexed(""), indexed("a a")), (String::new(), "a a".to_owned()));
    }
}
