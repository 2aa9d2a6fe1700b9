//! Named API keys, stored as SHA-256 digests.

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use http::request::Parts;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{
    AuthError, Authenticator, KeyError, Principal,
    authenticator::{Authenticate, bearer_token},
};
use crate::base::text::hex;

const SOURCE: &str = "key";

/// An API key and its name, kept as a SHA-256.
#[derive(Clone)]
pub struct ApiKey {
    principal: Principal,
    digest: [u8; 32],
    /// Another hash, which is not in a configuration as the digest may be.
    signing_key: Option<[u8; 32]>,
}

impl ApiKey {
    /// A key, given in plain text.
    pub fn from_secret(name: impl AsRef<str>, secret: &str) -> Self {
        let signing_key = Sha256::new().chain_update("agui-server signs with ").chain_update(secret).finalize();
        let signing_key = Some(signing_key.into());
        Self { signing_key, ..Self::new(name.as_ref(), Sha256::digest(secret.as_bytes()).into()) }
    }

    /// A key, given as the SHA-256 of its plain text in hexadecimal.
    ///
    /// # Errors
    /// If the text is not 64 hexadecimal digits.
    pub fn from_sha256(name: impl AsRef<str>, hex: &str) -> Result<Self, KeyError> {
        let digits: Option<Vec<u8>> = hex.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        let digits: [u8; 64] = digits.and_then(|digits| digits.try_into().ok()).ok_or(KeyError::Digest)?;
        let digest = std::array::from_fn(|at| digits[2 * at] << 4 | digits[2 * at + 1]);
        Ok(Self::new(name.as_ref(), digest))
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
    /// its SHA-256. The inner hash keeps a longer text from having a signature that follows from this one.
    pub(crate) fn sign(&self, text: &str) -> Option<String> {
        let key = self.signing_key?;
        let inner = Sha256::new().chain_update(key).chain_update(text).finalize();
        let outer = Sha256::new().chain_update(key).chain_update(inner).finalize();
        Some(hex(&outer))
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

/// The API keys of a server. A key's name is the name of its principal.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiKeys(Arc<[ApiKey]>);

impl ApiKeys {
    /// Accepts these keys.
    pub(crate) fn new(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Returns two names that have the same key.
    pub(crate) fn find_shared(&self) -> Option<[&str; 2]> {
        let mut by_digest = HashMap::new();
        self.0.iter().find_map(|key| {
            let other = by_digest.insert(key.digest, key.principal.name())?;
            (other != key.principal.name()).then(|| [other, key.principal.name()])
        })
    }

    /// Compares the digests of all keys in constant time, so that the response time reveals nothing about any key.
    fn principal(&self, secret: &[u8]) -> Option<&Principal> {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let mut found = None;
        for key in self.0.iter() {
            if bool::from(key.digest.ct_eq(&digest)) {
                found = Some(&key.principal);
            }
        }
        found
    }
}

impl From<ApiKeys> for Authenticator {
    fn from(keys: ApiKeys) -> Self {
        Self::new(keys)
    }
}

#[async_trait]
impl Authenticate for ApiKeys {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        self.principal(bearer_token(&request.headers)?).cloned().ok_or(AuthError::UnknownKey)
    }

    fn name(&self) -> &'static str {
        "api_key"
    }

    fn api_keys(&self) -> &[ApiKey] {
        &self.0
    }

    fn expects_bearer(&self) -> bool {
        true
    }

    fn has_one_principal(&self) -> bool {
        self.0.windows(2).all(|keys| keys[0].principal == keys[1].principal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_by_secret_and_by_digest() {
        let hex = "2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B"; // of "secret"
        let keys = ApiKeys::new([ApiKey::from_sha256("ci", hex).unwrap()]);
        assert_eq!(keys.principal(b"secret").unwrap().id(), "key:ci");
        assert_eq!(keys.principal(b"Secret"), None);
    }

    #[test]
    fn a_name_may_have_several_keys_and_two_names_no_common_one() {
        let key = |name: &str, secret: &str| ApiKey::from_secret(name, secret);
        let keys = ApiKeys::new([key("web", "new"), key("ci", "c"), key("web", "old"), key("web", "old")]);
        assert_eq!(
            (keys.principal(b"new").unwrap().id(), keys.principal(b"old").unwrap().id()),
            ("key:web", "key:web")
        );
        assert_eq!(keys.find_shared(), None);
        assert_eq!(ApiKeys::new([key("web", "a"), key("ci", "a")]).find_shared(), Some(["web", "ci"]));
    }

    #[tokio::test]
    async fn a_request_without_a_principal_needs_the_key_as_well() {
        let keys = ApiKeys::new([ApiKey::from_secret("command", "secret")]);
        let authenticator = Authenticator::from(keys).without_principal();
        let authenticate = async |authorization: &str| {
            let request = http::Request::builder().header("authorization", authorization).body(()).unwrap();
            authenticator.authenticate(&request.into_parts().0).await
        };
        assert_eq!(authenticate("Bearer secret").await.unwrap(), None);
        for other in ["Bearer other", "secret"] {
            authenticate(other).await.unwrap_err();
        }
    }

    #[test]
    fn a_text_that_is_not_a_digest_is_refused() {
        for hex in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66), &"é".repeat(32)] {
            assert_eq!(ApiKey::from_sha256("x", hex).unwrap_err(), KeyError::Digest, "{hex}");
        }
    }

    #[test]
    fn debug_output_shows_no_digest() {
        assert_eq!(format!("{:?}", ApiKey::from_secret("web", "s")), r#"ApiKey { name: "web", .. }"#);
    }
}
