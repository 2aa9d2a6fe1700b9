//! Texts and searches as values of the types `tsvector` and `tsquery`.
//!
//! Each word begins with [`OWNER`], which the statements replace by a hash of the owner. So the index has the words of an
//! owner side by side, and a search reads only these.
//!
//! A Chinese or Japanese character forms a word together with the next one. So a search for two
//! characters looks up one rare word, and does not compare the positions of two common words.

use super::pool::Operation;
use crate::{
    CopiedMessage, StoreResult, ThreadNumber,
    columns::Indexing,
    search::{folded, searched_text},
    words,
    words::{indexed, is_completed, separated},
};
use agui_protocol::Message;

const INDEX: &str = include_str!("sql/index.sql");
/// The messages that one statement adds to the index. Their 500 words each take a loaded server about 0.2 s.
const MESSAGES_AT_ONCE: usize = 50;

/// The place of the owner's hash: a character that is part of no word.
const OWNER: char = '@';
/// Longer words are cut, and each of two that form one. Postgres allows 2,046 bytes.
const MAX_WORD_CHARS: usize = 250;

/// The words of a title, and of a searched message, as a `tsvector`.
pub(super) const INDEXING: Indexing =
    Indexing { message: message_vector, title: |title| Some(vector(&folded(title))) };

/// Does the same as [`INDEXING`], for messages that [`index`] adds.
pub(super) const INDEXING_LATER: Indexing = Indexing { message: |_| None, ..INDEXING };

/// Adds all messages of a new thread to the index. Each statement adds a limited number, so that it
/// does not reach its timeout.
pub(super) async fn index(
    operation: &mut Operation,
    thread: ThreadNumber,
    messages: &[CopiedMessage],
) -> StoreResult<()> {
    for (some, before) in messages.chunks(MESSAGES_AT_ONCE).zip((0_i64..).step_by(MESSAGES_AT_ONCE))
    {
        let vectors: Vec<_> = some.iter().map(|copied| message_vector(&copied.message)).collect();
        operation.all(sqlx::query(INDEX).bind(thread).bind(before).bind(vectors)).await?;
    }
    Ok(())
}

pub(super) fn message_vector(message: &Message) -> Option<String> {
    searched_text(message).map(|text| vector(&text))
}

/// Returns the words of a folded text.
pub(super) fn vector(text: &str) -> String {
    let words = indexed_words(&indexed(text));
    let words = words.iter().zip(1..);
    words.map(|(word, position)| format!("'{OWNER}{}':{position} ", word.text)).collect()
}

/// Returns the `tsquery` that finds texts with all terms; `None` if no term has a word.
pub(super) fn query(terms: &[String]) -> Option<String> {
    let last = terms.len().saturating_sub(1);
    let phrases: Vec<_> = terms
        .iter()
        .enumerate()
        .filter_map(|(at, term)| phrase(&separated(term), at == last))
        .collect();
    (!phrases.is_empty()).then(|| phrases.join(" & "))
}

/// Returns the `tsquery` for neighbouring words. The last word of the last phrase may be the
/// beginning of a word. A single character of a script without spaces is the beginning of the words
/// that it forms.
fn phrase(separated: &str, is_last: bool) -> Option<String> {
    let mut words = indexed_words(separated);
    // The word before the last character also has that character.
    if words.len() > 1 && words[words.len() - 2].is_pair {
        words.pop();
    }
    let last = words.last()?;
    let is_prefix =
        if is_ideograph(&last.text) { !last.is_pair } else { is_last && is_completed(&last.text) };
    let words: Vec<_> = words.iter().map(|word| format!("'{OWNER}{}'", word.text)).collect();
    Some(words.join(" <-> ") + if is_prefix { ":*" } else { "" })
}

struct IndexedWord {
    text: String,
    /// True for two characters of a script without spaces.
    is_pair: bool,
}

/// Returns words in the form in which the index has them. There is one for each word of [`separated`].
fn indexed_words(separated: &str) -> Vec<IndexedWord> {
    let mut words = separated.split(' ').filter(|word| !word.is_empty()).peekable();
    let mut indexed = Vec::new();
    while let Some(word) = words.next() {
        let next = words.peek().filter(|next| is_ideograph(word) && is_ideograph(next));
        let texts = [Some(&word), next].into_iter().flatten();
        let text = texts.flat_map(|text| text.chars().take(MAX_WORD_CHARS)).collect();
        indexed.push(IndexedWord { text, is_pair: next.is_some() });
    }
    indexed
}

fn is_ideograph(word: &str) -> bool {
    word.chars().next().is_some_and(words::is_ideograph)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query_of(terms: &[&str]) -> Option<String> {
        query(&terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_text_is_its_words_with_their_positions() {
        assert_eq!(vector("what's up"), "'@what':1 '@s':2 '@up':3 ");
        assert_eq!(vector("今天gpt,好"), "'@今天':1 '@天':2 '@gpt':3 '@好':4 ");
        assert_eq!(vector("'\\:"), "");
        assert_eq!(vector("ที่นี่"), "'@ที่นี่':1 '@นี่':2 ");
        assert_eq!(vector(&"ü".repeat(9000)).chars().count(), "'@':1 ".len() + MAX_WORD_CHARS);
    }

    #[test]
    fn a_search_is_a_list_of_phrases_whose_last_word_is_completed() {
        assert_eq!(query_of(&["weath"]).unwrap(), "'@weath':*");
        assert_eq!(query_of(&["sunny", "weath"]).unwrap(), "'@sunny' & '@weath':*");
        assert_eq!(query_of(&["gpt-4", "to"]).unwrap(), "'@gpt' <-> '@4' & '@to'");
        assert_eq!(
            query_of(&["晴", "天气", "北京的"]).unwrap(),
            "'@晴':* & '@天气' & '@北京' <-> '@京的'"
        );
        assert_eq!(query_of(&["今天gpt4好"]).unwrap(), "'@今天' <-> '@天' <-> '@gpt4' <-> '@好':*");
        assert_eq!(query_of(&["a'b\\&!"]).unwrap(), "'@a' <-> '@b'");
        assert_eq!(query_of(&["\"", "*"]), None);
        assert_eq!(query_of(&[]), None);
    }
}
