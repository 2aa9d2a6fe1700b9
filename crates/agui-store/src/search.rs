//! The searched texts of threads, and the terms of a search.

use std::borrow::Cow;

use agui_protocol::Message;

/// The searched part of a message, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// The largest number of terms. Further ones are ignored.
const MAX_TERMS: usize = 16;

/// Returns the searched text of a message of a user or an assistant, in lower case, or `None` if it
/// has no such text.
pub(super) fn searched_text(message: &Message) -> Option<String> {
    let text: Cow<'_, str> = match message {
        Message::User(message) => message.content.text(),
        Message::Assistant(message) => message.content.as_deref()?.into(),
        _ => return None,
    };
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    (!text.trim().is_empty()).then(|| text.to_lowercase())
}

/// Returns the different terms of a search in lower case, in the order of their last occurrences. A
/// thread is found if its title has all of them, or one of its messages.
pub(super) fn terms(query: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for term in query.split_whitespace().take(MAX_TERMS).map(str::to_lowercase) {
        terms.retain(|other| *other != term);
        terms.push(term);
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
    fn terms_are_different_and_bounded() {
        assert_eq!(terms("b A b  c a"), ["b", "c", "a"]);
        assert_eq!(terms(&"a b ".repeat(50)), ["a", "b"]);
        let many: Vec<_> = (0..99).map(|n| n.to_string()).collect();
        assert_eq!(terms(&many.join(" ")), many[..MAX_TERMS]);
    }
}
