//! Sealing: only a server with the key can read a value, or make one.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    rand::{SecureRandom as _, SystemRandom},
};
use serde::{Serialize, de::DeserializeOwned};

/// The shortest key, in bytes.
pub(super) const MIN_KEY_BYTES: usize = 32;

pub(super) struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Sealer {
    /// Returns `None` if the key is too short.
    pub(super) fn new(key: &str) -> Option<Self> {
        if key.len() < MIN_KEY_BYTES {
            return None;
        }
        let derived = Salt::new(HKDF_SHA256, b"agui-server").extract(key.as_bytes());
        let key = UnboundKey::from(derived.expand(&[b"logins"], &CHACHA20_POLY1305).ok()?);
        Some(Self { key: LessSafeKey::new(key), random: SystemRandom::new() })
    }

    /// Seals a value for a place. It cannot be opened for another place.
    pub(super) fn seal(&self, place: &str, value: &impl Serialize) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut sealed = serde_json::to_vec(value).ok()?;
        let aad = Aad::from(place.as_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .ok()?;
        sealed.splice(0..0, nonce);
        Some(sealed)
    }

    pub(super) fn open<T: DeserializeOwned>(&self, place: &str, sealed: &[u8]) -> Option<T> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = sealed.to_vec();
        let aad = Aad::from(place.as_bytes());
        let value =
            self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut bytes).ok()?;
        serde_json::from_slice(value).ok()
    }

    /// Like [`seal`](Self::seal), as a text for a URL.
    pub(super) fn seal_text(&self, place: &str, value: &impl Serialize) -> Option<String> {
        Some(BASE64_URL_SAFE_NO_PAD.encode(self.seal(place, value)?))
    }

    pub(super) fn open_text<T: DeserializeOwned>(&self, place: &str, sealed: &str) -> Option<T> {
        self.open(place, &BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_is_opened_with_the_same_key_for_the_same_place_only() {
        let sealer = |key: &str| Sealer::new(&key.repeat(MIN_KEY_BYTES)).unwrap();
        let (ours, theirs) = (sealer("a"), sealer("b"));
        let sealed = ours.seal("login:ann", &"token").unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("token"));
        assert_ne!(sealed, ours.seal("login:ann", &"token").unwrap());
        assert_eq!(ours.open::<String>("login:ann", &sealed).unwrap(), "token");
        assert_eq!(sealer("a").open::<String>("login:ann", &sealed).unwrap(), "token");
        assert_eq!(ours.open::<String>("login:bob", &sealed), None);
        assert_eq!(theirs.open::<String>("login:ann", &sealed), None);
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(ours.open::<String>("login:ann", &changed), None);
        assert_eq!(ours.open::<String>("login:ann", &sealed[..5]), None);
        assert!(Sealer::new("short").is_none());
    }
}
