//! Removes secrets from texts: services can repeat the headers of a request in their responses.

use reqwest::header::HeaderMap;

use super::error::ToolError;
use agui_protocol::{ContentPart, MessageContent};

/// Shorter words of a secret header, such as `Bearer`, are not removed, in bytes.
const MIN_SECRET_BYTES: usize = 8;
const REPLACEMENT: &str = "[redacted]";

/// Words that must reach neither a model nor a client. They are removed before a text is cut: the beginning of a word
/// that the cut divides would not be recognised.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The words of the headers' sensitive values.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let sensitive = headers.values().filter(|value| value.is_sensitive());
        let mut secrets = Self::default();
        sensitive.filter_map(|value| value.to_str().ok()).for_each(|value| secrets.add(value));
        secrets
    }

    /// Adds the words of a value. Words below 8 bytes, such as `Bearer`, are ignored.
    pub fn add(&mut self, value: &str) {
        self.0.extend(
            value
                .split_whitespace()
                .filter(|word| word.len() >= MIN_SECRET_BYTES)
                .map(str::to_owned),
        );
        // The longest word comes first, because one can be part of another.
        self.0.sort_by_key(|word| std::cmp::Reverse(word.len()));
        self.0.dedup();
    }

    /// Adds all words of `other`.
    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|word| self.add(word));
    }

    /// Returns a text without secrets, or `None` if it has none.
    pub fn redact(&self, text: &str) -> Option<String> {
        let has_secret = self.0.iter().any(|secret| text.contains(secret));
        has_secret.then(|| {
            self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, REPLACEMENT))
        })
    }

    pub(crate) fn redact_result(
        &self,
        result: Result<MessageContent, ToolError>,
    ) -> Result<MessageContent, ToolError> {
        match result {
            Ok(MessageContent::Text(text)) => Ok(self.redact(&text).unwrap_or(text).into()),
            Ok(MessageContent::Parts(mut parts)) => {
                for part in &mut parts {
                    if let ContentPart::Text(part) = part
                        && let Some(redacted) = self.redact(&part.text)
                    {
                        part.text = redacted;
                    }
                }
                Ok(parts.into())
            }
            Err(error) => Err(self.redact(error.message()).map_or(error, ToolError::new)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_secret_headers_are_removed() {
        let mut secret = reqwest::header::HeaderValue::from_static("Bearer sk-12345678");
        secret.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert("authorization", secret);
        headers.insert("x-app", reqwest::header::HeaderValue::from_static("not-a-secret"));
        let mut secrets = Secrets::from_headers(&headers);
        secrets.add("sk-12345678-and-more");
        assert_eq!(secrets.redact("Bearer not-a-secret"), None);
        assert_eq!(
            secrets.redact("a sk-12345678-and-more sk-12345678 b").unwrap(),
            "a [redacted] [redacted] b"
        );
        let parts = vec![ContentPart::text("sk-12345678")];
        assert_eq!(
            secrets.redact_result(Ok(parts.into())).unwrap(),
            vec![ContentPart::text("[redacted]")].into()
        );
    }
}
