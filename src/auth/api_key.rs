//! A named API key, kept as a SHA-256 digest.

use std::fmt;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::auth::KeyError;
use agui_agent::Principal;
use agui_base::{
    hmac::hmac_sha256,
    text::{from_hex, hex},
};

const SOURCE: &str = "key";

/// An API key and its name, kept as a SHA-256.
#[derive(Clone)]
pub struct ApiKey {
    pub(super) principal: Principal,
    pub(super) digest: [u8; 32],
    /// Another hash, which is not in a configuration as the digest may be.
    signing_key: Option<[u8; 32]>,
}

impl ApiKey {
    /// A key, given in plain text.
    pub fn from_secret(name: impl AsRef<str>, secret: &str) -> Self {
        let signing_key =
            Sha256::new().chain_update("agui-server signs with ").chain_update(secret).finalize();
        let signing_key = Some(signing_key.into());
        Self { signing_key, ..Self::new(name.as_ref(), Sha256::digest(secret.as_bytes()).into()) }
    }

    /// A key, given as the SHA-256 of its plain text in hexadecimal.
    ///
    /// # Errors
    /// If the text is not 64 hexadecimal digits.
    pub fn from_sha256(name: impl AsRef<str>, hex: &str) -> Result<Self, KeyError> {
        Ok(Self::new(name.as_ref(), from_hex(hex).ok_or(KeyError::Digest)?))
    }

    /// Adds facts about the principal, such as a tenant.
    pub(crate) fn with_claims(self, claims: Map<String, Value>) -> Self {
        Self { principal: self.principal.with_claims(claims), ..self }
    }

    /// The principal that sends the key.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns a signature of a text, in hexadecimal, which only holders of the key can make; `None` for a key that was given as
    /// its SHA-256.
    pub(crate) fn sign(&self, text: &str) -> Option<String> {
        self.signing_key.map(|key| hex(&hmac_sha256(&key, text.as_bytes())))
    }

    fn new(name: &str, digest: [u8; 32]) -> Self {
        Self { principal: Principal::new(SOURCE, name), digest, signing_key: None }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("name", &self.principal.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_a_digest_is_refused() {
        for hex in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66), &"é".repeat(32)] {
            assert_eq!(ApiKey::from_sha256("x", hex).unwrap_err(), KeyError::Digest, "{hex}");
        }
    }

    #[test]
    fn debug_output_shows_no_digest() {
        assert_eq!(
            format!("{:?}", ApiKey::from_secret("web", "s")),
            r#"ApiKey { name: "web", .. }"#
        );
    }
}
