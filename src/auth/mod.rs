//! Who may use the server.
//!
//! Of the request it knows the text of the `Authorization` header alone, and of runs nothing. Keys are compared, and
//! tokens checked, here; only the public keys of an identity provider are asked for elsewhere.

mod api_key;
mod crypto;
mod jwks;
mod jwt;
mod key;

pub use api_key::{ApiKey, ApiKeys, InvalidDigest};
pub use jwks::JwksOptions;
pub use jwt::{Jwt, JwtError, JwtOptions, TokenFault};
pub use key::{JwtAlgorithm, KeyError};

use std::{sync::Arc, time::Duration};

/// How a server tells who is asking.
#[derive(Debug, Clone, Default)]
pub enum Authenticator {
    /// It does not: everybody who can reach it may use it.
    #[default]
    Open,
    /// By named keys.
    ApiKeys(ApiKeys),
    /// By tokens that somebody else signs.
    Jwt(Jwt),
}

/// Who presented a credential.
///
/// The `source` belongs to the identity: a key and a token subject of the same name are two principals, and so are
/// equal subjects of two issuers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Where the name comes from: `key`, or `jwt:ISSUER` with `:` and `%` in the issuer percent-encoded.
    pub source: Arc<str>,
    /// The key's name or the token's subject.
    pub name: Arc<str>,
}

/// Why somebody was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No credential came along.
    #[error("this server needs a credential: send `Authorization: Bearer <key or token>`")]
    Missing,
    /// The header is there, but it is not a bearer token.
    #[error("the Authorization header is not of the form `Bearer <key or token>`")]
    NotBearer,
    /// Nobody has this key.
    #[error("the key is not valid")]
    Unknown,
    /// The token is not to be believed.
    #[error(transparent)]
    Token(#[from] TokenFault),
    /// Tokens cannot be checked, as the keys for that cannot be had.
    #[error("the keys that tokens are checked with are not available; please try again")]
    NoKeys {
        /// When that could have changed.
        retry_after: Duration,
    },
}

impl Authenticator {
    /// Whether everybody is let in.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// Returns who presents this `Authorization` header; `None` when the server asks for no credentials.
    ///
    /// # Errors
    /// An [`AuthError`] when the header is missing, malformed, or carries an invalid credential.
    pub async fn identify(&self, authorization: Option<&[u8]>) -> Result<Option<Identity>, AuthError> {
        let credential = || bearer_token(authorization.ok_or(AuthError::Missing)?).ok_or(AuthError::NotBearer);
        match self {
            Self::Open => Ok(None),
            Self::ApiKeys(keys) => keys.owner(credential()?).map(Some).ok_or(AuthError::Unknown),
            Self::Jwt(jwt) => jwt.identity(credential()?).await.map(Some),
        }
    }
}

/// The token of a `Bearer` header. The scheme's name is case-insensitive.
fn bearer_token(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_header_is_read_whatever_its_case_and_spacing() {
        assert_eq!(bearer_token(b"Bearer abc"), Some(&b"abc"[..]));
        assert_eq!(bearer_token(b"bEARER   abc "), Some(&b"abc"[..]));
        for header in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert_eq!(bearer_token(header.as_bytes()), None, "{header}");
        }
    }

    #[tokio::test]
    async fn each_way_to_fail_is_told_apart() {
        let keys = Authenticator::ApiKeys(ApiKeys::new([ApiKey::from_secret("web", "s3cret")]));
        assert_eq!(keys.identify(None).await, Err(AuthError::Missing));
        assert_eq!(keys.identify(Some(b"Basic s3cret")).await, Err(AuthError::NotBearer));
        assert_eq!(keys.identify(Some(b"Bearer s3cre")).await, Err(AuthError::Unknown));
        let web = Identity { source: "key".into(), name: "web".into() };
        assert_eq!(keys.identify(Some(b"Bearer s3cret")).await, Ok(Some(web)));
        assert_eq!(Authenticator::Open.identify(None).await, Ok(None));
    }
}
