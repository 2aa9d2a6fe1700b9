//! Errors in a configuration, with file, line and column, and a suggestion for misspelled names.

use std::{fmt, ops::Range, path::Path};

use crate::base::text::nearest;

/// A text that is not a configuration.
#[derive(Debug)]
pub(super) enum ReadError {
    /// A key or a value is wrong. The span is its place in the text.
    Wrong { span: Option<Range<usize>>, message: String },
    /// An agent lacks an option. Another source may set it.
    Incomplete { agent: String, message: String },
}

impl From<toml::de::Error> for ReadError {
    fn from(error: toml::de::Error) -> Self {
        Self::Wrong { span: error.span(), message: error.message().to_owned() }
    }
}

/// An error in a configuration, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    place: Option<String>,
    /// The line and column, both from 1, and the line's text.
    position: Option<(usize, usize, String)>,
    message: String,
}

impl ConfigError {
    /// An error without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self { place: None, position: None, message: message.into() }
    }

    /// An error in a file.
    pub fn in_file(path: &Path, message: impl Into<String>) -> Self {
        Self { place: Some(path.display().to_string()), position: None, message: message.into() }
    }

    /// An error at a span of a file's text, in bytes.
    pub fn at(path: &Path, text: &str, span: Option<Range<usize>>, message: &str) -> Self {
        let position = span.map(|span| {
            let before = &text[..text.floor_char_boundary(span.start)];
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            let line = text[line_start..].lines().next().unwrap_or_default();
            (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1, line.to_owned())
        });
        Self { place: Some(path.display().to_string()), position, message: suggest(message) }
    }

    pub(super) fn of_setting(name: &str, message: &str) -> Self {
        Self { place: Some(name.to_owned()), position: None, message: suggest(message) }
    }
}

impl std::error::Error for ConfigError {}

/// Writes `file:line:column: message`, then the line with a mark under the column.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            f.write_str(place)?;
            if let Some((line, column, _)) = &self.position {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if let Some((line, column, text)) = &self.position {
            let gutter = " ".repeat(line.to_string().len());
            write!(f, "\n {gutter} |\n {line} | {text}\n {gutter} | {}^", " ".repeat(column - 1))?;
        }
        Ok(())
    }
}

/// Rewrites serde's message about an unknown name, and adds the nearest known name.
fn suggest(message: &str) -> String {
    let message = message.trim_end();
    for (theirs, ours) in [("unknown field ", "unknown key"), ("unknown variant ", "unknown value")] {
        let Some(rest) = message.strip_prefix(theirs) else { continue };
        let mut quoted = rest.split('`').skip(1).step_by(2);
        let Some(wrong) = quoted.next() else { continue };
        return unknown(ours, wrong, &quoted.collect::<Vec<_>>());
    }
    message.to_owned()
}

/// Returns the message about an unknown name, with the nearest known one.
pub(super) fn unknown(what: &str, wrong: &str, known: &[&str]) -> String {
    let near = nearest(wrong, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!("{what} `{wrong}`{near} (known: {list})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_an_unknown_name_suggests_the_nearest_one() {
        let message = "unknown field `lisen`, expected one of `listen`, `drain_secs`";
        assert_eq!(suggest(message), "unknown key `lisen`; did you mean `listen`? (known: `listen`, `drain_secs`)");
        assert_eq!(suggest("unknown variant `x`, expected `echo`"), "unknown value `x` (known: `echo`)");
        assert_eq!(suggest("invalid type: string"), "invalid type: string");
    }

    #[test]
    fn an_error_shows_its_line_and_marks_the_column() {
        let text = "a = 1\nbé = 2\n";
        let error = ConfigError::at(Path::new("x.toml"), text, Some(text.find('2').unwrap()..text.len() - 1), "no");
        assert_eq!(error.to_string(), "x.toml:2:6: no\n   |\n 2 | bé = 2\n   |      ^");
    }

    #[test]
    fn a_span_within_a_character_or_behind_the_end_is_shown_too() {
        let at = |start: usize| ConfigError::at(Path::new("x.toml"), "é = 2", Some(start..9), "no").to_string();
        assert!(at(1).starts_with("x.toml:1:1: no"), "{}", at(1));
        assert!(at(9).starts_with("x.toml:1:6: no"), "{}", at(9));
    }
}
