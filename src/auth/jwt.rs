//! Signed tokens (JWT, RFC 7519) of an identity provider. The principal is a token's subject, in the name space of its
//! issuer.

mod algorithm;
mod crypto;
mod jwks;
mod key;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use http::request::Parts;
use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

pub use self::{algorithm::JwtAlgorithm, jwks::JwksOptions};
use self::{
    jwks::Jwks,
    key::{VerifyingKey, algorithm_of},
};
use super::{
    authenticator::{Authenticate, Authenticator, bearer_token},
    error::{AuthError, KeyError, TokenError},
    principal::{Principal, is_valid_name},
};
use crate::upstream::trust::is_trusted_url;

const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The characters that are escaped in an issuer, so that `jwt:ISSUER:SUBJECT` has one reading.
const ISSUER: &AsciiSet = &CONTROLS.add(b':').add(b'%');

/// The claims that tokens must have.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JwtOptions {
    /// The required issuer (`iss`); `None` accepts any.
    pub issuer: Option<String>,
    /// The accepted audiences (`aud`). If empty, tokens that were made for any other application are accepted, too.
    pub audience: Vec<String>,
    /// The largest accepted difference between clocks.
    pub leeway: Duration,
    /// The claim with the principal's name.
    pub subject_claim: String,
    /// The claims that tools can read from the principal ([`Principal::claim`]).
    pub claims: Vec<String>,
}

impl JwtOptions {
    /// Accepts tokens for one of these audiences.
    pub fn new(audience: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            issuer: None,
            audience: audience.into_iter().map(Into::into).collect(),
            leeway: Duration::from_secs(30),
            subject_claim: "sub".to_owned(),
            claims: Vec::new(),
        }
    }
}

/// Checks tokens. Cheap to clone.
///
/// The first one installs ring for the crate `jsonwebtoken` in the whole process, which then verifies only, and only
/// with [`JwtAlgorithm`]s. An application that uses that crate itself installs its own provider before.
#[derive(Clone)]
pub struct Jwt(Arc<TokenRules>);

struct TokenRules {
    keys: Keys,
    subject_claim: String,
    kept_claims: Vec<String>,
    leeway: Duration,
    checks: Vec<(JwtAlgorithm, Validation)>,
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

    /// Checks tokens with a public key in PEM: RSA (RS256), or on the curve P-256 (ES256).
    ///
    /// # Errors
    /// A [`KeyError`] if the text is not such a key.
    pub fn from_public_key(pem: &str, options: JwtOptions) -> Result<Self, KeyError> {
        Ok(Self::with_key(VerifyingKey::from_pem(pem)?, options))
    }

