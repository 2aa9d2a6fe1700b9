//! The signature algorithms of tokens.

use serde::Deserialize;

/// A signature algorithm of tokens (RFC 7518, section 3.1; RFC 8037; RFC 9864).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256. The secret that checks a token can also make one.
    Hs256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// RSA (PKCS #1 v1.5) with SHA-384.
    Rs384,
    /// RSA (PKCS #1 v1.5) with SHA-512.
    Rs512,
    /// RSA (PSS) with SHA-256.
    Ps256,
    /// RSA (PSS) with SHA-384.
    Ps384,
    /// RSA (PSS) with SHA-512.
    Ps512,
    /// ECDSA on the curve P-256 with SHA-256.
    Es256,
    /// ECDSA on the curve P-384 with SHA-384.
    Es384,
    /// EdDSA on the curve Ed25519. Its newer name is `Ed25519`.
    #[serde(rename = "EdDSA", alias = "Ed25519")]
    EdDsa,
}

impl JwtAlgorithm {
    /// The algorithms of public keys. An RSA key that names none uses the first accepted one.
    pub(super) const FOR_PUBLIC_KEYS: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}
