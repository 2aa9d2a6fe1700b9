//! Texts: of logs and errors, MIME types, and lists of words.

use std::error::Error;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that a path segment must escape: all but the unreserved ones of RFC 3986.
const ESCAPED_IN_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The part of a name or of an identifier that a log, an error or a person is shown.
pub const NAME_CHARS: usize = 80;
/// The part of a message that is shown on one line.
pub const LINE_CHARS: usize = 300;
/// The part of a text that is shown on several lines, such as the body of a refusal.
pub const PARAGRAPH_CHARS: usize = 1000;

/// Returns a text up to `max_chars` characters. A longer text ends with `…`.
pub fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Shortens a name or an identifier.
pub fn short_name(text: &str) -> String {
    shortened(text, NAME_CHARS)
}

/// Shortens a message for one line.
pub fn short_line(text: &str) -> String {
    shortened(text, LINE_CHARS)
}

/// Shortens a text for several lines.
pub fn short_paragraph(text: &str) -> String {
    shortened(text, PARAGRAPH_CHARS)
}

/// Returns whether a character is not seen, or changes how others are seen: control characters,
/// changes of a text's direction, line separators, characters without a width, and fillers.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        )
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0f}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns a MIME type without its parameters, in lower case.
pub fn essence(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns a text as a segment of a URL's path.
pub fn path_segment(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED_IN_SEGMENT).to_string()
}

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Reads 64 hexadecimal digits.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits: [u8; 64] = digits?.try_into().ok()?;
    Some(std::array::from_fn(|at| digits[2 * at] << 4 | digits[2 * at + 1]))
}

/// Returns whether a word is one of a list, which has spaces between its words.
pub fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// Returns the text of an error with the texts of its causes. Some libraries repeat a cause in the
/// text of the error.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Returns "did you mean …?" with the name that is most similar to a wrong one, for the end of an
/// error.
pub fn did_you_mean(wrong: &str, known: &[&str]) -> String {
    nearest(wrong, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// Returns the name that is most similar to a wrong one, if any is similar.
pub fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    known
        .iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&wrong, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_text_ends_with_an_ellipsis() {
        assert_eq!(shortened("añb", 3), "añb");
        assert_eq!(shortened("añbc", 3), "añb…");
        assert_eq!(shortened("a", 0), "…");
    }
}
