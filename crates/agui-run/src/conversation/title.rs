//! Titles of threads: made from the first message of a user, or set by the owner.

use agui_protocol::Message;

/// The longest title that is made from a message, in characters.
const MAX_MADE_CHARS: usize = 60;
/// The longest title that an owner may set, in characters.
pub(crate) const MAX_TITLE_CHARS: usize = 200;

/// Returns the title that a message gives its thread: its text, cut at a word. `None` if no user
/// wrote the message, or it has no text.
pub(crate) fn title_of(message: &Message) -> Option<String> {
    match message {
        Message::User(message) => cut_at_word(&message.content.text(), MAX_MADE_CHARS),
        _ => None,
    }
}

/// Returns a title on one line; `None` if it is blank.
pub(crate) fn on_one_line(text: &str) -> Option<String> {
    let words =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    (!line.is_empty()).then_some(line)
}

/// Returns the first words of a text with at most `max` characters together, and an ellipsis if
/// there are more. A text without spaces, as in Chinese, is cut after `max` characters.
pub(crate) fn cut_at_word(text: &str, max: usize) -> Option<String> {
    // Three of four characters may be white space. The rest of a long text is not read.
    let start = text.trim_start();
    let near = start.char_indices().nth(4 * max).map_or(start, |(end, _)| &start[..end]);
    let mut line = on_one_line(near)?;
    let is_whole = near.len() == start.len();
    let Some((end, next)) = line.char_indices().nth(max) else {
        if !is_whole {
            line.push('…');
        }
        return Some(line);
    };
    let ends_at_word = next == ' ';
    line.truncate(end);
    // A word that is longer than half of the title is cut.
    if let Some(space) =
        line.rfind(' ').filter(|space| !ends_at_word && line[..*space].chars().count() >= max / 2)
    {
        line.truncate(space);
    }
    // The parts of an emoji are joined by this character.
    line.truncate(line.trim_end_matches(['\u{200d}', ' ']).len());
    line.push('…');
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_text_cut_at_a_word() {
        let cut = |text: &str| cut_at_word(text, 20);
        assert_eq!(cut("  What's\n\tthe weather? ").as_deref(), Some("What's the weather?"));
        assert_eq!(
            cut("What's the weather like in Beijing").as_deref(),
            Some("What's the weather…")
        );
        assert_eq!(cut("Twenty characters !! and more").as_deref(), Some("Twenty characters !!…"));
        assert_eq!(
            cut("https://example.com/a/long/address").as_deref(),
            Some("https://example.com/…")
        );
        assert_eq!(
            cut("See https://example.com/a/long/address").as_deref(),
            Some("See https://example.…")
        );
        assert_eq!(
            cut(&"今天北京的天气".repeat(4)).as_deref(),
            Some("今天北京的天气今天北京的天气今天北京的天…")
        );
        assert_eq!(cut(" \u{0}\n"), None);
        assert_eq!(cut(&format!("a{}b", " ".repeat(1000))).as_deref(), Some("a…"));
        assert_eq!(cut(&"x".repeat(1_000_000)).map(|title| title.chars().count()), Some(21));
    }

    #[test]
    fn only_a_users_message_gives_a_title() {
        assert_eq!(title_of(&Message::user("m", "Hello")).as_deref(), Some("Hello"));
        assert_eq!(title_of(&Message::assistant("m", "Hello")), None);
    }
}
