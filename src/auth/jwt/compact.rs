//! The compact form of a signed token (RFC 7515, section 5.2): header, payload and signature, each in base64url.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::algorithm::JwtAlgorithm;
use crate::auth::error::TokenError;

/// A token that has been read, and not been verified.
pub(super) struct Compact<'a> {
    pub(super) header: Header,
    /// The signed text: the header and the payload as they were sent.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
    payload: &'a [u8],
}

#[derive(Deserialize)]
pub(super) struct Header {
    alg: Value,
    pub(super) kid: Option<String>,
    crit: Option<Value>,
}

impl<'a> Compact<'a> {
    pub(super) fn read(token: &'a [u8]) -> Result<Self, TokenError> {
        let mut parts = token.split(|byte| *byte == b'.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Malformed);
        };
        let message = &token[..token.len() - signature.len() - 1];
        let header: Header = read_json(header)?;
        if header.crit.is_some() {
            return Err(TokenError::Critical);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Malformed)?;
        Ok(Self { header, message, signature, payload })
    }

    /// The algorithm that the header claims. Fails for `none` and those that the server does not know.
    pub(super) fn algorithm(&self) -> Result<JwtAlgorithm, TokenError> {
        JwtAlgorithm::deserialize(&self.header.alg).map_err(|_| TokenError::Algorithm)
    }

    pub(super) fn claims(&self) -> Result<serde_json::Map<String, Value>, TokenError> {
        read_json(self.payload)
    }
}

fn read_json<T: DeserializeOwned>(part: &[u8]) -> Result<T, TokenError> {
    let json = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| TokenError::Malformed)
}
