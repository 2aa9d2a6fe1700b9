//! Removes secrets from the texts of other servers, before they are logged or shown. Servers repeat
//! keys in them, in full or shortened (`sk-ab***yz`), and proxies repeat whole headers. Known
//! secrets are found by any eight consecutive bytes of them, other secrets by their form.

use std::{
    collections::{HashSet, VecDeque},
    sync::LazyLock,
};

use parking_lot::RwLock;
use regex::Regex;
use secrecy::{ExposeSecret, SecretString};

const REPLACEMENT: &str = "[secret]";
const ADDRESS: &str = "[address]";
/// Fewer bytes would match ordinary words.
const MATCH_BYTES: usize = 8;

/// Texts that a server may repeat: up to two of the key in use, and two of the previous key.
const MAX_LEARNED: usize = 4;

pub struct Scrubber {
    /// The server's host.
    host: String,
    fixed: KnownSecrets,
    /// The secrets of a key that changes, with its text.
    learned: RwLock<VecDeque<(SecretString, KnownSecrets)>>,
}

struct KnownSecrets {
    /// Short secrets, which match as a whole.
    whole: Vec<String>,
    /// All sequences of [`MATCH_BYTES`] bytes in the long secrets.
    pieces: HashSet<Vec<u8>>,
}

impl Scrubber {
    pub fn new(secrets: Vec<String>, host: &str) -> Self {
        Self {
            host: host.to_owned(),
            fixed: KnownSecrets::new(secrets),
            learned: RwLock::default(),
        }
    }

    /// Adds a text of a key, in place of the oldest added one.
    pub fn learn(&self, text: &str) {
        if self.learned.read().iter().any(|(known, _)| known.expose_secret() == text) {
            return;
        }
        let mut learned = self.learned.write();
        learned.push_back((text.into(), KnownSecrets::new(vec![text.to_owned()])));
        let surplus = learned.len().saturating_sub(MAX_LEARNED);
        learned.drain(..surplus);
    }

    pub fn scrub(&self, text: &str) -> String {
        SECRET_FORMS
            .replace_all(&self.scrub_known(text), |found: &regex::Captures<'_>| {
                format!("{}{REPLACEMENT}", found.name("keep").map_or("", |keep| keep.as_str()))
            })
            .into_owned()
    }

    /// Removes known secrets only.
    pub fn scrub_known(&self, text: &str) -> String {
        let clean = self.fixed.removed_from(text);
        self.learned.read().iter().fold(clean, |text, (_, secrets)| secrets.removed_from(&text))
    }

    /// Removes URLs, IP addresses and the server's host.
    pub fn without_addresses(&self, text: &str) -> String {
        let text = ADDRESS_FORMS.replace_all(text, ADDRESS);
        let host = regex::escape(&self.host);
        match Regex::new(&format!(r"(?i)\b{host}(?::\d+)?\b")) {
            Ok(host) => host.replace_all(&text, ADDRESS).into_owned(),
            Err(_) => text.into_owned(),
        }
    }
}

impl KnownSecrets {
    /// Secrets of fewer than four bytes are ignored: they would match ordinary words.
    fn new(secrets: Vec<String>) -> Self {
        let (long, short): (Vec<_>, Vec<_>) =
            secrets.into_iter().partition(|secret| secret.len() >= 2 * MATCH_BYTES);
        let whole = short.into_iter().filter(|secret| secret.len() >= 4).collect();
        let pieces = long
            .iter()
            .flat_map(|secret| secret.as_bytes().windows(MATCH_BYTES).map(<[u8]>::to_vec))
            .collect();
        Self { whole, pieces }
    }

    fn removed_from(&self, text: &str) -> String {
        let mut text = self.without_pieces(text);
        for secret in &self.whole {
            text = text.replace(secret, REPLACEMENT);
        }
        text
    }

    fn without_pieces(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut secret = vec![false; bytes.len()];
        for (at, window) in bytes.windows(MATCH_BYTES).enumerate() {
            if self.pieces.contains(window) {
                secret[at..at + MATCH_BYTES].fill(true);
            }
        }
        let mut clean = String::with_capacity(text.len());
        let mut within = false;
        for (at, c) in text.char_indices() {
            match (secret[at], within) {
                (true, false) => clean.push_str(REPLACEMENT),
                (true, true) => {}
                (false, _) => clean.push(c),
            }
            within = secret[at];
        }
        clean
    }
}

static SECRET_FORMS: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"(?<keep>(?i:bearer|basic)\s+)[^\s,;\x22']{4,}",
        // Keys by their common prefixes, shortened ones too.
        r"\b(?:sk|pk|rk|xai|gsk|nvapi|hf|ghp|pplx|fw|key|api|token)[-_][\w*.\-]{6,}",
        r"\bAIza[\w*.\-]{8,}",
        r"\beyJ[\w\-]{8,}(?:\.[\w\-]+){0,2}",
        r"\b[A-Za-z0-9+/]{32,}={0,2}",
        r"://[^/@\s]+@",
    ])
});

static ADDRESS_FORMS: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        // The end of a sentence is not a part of the URL.
        r"(?i)\b[a-z][a-z0-9+.\-]*://[^\s\x22'<>)\]]*[^\s\x22'<>)\].,;:]",
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b",
        r"(?i)\blocalhost(?::\d+)?\b",
    ])
});

#[expect(clippy::expect_used, reason = "the patterns are constants that a test compiles")]
fn any_of(forms: &[&str]) -> Regex {
    Regex::new(&forms.join("|")).expect("the pattern is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_secret_is_found_whole_and_in_part() {
        let scrubber = Scrubber::new(
            vec!["plain-words-of-a-secret".into(), "short-1".into(), "abc".into()],
            "host",
        );
        let scrub = |text| scrubber.scrub(text);
        assert_eq!(scrub("you sent plain-words-of-a-secret."), "you sent [secret].");
        assert_eq!(scrub("you sent plain-wor****a-secret."), "you sent [secret]****[secret].");
        assert_eq!(scrub("you sent short-1, abc"), "you sent [secret], abc");
        assert_eq!(scrub("plain words ünd nöthing"), "plain words ünd nöthing");
    }

    #[test]
    fn a_text_in_the_form_of_a_secret_is_removed() {
        let scrubber = Scrubber::new(Vec::new(), "host");
        for (text, clean) in [
            ("Authorization: Bearer abcd.efgh/123", "Authorization: Bearer [secret]"),
            (
                "Incorrect API key provided: sk-proj-ab***********yz1",
                "Incorrect API key provided: [secret]",
            ),
            ("key=AIzaSyA1234567890, bad", "key=[secret], bad"),
            ("0123456789abcdef0123456789abcdef!", "[secret]!"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[secret]"),
            ("at https://user:pass@host/v1", "at https[secret]host/v1"),
            (
                "model claude-3-5-sonnet-20240620 not found",
                "model claude-3-5-sonnet-20240620 not found",
            ),
            (
                "anthropic.claude-3-5-sonnet-20240620-v1:0",
                "anthropic.claude-3-5-sonnet-20240620-v1:0",
            ),
            ("maximum context length is 128000 tokens", "maximum context length is 128000 tokens"),
        ] {
            assert_eq!(scrubber.scrub(text), clean);
        }
    }
}
