//! Signed tokens (JWT) that somebody else hands out, and this server checks.
//!
//! A token is believed when its signature fits a key of the server's choice, it has not expired, it was made for this
//! server (`aud`), and, where that is configured, by the right one (`iss`). Its subject is who asks.

use std::{fmt, sync::Arc, time::Duration};

use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

use super::{
    AuthError, Identity, crypto,
    jwks::{Jwks, JwksOptions, is_safe},
    key::{JwtAlgorithm, KeyError, VerifyingKey},
};

/// The longest token, in bytes. Larger ones are some other thing, and not worth a look.
const LONGEST_TOKEN: usize = 16 * 1024;
/// The longest issuer and the longest subject, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// What is escaped in an issuer, so that its end is plain in `jwt:ISSUER:SUBJECT`.
const ISSUER: &AsciiSet = &CONTROLS.add(b':').add(b'%');

/// What a token has to say.
#[derive(Debug, Clone)]
pub struct JwtOptions {
    /// Who has to have made it (`iss`); `None` for whoever has the key.
    pub issuer: Option<String>,
    /// Whom it may be for (`aud`). Nothing here lets tokens in that were made for any other application.
    pub audience: Vec<String>,
    /// By how much clocks may differ.
    pub leeway: Duration,
    /// The claim that names who asks.
    pub subject_claim: String,
}

impl JwtOptions {
    /// Tokens for one of these.
    pub fn new(audience: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            issuer: None,
            audience: audience.into_iter().map(Into::into).collect(),
            leeway: Duration::from_secs(30),
            subject_claim: "sub".to_owned(),
        }
    }
}

