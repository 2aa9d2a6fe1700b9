//! Keys that tokens are verified with, each for one algorithm.
//!
//! The key decides on the algorithm, never the token: otherwise an attacker could sign with HMAC and the public key as
//! the secret.

use jsonwebtoken::{Algorithm, DecodingKey, errors::ErrorKind};
use serde::Deserialize;
use spki::{Document, ObjectIdentifier, SubjectPublicKeyInfoRef};

use super::algorithm::JwtAlgorithm;
use crate::auth::KeyError;

/// The shortest secret, in bytes: the output size of SHA-256 (RFC 7518, section 3.2).
const MIN_SECRET_BYTES: usize = 32;
/// The length of an RSA key of 2048 bits with the exponent 65537, in PKCS#1.
const MIN_RSA_BYTES: usize = 270;
/// `rsaEncryption` (RFC 8017, appendix A.1).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
/// `id-ecPublicKey` and the curve `secp256r1`, which is P-256 (RFC 5480, section 2.1.1).
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

pub(super) fn algorithm_of(algorithm: Algorithm) -> Option<JwtAlgorithm> {
    let known = [JwtAlgorithm::Hs256, JwtAlgorithm::Rs256, JwtAlgorithm::Es256];
    known.into_iter().find(|known| Algorithm::from(*known) == algorithm)
}

impl From<JwtAlgorithm> for Algorithm {
    fn from(algorithm: JwtAlgorithm) -> Self {
        match algorithm {
            JwtAlgorithm::Hs256 => Self::HS256,
            JwtAlgorithm::Rs256 => Self::RS256,
            JwtAlgorithm::Es256 => Self::ES256,
        }
    }
}

#[derive(Clone)]
pub(super) struct VerifyingKey {
    pub(super) algorithm: JwtAlgorithm,
    pub(super) decoding: DecodingKey,
}

impl VerifyingKey {
    pub(super) fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(KeyError::ShortSecret);
        }
        Ok(Self { algorithm: JwtAlgorithm::Hs256, decoding: DecodingKey::from_secret(secret) })
    }

    pub(super) fn from_pem(pem: &str) -> Result<Self, KeyError> {
        if pem.contains("PRIVATE KEY") {
            return Err(KeyError::Private);
        }
        let (label, document) = Document::from_pem(pem.trim()).map_err(|_| KeyError::NotPem)?;
        match label {
            "RSA PUBLIC KEY" => Self::from_rsa(document.as_bytes()),
            "PUBLIC KEY" => {
                let info = SubjectPublicKeyInfoRef::try_from(document.as_bytes()).map_err(|_| KeyError::NotPem)?;
                let key = info.subject_public_key.as_bytes().ok_or(KeyError::NotPem)?;
                match info.algorithm.oids() {
                    Ok((RSA, _)) => Self::from_rsa(key),
                    Ok((EC, Some(P256))) => {
                        Ok(Self { algorithm: JwtAlgorithm::Es256, decoding: DecodingKey::from_ec_der(key) })
                    }
                    _ => Err(KeyError::NotPem),
                }
            }
            _ => Err(KeyError::NotPem),
        }
    }

    /// An RSA key as PKCS#1 writes it.
    fn from_rsa(pkcs1: &[u8]) -> Result<Self, KeyError> {
        if pkcs1.len() < MIN_RSA_BYTES {
            return Err(KeyError::ShortRsa);
        }
        Ok(Self { algorithm: JwtAlgorithm::Rs256, decoding: DecodingKey::from_rsa_der(pkcs1) })
    }
}

/// A key as it is published in a set (RFC 7517, section 4).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

pub(super) struct NamedKey {
    pub(super) kid: Option<String>,
    pub(super) key: VerifyingKey,
}

