//! Named API keys, kept as digests.

use std::{fmt, sync::Arc};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Identity;

/// A key that opens the server, under the name of whoever holds it. Only the key's SHA-256 is kept.
#[derive(Clone)]
pub struct ApiKey {
    name: Arc<str>,
    digest: [u8; 32],
}

/// A text that is not a SHA-256 in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256: 64 hexadecimal digits are needed")]
pub struct InvalidDigest;

impl ApiKey {
    /// A key by its secret.
    pub fn from_secret(name: impl Into<Arc<str>>, secret: &str) -> Self {
        Self { name: name.into(), digest: Sha256::digest(secret.as_bytes()).into() }
    }

    /// A key by the SHA-256 of its secret, in hexadecimal.
    ///
    /// # Errors
    /// [`InvalidDigest`] when the text is not one.
    pub fn from_sha256(name: impl Into<Arc<str>>, hex: &str) -> Result<Self, InvalidDigest> {
        let digits: Vec<u8> = hex
            .chars()
            .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or(InvalidDigest)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        let digest = (digits.len() == 64).then(|| bytes.try_into().ok()).flatten().ok_or(InvalidDigest)?;
        Ok(Self { name: name.into(), digest })
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All keys of a server.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[ApiKey]>);

impl ApiKeys {
    /// These keys.
    pub fn new(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Returns whose key this is. Compares the digests of all keys in constant time, so that the response time
    /// reveals nothing about any key.
    pub(super) fn owner(&self, secret: &[u8]) -> Option<Identity> {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let mut owner = None;
        for key in self.0.iter() {
            if bool::from(key.digest.ct_eq(&digest)) {
                owner = Some(&key.name);
            }
        }
        owner.map(|name| Identity { source: "key".into(), name: name.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_by_secret_and_by_digest() {
        let hex = "2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B"; // of "secret"
        let keys = ApiKeys::new([ApiKey::from_sha256("ci", hex).unwrap()]);
        assert_eq!(keys.owner(b"secret").unwrap().name, "ci".into());
        assert_eq!(keys.owner(b"Secret"), None);
    }

    #[test]
    fn what_is_not_a_digest_is_refused() {
        for hex in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66), &"é".repeat(32)] {
            assert_eq!(ApiKey::from_sha256("x", hex).unwrap_err(), InvalidDigest, "{hex}");
        }
    }

    #[test]
    fn debug_output_shows_no_digest() {
        assert_eq!(format!("{:?}", ApiKey::from_secret("web", "s")), r#"ApiKey { name: "web", .. }"#);
    }
}