/// Why tokens cannot be checked at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keys of a JWKS are for RS256 and ES256.
    #[error("a set of public keys has none for HS256")]
    SecretInSet,
    /// The keys could be changed on the way.
    #[error("an address with https is needed, without a password; http is for this machine alone")]
    InsecureUrl,
    /// The HTTP client could not be made.
    #[error("cannot ask for keys: {0}")]
    Client(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

/// What is wrong with a token. Said to whoever sent it, so nothing here repeats any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// It is longer than any token should be.
    #[error("the token is too long")]
    TooLong,
    /// It cannot be read, or is not signed.
    #[error("this is no signed JWT that the server can read")]
    Malformed,
    /// It asks for something to be understood that this server does not.
    #[error("the token has critical extensions that the server does not know")]
    Critical,
    /// Its algorithm is not the key's.
    #[error("the token is signed with an algorithm that is not accepted")]
    Algorithm,
    /// It names a key that there is not.
    #[error("the token is signed with a key that the server does not know")]
    UnknownKey,
    /// It names no key, and there are several.
    #[error("the token does not say which key it is signed with (kid)")]
    NoKeyId,
    /// The signature does not fit.
    #[error("the token's signature is not valid")]
    Signature,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYet,
    /// It is for somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// Somebody else made it.
    #[error("the token is from another issuer")]
    Issuer,
    /// A claim that it must have is missing, or not of the right type.
    #[error("the token has no usable {0} claim")]
    Claim(&'static str),
    /// It does not say whose it is.
    #[error("the token does not name a subject, or not in 1 to 256 bytes of plain text")]
    Subject,
}

/// Checks tokens. Cheap to clone.
///
/// The first one that is made has `jsonwebtoken` use ring, and only for what is needed here. An application that uses
/// that crate itself installs the provider of its choice before.
#[derive(Clone)]
pub struct Jwt(Arc<Inner>);

struct Inner {
    keys: Keys,
    subject_claim: String,
    /// One for each algorithm that is accepted.
    checks: Vec<(JwtAlgorithm, Validation)>,
}

enum Keys {
    One(Arc<VerifyingKey>),
    Set(Jwks),
}

impl Jwt {
    /// Checks tokens that are signed with a secret (HS256).
    ///
    /// # Errors
    /// When it is shorter than 32 bytes.
    pub fn from_secret(secret: &[u8], options: JwtOptions) -> Result<Self, JwtError> {
        Ok(Self::with_key(VerifyingKey::from_secret(secret)?, options))
    }

    /// Checks tokens by a public key in PEM: RSA (RS256) or on the curve P-256 (ES256).
    ///
    /// # Errors
    /// When it is not such a key.
    pub fn from_public_key(pem: &str, options: JwtOptions) -> Result<Self, JwtError> {
        Ok(Self::with_key(VerifyingKey::from_pem(pem)?, options))
    }

    /// Checks tokens by the public keys at an address (JWKS), for RS256 and ES256 or for those of them that are named.
    /// The keys are fetched when the first token comes.
    ///
    /// # Errors
    /// When the address is neither `https` nor one of this machine, HS256 is named, or HTTPS cannot be set up.
    pub fn from_jwks(
        url: &str,
        algorithms: &[JwtAlgorithm],
        fetching: JwksOptions,
        options: JwtOptions,
    ) -> Result<Self, JwtError> {
        if !is_safe(url) {
            return Err(JwtError::InsecureUrl);
        }
        let algorithms = match algorithms {
            [] => vec![JwtAlgorithm::Rs256, JwtAlgorithm::Es256],
            some if some.contains(&JwtAlgorithm::Hs256) => return Err(JwtError::SecretInSet),
            some => some.to_vec(),
        };
        let set = Jwks::new(url, algorithms.clone(), fetching).map_err(|error| JwtError::Client(Arc::new(error)))?;
        Ok(Self::new(Keys::Set(set), &algorithms, options))
    }

    fn with_key(key: VerifyingKey, options: JwtOptions) -> Self {
        let algorithm = key.algorithm;
        Self::new(Keys::One(Arc::new(key)), &[algorithm], options)
    }

    fn new(keys: Keys, algorithms: &[JwtAlgorithm], options: JwtOptions) -> Self {
        crypto::install();
        let checks = algorithms.iter().map(|algorithm| (*algorithm, validation(*algorithm, &options))).collect();
        Self(Arc::new(Inner { keys, subject_claim: options.subject_claim, checks }))
    }

    /// The algorithms of the tokens that are accepted.
    pub fn algorithms(&self) -> impl Iterator<Item = JwtAlgorithm> + '_ {
        self.0.checks.iter().map(|(algorithm, _)| *algorithm)
    }

    /// Returns the issuer and the subject of a token.
    pub(super) async fn identity(&self, token: &[u8]) -> Result<Identity, AuthError> {
        if token.len() > LONGEST_TOKEN {
            return Err(TokenFault::TooLong.into());
        }
        // Also refuses `alg: none`, and every algorithm that the library has no name for.
        let header = decode_header(token).map_err(|_| TokenFault::Malformed)?;
        if header.crit.is_some() {
            return Err(TokenFault::Critical.into());
        }
        let claimed = JwtAlgorithm::of_token(header.alg).ok_or(TokenFault::Algorithm)?;
        let key = match &self.0.keys {
            Keys::One(key) => key.clone(),
            Keys::Set(set) => set.find(header.kid.as_deref(), claimed).await?,
        };
        // By the key's algorithm, which the library compares with the token's.
        let mut checks = self.0.checks.iter().filter(|(algorithm, _)| *algorithm == key.algorithm);
        let (_, validation) = checks.next().ok_or(TokenFault::Algorithm)?;
        let claims: Map<String, Value> =
            decode(token, &key.decoding, validation).map_err(|error| fault(error.kind()))?.claims;
        let issuer = match claims.get("iss") {
            None | Some(Value::Null) => "",
            Some(Value::String(issuer)) if is_name(issuer) => issuer,
            Some(_) => return Err(TokenFault::Issuer.into()),
        };
        match claims.get(&self.0.subject_claim) {
            Some(Value::String(subject)) if is_name(subject) => {
                let issuer = utf8_percent_encode(issuer, ISSUER);
                Ok(Identity { source: format!("jwt:{issuer}").into(), name: subject.as_str().into() })
            }
            _ => Err(TokenFault::Subject.into()),
        }
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
        // Without this, a token that is for nobody in particular would pass.
        required.push("aud");
    }
    if let Some(issuer) = &options.issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    validation
}

fn fault(kind: &ErrorKind) -> TokenFault {
    let claim = |name: &str| ["exp", "nbf", "aud", "iss"].into_iter().find(|known| *known == name).unwrap_or("needed");
    match kind {
        ErrorKind::MissingRequiredClaim(name) | ErrorKind::InvalidClaimFormat(name) => TokenFault::Claim(claim(name)),
        ErrorKind::ExpiredSignature => TokenFault::Expired,
        ErrorKind::ImmatureSignature => TokenFault::NotYet,
        ErrorKind::InvalidAudience => TokenFault::Audience,
        ErrorKind::InvalidIssuer => TokenFault::Issuer,
        ErrorKind::InvalidAlgorithm => TokenFault::Algorithm,
        ErrorKind::InvalidToken | ErrorKind::Base64(_) | ErrorKind::Json(_) | ErrorKind::Utf8(_) => {
            TokenFault::Malformed
        }
        _ => TokenFault::Signature,
    }
}

/// Threads are stored under issuer and subject, and log lines quote the subject, so both are short plain text.
fn is_name(subject: &str) -> bool {
    subject.len() <= MAX_NAME_BYTES && !subject.trim().is_empty() && !subject.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