    /// Checks tokens with the public keys at a URL (JWKS). `algorithms` are some of RS256 and ES256; if empty, both.
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
            [] => vec![JwtAlgorithm::Rs256, JwtAlgorithm::Es256],
            some if some.contains(&JwtAlgorithm::Hs256) => return Err(KeyError::SecretInSet),
            some => some.to_vec(),
        };
        let set = Jwks::new(url, algorithms.clone(), fetching).map_err(|error| KeyError::Client(error.to_string()))?;
        Ok(Self::new(Keys::Set(set), &algorithms, options))
    }

    /// The accepted algorithms.
    pub fn algorithms(&self) -> impl Iterator<Item = JwtAlgorithm> + '_ {
        self.0.checks.iter().map(|(algorithm, _)| *algorithm)
    }

    fn with_key(key: VerifyingKey, options: JwtOptions) -> Self {
        let algorithm = key.algorithm;
        Self::new(Keys::One(key), &[algorithm], options)
    }

    fn new(keys: Keys, algorithms: &[JwtAlgorithm], options: JwtOptions) -> Self {
        crypto::install();
        let checks = algorithms.iter().map(|algorithm| (*algorithm, validation(*algorithm, &options))).collect();
        let JwtOptions { subject_claim, claims: kept_claims, leeway, .. } = options;
        Self(Arc::new(TokenRules { keys, subject_claim, kept_claims, leeway, checks }))
    }

    async fn principal(&self, token: &[u8]) -> Result<Principal, AuthError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong.into());
        }
        // Also refuses `alg: none`, and algorithms that the library does not know.
        let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
        if header.crit.is_some() {
            return Err(TokenError::Critical.into());
        }
        let claimed = algorithm_of(header.alg).ok_or(TokenError::Algorithm)?;
        let key = match &self.0.keys {
            Keys::One(key) => key.clone(),
            Keys::Set(set) => set.find(header.kid.as_deref(), claimed).await?,
        };
        // The library compares the key's algorithm with the token's.
        let mut checks = self.0.checks.iter().filter(|(algorithm, _)| *algorithm == key.algorithm);
        let (_, validation) = checks.next().ok_or(TokenError::Algorithm)?;
        let mut claims: Map<String, Value> =
            decode(token, &key.decoding, validation).map_err(|error| token_error(error.kind()))?.claims;
        let issuer = match claims.get("iss") {
            None | Some(Value::Null) => "",
            Some(Value::String(issuer)) if is_valid_name(issuer) => issuer,
            Some(_) => return Err(TokenError::Issuer.into()),
        };
        match claims.get(&self.0.subject_claim) {
            Some(Value::String(subject)) if is_valid_name(subject) => {
                let issuer = utf8_percent_encode(issuer, ISSUER);
                let mut principal = Principal::new(&format!("jwt:{issuer}"), subject);
                if let Some(time) = claims.get("exp").and_then(Value::as_f64).and_then(|exp| self.end_of(exp)) {
                    principal = principal.with_expiry(time);
                }
                claims.retain(|name, _| self.0.kept_claims.contains(name));
                Ok(principal.with_claims(claims))
            }
            _ => Err(TokenError::Subject.into()),
        }
    }

    /// Returns the time until which a token is accepted; `None` if no clock reaches it.
    fn end_of(&self, exp: f64) -> Option<SystemTime> {
        let since_1970 = Duration::try_from_secs_f64(exp).ok()?.checked_add(self.0.leeway)?;
        SystemTime::UNIX_EPOCH.checked_add(since_1970)
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

    fn name(&self) -> &'static str {
        "jwt"
    }

    fn expects_bearer(&self) -> bool {
        true
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").field("algorithms", &self.algorithms().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

fn validation(algorithm: JwtAlgorithm, options: &JwtOptions) -> Validation {
    let mut validation = Validation::new(algorithm.into());
    let mut required = vec!["exp"];
    validation.leeway = options.leeway.as_secs();
    validation.validate_nbf = true;
    if options.audience.is_empty() {
        validation.validate_aud = false;
    } else {
        validation.set_audience(&options.audience);
        // Otherwise a token without `aud` would be accepted.
        required.push("aud");
    }
    if let Some(issuer) = &options.issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    validation
}

fn token_error(kind: &ErrorKind) -> TokenError {
    let claim = |name: &str| ["exp", "nbf", "aud", "iss"].into_iter().find(|known| *known == name).unwrap_or("needed");
    match kind {
        ErrorKind::MissingRequiredClaim(name) | ErrorKind::InvalidClaimFormat(name) => TokenError::Claim(claim(name)),
        ErrorKind::ExpiredSignature => TokenError::Expired,
        ErrorKind::ImmatureSignature => TokenError::NotYet,
        ErrorKind::InvalidAudience => TokenError::Audience,
        ErrorKind::InvalidIssuer => TokenError::Issuer,
        ErrorKind::InvalidAlgorithm => TokenError::Algorithm,
        ErrorKind::InvalidToken | ErrorKind::Base64(_) | ErrorKind::Json(_) | ErrorKind::Utf8(_) => {
            TokenError::Malformed
        }
        _ => TokenError::Signature,
    }
}

#[cfg(test)]
mod tests;
