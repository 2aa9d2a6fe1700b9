//! The signature algorithms of tokens.

use serde::Deserialize;

/// A signature algorithm of tokens (RFC 7518, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256. The secret that checks a token can also make one.
    #[serde(rename = "HS256")]
    Hs256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on the curve P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
}

impl JwtAlgorithm {
    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }
}