impl NamedKey {
    /// Returns `None` for keys that cannot verify tokens, also for symmetric ones, which must not be published.
    pub(super) fn from_jwk(jwk: &serde_json::Value) -> Option<Self> {
        let jwk = Jwk::deserialize(jwk).ok()?;
        if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        if jwk.key_ops.is_some_and(|operations| !operations.iter().any(|operation| operation == "verify")) {
            return None;
        }
        let algorithm = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => JwtAlgorithm::Rs256,
            ("EC", Some("P-256")) => JwtAlgorithm::Es256,
            _ => return None,
        };
        if jwk.alg.is_some_and(|named| named != algorithm.name()) {
            return None;
        }
        let decoding = match algorithm {
            JwtAlgorithm::Rs256 => DecodingKey::from_rsa_components(&jwk.n?, &jwk.e?),
            _ => DecodingKey::from_ec_components(&jwk.x?, &jwk.y?).and_then(|key| {
                // An uncompressed point: a tag byte and two coordinates of 32 bytes.
                let whole = key.try_get_as_bytes()?.len() == 65;
                if whole { Ok(key) } else { Err(ErrorKind::InvalidEcdsaKey.into()) }
            }),
        };
        Some(Self { kid: jwk.kid, key: VerifyingKey { algorithm, decoding: decoding.ok()? } })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_public_key_determines_its_algorithm() {
        let read = |pem: &str| VerifyingKey::from_pem(pem).map(|key| key.algorithm);
        let fixture = |name| std::fs::read_to_string(format!("tests/fixtures/jwt/{name}.pem")).unwrap();
        assert_eq!(read(&fixture("rsa.pub")), Ok(JwtAlgorithm::Rs256));
        assert_eq!(read(&fixture("ec.pub")), Ok(JwtAlgorithm::Es256));
        assert_eq!(read(&fixture("ec.pub").replace('\n', "\r\n")), Ok(JwtAlgorithm::Es256));
        assert_eq!(read(&fixture("rsa1024.pub")), Err(KeyError::ShortRsa));
        assert_eq!(read(&fixture("secp256k1.pub")), Err(KeyError::NotPem));
        for private in ["rsa", "ec"] {
            assert_eq!(read(&fixture(private)), Err(KeyError::Private));
        }
        let certificate = fixture("rsa.pub").replace("PUBLIC KEY", "CERTIFICATE");
        for text in ["", "secret", "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----\n", &certificate] {
            assert_eq!(read(text), Err(KeyError::NotPem), "{text}");
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert!(VerifyingKey::from_secret(&[b'x'; 32]).is_ok());
        assert_eq!(VerifyingKey::from_secret(&[b'x'; 31]).map(|key| key.algorithm), Err(KeyError::ShortSecret));
    }

    #[test]
    fn only_signature_keys_are_read_from_a_set() {
        let rsa = json!({ "kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB" });
        let point = "A".repeat(43);
        let ec = json!({ "kty": "EC", "crv": "P-256", "x": point, "y": point });
        let with = |key: &serde_json::Value, name: &str, value: serde_json::Value| {
            let mut key = key.clone();
            key[name] = value;
            key
        };
        let usable = |key: &serde_json::Value| NamedKey::from_jwk(key).map(|named| named.key.algorithm);
        for key in [&rsa, &with(&rsa, "use", "sig".into()), &with(&rsa, "key_ops", json!(["verify"]))] {
            assert_eq!(usable(key), Some(JwtAlgorithm::Rs256), "{key}");
        }
        assert_eq!(usable(&with(&ec, "alg", "ES256".into())), Some(JwtAlgorithm::Es256));
        assert_eq!(NamedKey::from_jwk(&rsa).unwrap().kid.as_deref(), Some("a"));
        for key in [
            with(&rsa, "use", "enc".into()),
            with(&rsa, "alg", "RS512".into()),
            with(&rsa, "alg", "HS256".into()),
            with(&rsa, "key_ops", json!(["encrypt"])),
            with(&rsa, "n", "!".into()),
            with(&ec, "crv", "P-384".into()),
            with(&ec, "x", "AQAB".into()),
            json!({ "kty": "EC", "crv": "P-256", "x": point }),
            json!({ "kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "HS256" }),
            json!({ "kty": "OKP", "crv": "Ed25519", "x": point }),
            json!({ "kid": 7 }),
            json!("RSA"),
        ] {
            assert_eq!(usable(&key), None, "{key}");
        }
    }
}
