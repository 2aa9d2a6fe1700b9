//! Replaces the control sequences in texts of servers.
//!
//! A terminal obeys control characters: escape sequences can move the cursor over an approval, set the title, or write
//! to the clipboard. Characters that change the direction of text can make arguments look like others. Both are
//! replaced by visible characters, also in a pipe, because its other end may be a terminal.

use std::borrow::Cow;

/// Returns a text of any number of lines. Carriage returns are left out.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(|char| replacement(char, true) == Some(char)) {
        return text.into();
    }
    text.chars().filter_map(|char| replacement(char, true)).collect::<String>().into()
}

/// Returns a text on one line: also line ends and tabs are replaced.
pub(super) fn printable_line(text: &str) -> String {
    text.chars().filter_map(|char| replacement(char, false)).collect()
}

/// Returns the printable characters before a limit, followed by the number of those that are left out.
pub(super) fn excerpt(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => printable(text).into_owned(),
        Some((end, _)) => {
            let (head, rest) = text.split_at(end);
            format!("{}… ({} more characters)", printable(head), rest.chars().count())
        }
    }
}

fn replacement(char: char, allows_lines: bool) -> Option<char> {
    Some(match char {
        '\r' if allows_lines => return None,
        '\n' | '\t' if allows_lines => char,
        // The pictures of these characters stand in the same order.
        '\0'..='\x1f' => {
            char::from_u32(0x2400 + u32::from(char)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\x7f' => '␡',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        '\u{2028}' | '\u{2029}' if !allows_lines => '␊',
        _ => char,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for hostile in [
            "\x1b[2J",
            "\x1b]0;title\x07",
            "\x1b]52;c;AAAA\x1b\\",
            "a\x08b",
            "\u{9b}31m",
            "\x7f",
            "\0",
            "x\rfake",
        ] {
            for safe in
                [printable(hostile).into_owned(), printable_line(hostile), excerpt(hostile, 100)]
            {
                assert!(safe.chars().all(|char| !char.is_control()), "{hostile:?} became {safe:?}");
            }
        }
        assert_eq!(printable("a\x1b[31mb"), "a␛[31mb");
        assert_eq!(printable("rm \u{202e}txt.exe"), "rm \u{fffd}txt.exe");
    }

    #[test]
    fn text_is_left_alone() {
        let text = "Grüße, 你好 👩‍💻\n\tمرحبا\n";
        assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        assert_eq!(printable("a\r\nb"), "a\nb");
        assert_eq!(printable_line("a\nb\tc\r"), "a␊b␉c␍");
        assert_eq!(excerpt("abcdef", 4), "abcd… (2 more characters)");
    }
}
