//! The API keys that a server accepts.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use http::request::Parts;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::auth::{
    ApiKey, AuthError, Authenticator,
    authenticator::{Authenticate, bearer_token},
};
use agui_agent::Principal;

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
        let matching = |key: &ApiKey| bool::from(key.digest.ct_eq(&digest));
        self.0
            .iter()
            .fold(None, |found, key| if matching(key) { Some(&key.principal) } else { found })
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

    fn mode(&self) -> Option<&'static str> {
        Some("api_key")
    }

    fn api_keys(&self) -> Option<&[ApiKey]> {
        Some(&self.0)
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
        let keys =
            ApiKeys::new([key("web", "new"), key("ci", "c"), key("web", "old"), key("web", "old")]);
        assert_eq!(
            (keys.principal(b"new").unwrap().id(), keys.principal(b"old").unwrap().id()),
            ("key:web", "key:web")
        );
        assert_eq!(keys.find_shared(), None);
        assert_eq!(
            ApiKeys::new([key("web", "a"), key("ci", "a")]).find_shared(),
            Some(["web", "ci"])
        );
    }

    #[tokio::test]
    async fn a_request_without_a_principal_needs_the_key_as_well() {
        let keys = ApiKeys::new([ApiKey::from_secret("command", "secret")]);
        let authenticator = Authenticator::from(keys).without_principal();
        let authenticate = async |authorization: &str| {
            let request =
                http::Request::builder().header("authorization", authorization).body(()).unwrap();
            authenticator.authenticate(&request.into_parts().0).await
        };
        assert_eq!(authenticate("Bearer secret").await.unwrap(), None);
        for other in ["Bearer other", "secret"] {
            authenticate(other).await.unwrap_err();
        }
    }
}
