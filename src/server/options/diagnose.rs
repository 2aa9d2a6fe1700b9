//! Errors in a configuration, with file, line and column, and a suggestion for misspelled names.

use std::{fmt, ops::Range, path::Path};

use agui_base::{text::did_you_mean, upstream::secret_names::is_variable_name};

/// Advice for an option that is above all tables, and is read as a part of the table above it.
const DEFAULT_AGENT_IN_TABLE: &str = "`default_agent` is below the first table, and is read as a part of the table above it: \
                                      move it above the first line in brackets";

/// A text that is not a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    /// A key or a value is wrong. The span is its place in the text.
    Wrong { span: Option<Range<usize>>, message: String },
    /// An agent lacks an option. Another source may set it.
    Incomplete { agent: String, message: String },
}

impl ReadError {
    pub(super) fn wrong(span: Range<usize>, message: impl Into<String>) -> Self {
        Self::Wrong { span: Some(span), message: message.into() }
    }
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
    /// The other errors of the same configuration.
    further: Vec<ConfigError>,
}

impl ConfigError {
    /// An error without a place.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { place: None, position: None, message: message.into(), further: Vec::new() }
    }

    /// Makes one error of several.
    pub(crate) fn join(mut errors: impl Iterator<Item = Self>) -> Result<(), Self> {
        let Some(mut first) = errors.next() else { return Ok(()) };
        first.further.extend(errors);
        Err(first)
    }

    /// An error at a span of a file's text, in bytes.
    pub(crate) fn at(path: &Path, text: &str, span: Option<Range<usize>>, message: &str) -> Self {
        let position = span.map(|span| {
            let before = &text[..text.floor_char_boundary(span.start)];
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            let line = text[line_start..].lines().next().unwrap_or_default();
            (
                before.matches('\n').count() + 1,
                before[line_start..].chars().count() + 1,
                without_secrets(line),
            )
        });
        Self {
            place: Some(path.display().to_string()),
            position,
            ..Self::new(in_plain_words(message))
        }
    }

    /// An error in a file as a whole, a variable or a flag.
    pub(super) fn in_source(name: &str, message: &str) -> Self {
        Self { place: Some(name.to_owned()), ..Self::new(in_plain_words(message)) }
    }
}

impl std::error::Error for ConfigError {}

/// Writes `file:line:column: message`, then the line with a mark under the column, for each error.
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
        self.further.iter().try_for_each(|error| write!(f, "\n{error}"))
    }
}

/// Hides the texts of a line that may hold a key, but for names of environment variables and short words.
fn without_secrets(line: &str) -> String {
    let lower = line.to_lowercase();
    if !["key", "secret", "token", "password", "env", "header"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return line.to_owned();
    }
    let is_harmless = |text: &str| text.len() < 12 || is_variable_name(text);
    if let Some((name, value)) = line.split_once('=')
        && value.trim_start().starts_with(|c: char| c.is_ascii_alphabetic())
        && !is_harmless(value.trim())
    {
        return format!("{name}= …");
    }
    // Every second piece is the text between two quotes.
    let pieces = line.split_inclusive(['"', '\'']).enumerate().map(|(number, piece)| {
        let text = piece.trim_end_matches(['"', '\'']);
        if number % 2 == 0 || is_harmless(text) {
            piece.to_owned()
        } else {
            piece.replace(text, "…")
        }
    });
    pieces.collect()
}

/// Rewrites a message of serde, and adds the nearest known name to one about an unknown name.
fn in_plain_words(message: &str) -> String {
    let message = message.trim_end();
    if let Some((name, _)) =
        message.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'))
    {
        return format!("`{name}` is missing");
    }
    if message.starts_with("invalid socket address") {
        return "expected an address and a port, such as \"127.0.0.1:8080\"".to_owned();
    }
    let found = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) {
        let list = list_of_text(found).filter(|_| expected == "a sequence").unwrap_or_default();
        return format!(
            "expected {}, found {}{list}",
            plain_expected(expected),
            plain_found(found)
        );
    }
    for (theirs, ours) in [("unknown field ", "unknown key"), ("unknown variant ", "unknown value")]
    {
        let Some(rest) = message.strip_prefix(theirs) else { continue };
        let mut quoted = rest.split('`').skip(1).step_by(2);
        let Some(wrong) = quoted.next() else { continue };
        return unknown(ours, wrong, &quoted.collect::<Vec<_>>());
    }
    message.to_owned()
}

