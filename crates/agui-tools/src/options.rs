//! Parts that the options of HTTP tools, MCP servers and the sandbox share.
//!
//! Ranges, and options that depend on each other, are checked by the `check` methods and not while deserializing, so
//! that an error has the option's path and the configuration can show its line.

use std::fmt;

use indexmap::IndexMap;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

pub use agui_base::InvalidOption;
use agui_base::upstream::secret_names::{is_secret_header, secret_variable};

/// The value of an HTTP header in a configuration. `Debug` does not show values.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a text, or a table such as { env = \"VARIABLE\", prefix = \"Bearer \" }"
)]
pub enum HeaderSource {
    /// The value itself. It is treated as a secret if the header's name suggests one, such as `Authorization`.
    Text(String),
    /// A secret in an environment variable.
    Variable {
        /// The name of the variable.
        env: String,
        /// A text before the variable's value, such as `Bearer `.
        #[serde(default)]
        prefix: String,
    },
}

impl From<&str> for HeaderSource {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Debug for HeaderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::Variable { env, .. } => f.debug_tuple("Variable").field(env).finish(),
        }
    }
}

/// Marks secrets as sensitive.
pub fn header_map(headers: &IndexMap<String, HeaderSource>) -> Result<HeaderMap, InvalidOption> {
    let invalid = |problem: String| InvalidOption::new("headers", problem);
    let mut map = HeaderMap::new();
    for (name, source) in headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid(format!("{name:?} is not a valid header name")))?;
        let (text, is_secret) = match source {
            HeaderSource::Text(text) => (text.clone(), is_secret_header(name)),
            HeaderSource::Variable { env, prefix } => {
                (prefix.clone() + &secret_variable(env).map_err(invalid)?, true)
            }
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            invalid(format!("the value of `{name}` has characters that a header cannot have"))
        })?;
        value.set_sensitive(is_secret);
        map.insert(header, value);
    }
    Ok(map)
}

/// Fails with the first wrong option. Each option is a triple: true if wrong, its key, its problem.
pub fn check_each<'a>(
    options: impl IntoIterator<Item = (bool, &'a str, &'a str)>,
) -> Result<(), InvalidOption> {
    match options.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, key, problem)) => Err(InvalidOption::new(key, problem)),
        None => Ok(()),
    }
}

pub fn check_not_zero<const N: usize>(options: [(&str, bool); N]) -> Result<(), InvalidOption> {
    check_each(options.map(|(key, is_zero)| (is_zero, key, "at least 1 is needed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> IndexMap<String, HeaderSource> {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn secret_headers_are_sensitive_and_not_in_debug_output() {
        let headers = headers(
            "X-App = \"agui\"\nX-Api-Key = \"s3cret\"\nA = { env = \"PATH\", prefix = \"Bearer \" }",
        );
        assert!(!format!("{headers:?}").contains("s3cret"));
        let map = header_map(&headers).unwrap();
        assert!(
            !map["x-app"].is_sensitive()
                && map["x-api-key"].is_sensitive()
                && map["a"].is_sensitive()
        );
        assert!(map["a"].to_str().unwrap().starts_with("Bearer /"));
    }

    #[test]
    fn invalid_headers_are_named() {
        for (text, expected) in [
            ("\"a b\" = \"\"", "headers: \"a b\" is not a valid header name"),
            ("A = \"x\\n\"", "headers: the value of `A` has characters that a header cannot have"),
            (
                "A = { env = \"AGUI_NOT_SET\" }",
                "headers: the environment variable AGUI_NOT_SET is not set",
            ),
        ] {
            assert_eq!(header_map(&headers(text)).unwrap_err().to_string(), expected);
        }
        let error = toml::from_str::<IndexMap<String, HeaderSource>>("A = 1").unwrap_err();
        assert!(error.message().starts_with("expected a text, or a table such as"), "{error}");
    }
}
