//! The searched texts of threads, and the terms of a search.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use agui_protocol::Message;

/// The form of the words in the indexes of the databases. A database with another one makes its index again.
pub(super) const INDEX_VERSION: i64 = 1;

/// The searched part of a text, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// The largest number of terms. Further ones are ignored.
const MAX_TERMS: usize = 16;

/// Returns a text in the form in which texts and searches are compared: without case, accents, and characters that are not seen,
/// and in one of the forms that Unicode has for the same text. The rest of a long one is not searched.
pub(super) fn folded(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let decomposed = text.nfkd().filter(|c| !is_ignored(*c));
    // The way by upper case makes one letter of those that share it, such as `ß` and `ss`, or the Turkish `ı` and `i`.
    decomposed.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

/// Accents, and characters without a width.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Returns the [folded] searched text of a message of a user or an assistant, or `None` if it has no such text.
pub(super) fn searched_text(message: &Message) -> Option<String> {
    let text: Cow<'_, str> = match message {
        Message::User(message) => message.content.text(),
        Message::Assistant(message) => message.content.as_deref()?.into(),
        _ => return None,
    };
    Some(folded(&text)).filter(|text| !text.trim().is_empty())
}

/// Returns the different [folded] terms of a search, in the order of their last occurrences. A thread is found if its title has
/// all of them, or one of its messages.
pub(super) fn terms(query: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for term in folded(query).split_whitespace().take(MAX_TERMS) {
        terms.retain(|other| other != term);
        terms.push(term.to_owned());
    }
    terms
}

/// Returns whether a text has all terms.
pub(super) fn has_all(text: &str, terms: &[String]) -> bool {
    terms.iter().all(|term| text.contains(term.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_one_form() {
        for same in [
            &["é", "e\u{301}", "É", "e"][..],
            &["İstanbul", "ISTANBUL", "ıstanbul", "istanbul"],
            &["Straße", "STRASSE", "strasse"],
            &["한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"],
            &["ＧＰＴ４", "gpt4"],
            &["ΟΔΟΣ", "οδος", "οδοσ"],
            &["co\u{ad}operate", "cooperate"],
            &["が", "か\u{3099}"],
        ] {
            let forms: Vec<_> = same.iter().map(|text| folded(text)).collect();
            assert!(forms.iter().all(|form| *form == forms[0]), "{forms:?}");
        }
        assert_ne!(folded("が"), folded("か"), "a mark that makes another letter stays");
    }

    #[test]
    fn terms_are_different_and_bounded() {
        assert_eq!(terms("b A b  c a"), ["b", "c", "a"]);
        assert_eq!(terms(&"a b ".repeat(50)), ["a", "b"]);
        let many: Vec<_> = (0..99).map(|n| n.to_string()).collect();
        assert_eq!(terms(&many.join(" ")), many[..MAX_TERMS]);
    }
}
