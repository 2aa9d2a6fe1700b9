//! Reasons to refuse a request, failures to check it, and keys that cannot be used.

use std::{borrow::Cow, error::Error, time::Duration};

use agui_base::refusals;

refusals! {
    /// The reason why a request has no principal. Refused with 401 and its text, unless the variant says otherwise.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum AuthError {
        /// The request has no `Authorization` header.
        #[error("this server needs a credential: send `Authorization: Bearer <key or token>`")]
        #[refusal(UNAUTHORIZED, "unauthenticated", Authentication)]
        Missing,
        /// The `Authorization` header is not a bearer token.
        #[error("the Authorization header is not of the form `Bearer <key or token>`")]
        #[refusal(UNAUTHORIZED, "unauthenticated", Authentication)]
        NotBearer,
        /// No key of the server has this value.
        #[error("the key is not valid")]
        #[refusal(UNAUTHORIZED, "invalid_key", Authentication)]
        UnknownKey,
        /// The token was not accepted.
        #[error(transparent)]
        #[refusal(UNAUTHORIZED, "invalid_token", Authentication)]
        Token(#[from] TokenError),
        /// The keys that tokens are checked with have not been fetched. Refused with 503.
        #[error("the keys that tokens are checked with are not available; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "keys_unavailable", Authentication)]
        NoKeys {
            /// The time until the keys may be fetched again.
            retry_after: Duration,
        },
        /// The application refused the request, for this reason.
        #[error("{0}")]
        #[refusal(UNAUTHORIZED, "unauthenticated", Authentication)]
        Refused(Cow<'static, str>),
        /// The application could not check the request. Refused with 503; the cause goes to the log only.
        #[error("credentials cannot be checked now; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "authentication_unavailable", Authentication)]
        Failed(#[source] Box<dyn Error + Send + Sync>),
    }
}

impl AuthError {
    /// A refusal. The reason is sent to the caller.
    pub fn refused(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(reason.into())
    }

    /// A failure to check a credential. The cause goes to the log, and never to the caller.
    pub fn failed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(cause.into())
    }
}

/// The reason why keys cannot be used to authenticate callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not a SHA-256 in hexadecimal.
    #[error("not a SHA-256: 64 hexadecimal digits are needed")]
    Digest,
    /// The secret is shorter than 32 bytes.
    #[error(
        "the secret is too short: at least 32 bytes are needed, such as from `openssl rand -hex 32`"
    )]
    ShortSecret,
    /// The key is a private one.
    #[error("this is a private key: configure the public one, and keep this one off the server")]
    Private,
    /// The text is not a public key.
    #[error(
        "not a public key in PEM (`-----BEGIN PUBLIC KEY-----`) for RSA, the curves P-256 and P-384, or Ed25519"
    )]
    NotPem,
    /// The RSA key is shorter than 2048 bits.
    #[error("the RSA key is too short: at least 2048 bits are needed")]
    ShortRsa,
    /// HS256 was asked for with public keys.
    #[error("published keys are public, and HS256 needs a secret")]
    SecretInSet,
    /// The URL of the keys is neither `https` nor on this machine, or has credentials.
    #[error("the URL must be https, without credentials; http is accepted for localhost only")]
    InsecureUrl,
    /// The HTTP client could not be built, for this reason.
    #[error("cannot build an HTTP client to fetch keys: {0}")]
    Client(String),
}

/// The rule that a token breaks. The caller is sent this text, so it repeats nothing of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is longer than 16 KiB.
    #[error("the token is too long")]
    TooLong,
    /// The token cannot be read, or is not signed.
    #[error("the token is not a signed JWT")]
    Malformed,
    /// The token has `crit` extensions, which this server does not know.
    #[error("the token has critical extensions that the server does not know")]
    Critical,
    /// The token's algorithm is not the key's.
    #[error("the token is signed with an algorithm that is not accepted")]
    Algorithm,
    /// The token names an unknown key.
    #[error("the token is signed with a key that the server does not know")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token's signature is not valid")]
    Signature,
    /// The token has expired (`exp`).
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet (`nbf`).
    #[error("the token is not valid yet")]
    NotYet,
    /// The token was made for another audience (`aud`).
    #[error("the token is for another audience")]
    Audience,
    /// The token was made by another issuer (`iss`).
    #[error("the token is from another issuer")]
    Issuer,
    /// A required claim is missing, or of the wrong type.
    #[error("the token's {0} claim is missing or malformed")]
    Claim(&'static str),
    /// The claim with the subject is missing, or cannot be a principal's name.
    #[error("the token's subject is missing, or not 1 to 256 bytes of plain text")]
    Subject,
}
