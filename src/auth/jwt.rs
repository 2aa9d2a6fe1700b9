//! Signed tokens (JWT, RFC 7519) of an identity provider. The principal is a token's subject, in the name space of its
//! issuer.

mod algorithm;
mod claims;
mod compact;
mod jwks;
mod key;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use http::request::Parts;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

pub use self::{algorithm::JwtAlgorithm, claims::JwtOptions, jwks::JwksOptions};
use self::{compact::Compact, jwks::Jwks, key::VerifyingKey};
use crate::auth::{
    authenticator::{Authenticate, Authenticator, bearer_token},
    error::{AuthError, KeyError, TokenError},
};
use agui_agent::{Principal, host::is_valid_name};
use agui_base::upstream::trust::is_trusted_url;

const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The characters that are escaped in an issuer, so that `jwt:ISSUER:SUBJECT` has one reading.
const ISSUER: &AsciiSet = &CONTROLS.add(b':').add(b'%');

/// Checks tokens. Cheap to clone.
#[derive(Clone)]
pub struct Jwt(Arc<TokenRules>);

struct TokenRules {
    keys: Keys,
    algorithms: Vec<JwtAlgorithm>,
    options: JwtOptions,
}

enum Keys {
    One(VerifyingKey),
    Set(Jwks),
}

impl Jwt {
    /// Checks tokens with a secret (HS256).
    ///
    /// # Errors
    /// [`KeyError::ShortSecret`] if it is shorter than 32 bytes.
    pub fn from_secret(secret: &[u8], options: JwtOptions) -> Result<Self, KeyError> {
        Ok(Self::with_key(VerifyingKey::from_secret(secret)?, options))
    }

    /// Checks tokens with a public key in PEM: on the curve P-256 (ES256), P-384 (ES384) or Ed25519 (EdDSA), or an RSA
    /// key, which is for the first RSA algorithm of `algorithms`, by default RS256.
    ///
    /// # Errors
    /// A [`KeyError`] if the text is not such a key.
    pub fn from_public_key(
        pem: &str,
        algorithms: &[JwtAlgorithm],
        options: JwtOptions,
    ) -> Result<Self, KeyError> {
        Ok(Self::with_key(VerifyingKey::from_pem(pem, algorithms)?, options))
    }

    /// Checks tokens with the public keys at a URL (JWKS). If `algorithms` is empty: with all of public keys. A key is for
    /// the algorithm that it names; an RSA key that names none is for the first RSA algorithm of the list.
    ///
    /// # Errors
    /// If the URL is neither `https` nor on this machine, HS256 is named, or TLS cannot be set up.
    pub fn from_jwks(
        url: &str,
        algorithms: &[JwtAlgorithm],
        fetching: JwksOptions,
        options: JwtOptions,
    ) -> Result<Self, KeyError> {
        if !is_trusted_url(url) {
            return Err(KeyError::InsecureUrl);
        }
        let algorithms = match algorithms {
            [] => JwtAlgorithm::FOR_PUBLIC_KEYS.to_vec(),
            some if some.contains(&JwtAlgorithm::Hs256) => return Err(KeyError::SecretInSet),
            some => some.to_vec(),
        };
        let set = Jwks::new(url, algorithms.clone(), fetching)
            .map_err(|error| KeyError::Client(error.to_string()))?;
        Ok(Self::new(Keys::Set(set), algorithms, options))
    }

    /// The accepted algorithms.
    pub fn algorithms(&self) -> impl Iterator<Item = JwtAlgorithm> + '_ {
        self.0.algorithms.iter().copied()
    }

    fn with_key(key: VerifyingKey, options: JwtOptions) -> Self {
        let algorithms = vec![key.algorithm];
        Self::new(Keys::One(key), algorithms, options)
    }

    fn new(keys: Keys, algorithms: Vec<JwtAlgorithm>, options: JwtOptions) -> Self {
        Self(Arc::new(TokenRules { keys, algorithms, options }))
    }

    async fn principal(&self, token: &[u8]) -> Result<Principal, AuthError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong.into());
        }
        let token = Compact::read(token)?;
        let claimed = token.algorithm()?;
        let keys = match &self.0.keys {
            Keys::One(key) => vec![key.clone()],
            Keys::Set(set) => set.find(token.header.kid.as_deref(), claimed).await?,
        };
        // The key decides, never the token.
        if keys.iter().any(|key| key.algorithm != claimed) {
            return Err(TokenError::Algorithm.into());
        }
        let has_signed = |key: &VerifyingKey| key.verify(token.message, &token.signature).is_ok();
        if !keys.iter().any(has_signed) {
            return Err(TokenError::Signature.into());
        }
        let mut claims = token.claims()?;
        let options = &self.0.options;
        let expiry = claims::check(&claims, options)?;
        let issuer = match claims.get("iss") {
            None | Some(Value::Null) => "",
            Some(Value::String(issuer)) if is_valid_name(issuer) => issuer,
            Some(_) => return Err(TokenError::Issuer.into()),
        };
        match claims.get(&options.subject_claim) {
            Some(Value::String(subject)) if is_valid_name(subject) => {
                let issuer = utf8_percent_encode(issuer, ISSUER);
                let mut principal = Principal::new(&format!("jwt:{issuer}"), subject);
                if let Some(time) = expiry {
                    principal = principal.with_expiry(time);
                }
                claims.retain(|name, _| options.claims.contains(name));
                Ok(principal.with_claims(claims))
            }
            _ => Err(TokenError::Subject.into()),
        }
    }
}

impl From<Jwt> for Authenticator {
    fn from(jwt: Jwt) -> Self {
        Self::new(jwt)
    }
}

#[async_trait]
impl Authenticate for Jwt {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        self.principal(bearer_token(&request.headers)?).await
    }

    fn mode(&self) -> Option<&'static str> {
        Some("jwt")
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("algorithms", &self.algorithms().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
