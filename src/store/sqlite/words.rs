//! Searches in the form that the search index understands.

use crate::store::words::{is_completed, separated};

/// Returns the expression that finds rows of an owner with all terms; `None` if no term has a word.
pub(super) fn expression(owner: &str, terms: &[String]) -> Option<String> {
    let mut expression = format!("owner : \"{}\"", owner_word(owner));
    let mut has_words = false;
    for term in terms {
        let words = separated(term);
        let Some(last) = words.rsplit(' ').next().filter(|last| !last.is_empty()) else { continue };
        expression += &format!(" AND words : \"{words}\"{}", if is_completed(last) { " *" } else { "" });
        has_words = true;
    }
    has_words.then_some(expression)
}

/// Returns an owner as one word.
pub(super) fn owner_word(owner: &str) -> String {
    owner.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_a_list_of_phrases_whose_last_words_are_completed() {
        let of = |terms: &[&str]| expression("a", &terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["weath"]).unwrap(), "owner : \"61\" AND words : \"weath\" *");
        assert_eq!(of(&["北京", "to"]).unwrap(), "owner : \"61\" AND words : \"北 京\" AND words : \"to\"");
        assert_eq!(of(&["a\"b:word*"]).unwrap(), "owner : \"61\" AND words : \"a b word\" *");
        assert_eq!(of(&["\"", "*"]), None);
        assert_eq!(of(&[]), None);
    }
}