/// Names a type of serde in the words of the documentation.
fn plain_expected(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "true or false",
        "socket address" => "an address and a port, such as \"127.0.0.1:9090\"",
        "a string" | "path string" => "a text in quotes",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number of at least 0",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number of at least 1",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// Names a value of serde. A long text is not repeated: it may be a key.
fn plain_found(found: &str) -> String {
    if let Some((kind, value)) = found.split_once(' ') {
        match kind {
            "string" if value.len() > 20 => return "a text".to_owned(),
            "string" => return format!("the text {value}"),
            "integer" | "boolean" => return value.trim_matches('`').to_owned(),
            "floating" => return value.trim_start_matches("point ").trim_matches('`').to_owned(),
            _ => {}
        }
    }
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the list that a text of serde may have been meant as, for the end of a message: its words. A text that may be a key is
/// not repeated.
fn list_of_text(found: &str) -> Option<String> {
    let text: String = serde_json::from_str(found.strip_prefix("string ")?).ok()?;
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let list = words.map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    let may_be_key = text.len() > 20 && !text.contains(' ');
    (!list.is_empty() && !may_be_key && without_secrets(&list) == list)
        .then(|| format!("; a list is [{list}]"))
}

/// Returns the message about a value that was read as a part of a table, if it belongs above all tables.
pub(super) fn misplaced(name: &str) -> Option<String> {
    (name == "default_agent").then(|| DEFAULT_AGENT_IN_TABLE.to_owned())
}

/// Returns the message about an unknown name, with the nearest known one.
pub(super) fn unknown(what: &str, wrong: &str, known: &[&str]) -> String {
    if let Some(misplaced) = misplaced(wrong) {
        return misplaced;
    }
    let near = did_you_mean(wrong, known);
    let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!("{what} `{wrong}`{near} (known: {list})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_an_unknown_name_suggests_the_nearest_one() {
        let message = "unknown field `lisen`, expected one of `listen`, `drain_secs`";
        assert_eq!(
            in_plain_words(message),
            "unknown key `lisen`; did you mean `listen`? (known: `listen`, `drain_secs`)"
        );
        assert_eq!(
            in_plain_words("unknown variant `x`, expected `echo`"),
            "unknown value `x` (known: `echo`)"
        );
        assert_eq!(in_plain_words("invalid type: string"), "invalid type: string");
    }

    #[test]
    fn types_of_serde_are_named_in_plain_words() {
        for (theirs, ours) in [
            (
                "invalid type: string \"soon\", expected u64",
                "expected a whole number of at least 0, found the text \"soon\"",
            ),
            ("invalid type: integer `1`, expected a sequence", "expected a list, found 1"),
            (
                "invalid value: integer `-1`, expected u32",
                "expected a whole number of at least 0, found -1",
            ),
            (
                "invalid type: floating point `1.5`, expected u16",
                "expected a whole number from 0 to 65535, found 1.5",
            ),
            ("invalid type: map, expected struct ApiKeyConfig", "expected a table, found a table"),
            (
                "invalid type: string \"sk-proj-0123456789abcdef\", expected a map",
                "expected a table, found a text",
            ),
            ("missing field `kind`", "`kind` is missing"),
            (
                "invalid type: integer `9090`, expected socket address",
                "expected an address and a port, such as \"127.0.0.1:9090\", found 9090",
            ),
        ] {
            assert_eq!(in_plain_words(theirs), ours);
        }
    }

    #[test]
    fn a_text_in_place_of_a_list_is_shown_as_a_list() {
        for (text, shown) in [
            (
                "npx -y @scope/server-files",
                "found a text; a list is [\"npx\", \"-y\", \"@scope/server-files\"]",
            ),
            (
                "https://a.example",
                "found the text \"https://a.example\"; a list is [\"https://a.example\"]",
            ),
            ("find, send", "found the text \"find, send\"; a list is [\"find\", \"send\"]"),
            ("npx files --token 0123456789abcdef", "found a text"),
            ("sk-proj-0123456789abcdef", "found a text"),
        ] {
            let shown = format!("expected a list, {shown}");
            assert_eq!(
                in_plain_words(&format!("invalid type: string {text:?}, expected a sequence")),
                shown
            );
        }
    }

    #[test]
    fn a_key_in_the_line_of_an_error_is_not_shown() {
        for (line, shown) in [
            ("api_key_env = \"sk-proj-0123456789abcdef\"", "api_key_env = \"…\""),
            ("api_key_env = sk-proj-0123456789abcdef", "api_key_env = …"),
            (
                "headers_env = { x-api-key = 'abcdef0123456789' }",
                "headers_env = { x-api-key = '…' }",
            ),
            (
                "api_keys = [{ name = \"web\", env = \"AGUI_KEY_WEB\" }]",
                "api_keys = [{ name = \"web\", env = \"AGUI_KEY_WEB\" }]",
            ),
            (
                "script = \"a/long/path/of/a/script.toml\"",
                "script = \"a/long/path/of/a/script.toml\"",
            ),
        ] {
            assert_eq!(without_secrets(line), shown);
        }
    }

    #[test]
    fn an_error_shows_its_line_and_marks_the_column() {
        let text = "a = 1\nbé = 2\n";
        let error = ConfigError::at(
            Path::new("x.toml"),
            text,
            Some(text.find('2').unwrap()..text.len() - 1),
            "no",
        );
        assert_eq!(error.to_string(), "x.toml:2:6: no\n   |\n 2 | bé = 2\n   |      ^");
    }

    #[test]
    fn a_span_within_a_character_or_behind_the_end_is_shown_too() {
        let at = |start: usize| {
            ConfigError::at(Path::new("x.toml"), "é = 2", Some(start..9), "no").to_string()
        };
        assert!(at(1).starts_with("x.toml:1:1: no"), "{}", at(1));
        assert!(at(9).starts_with("x.toml:1:6: no"), "{}", at(9));
    }
}
