//! Keys that tokens are verified with, each for one algorithm.
//!
//! The key decides on the algorithm, never the token: otherwise an attacker could sign with HMAC and the public key as
//! the secret.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
        RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
        UnparsedPublicKey, VerificationAlgorithm,
    },
};
use serde::Deserialize;
use spki::{Document, ObjectIdentifier, SubjectPublicKeyInfoRef};

use super::algorithm::JwtAlgorithm;
use crate::auth::error::{KeyError, TokenError};

/// The shortest secret, in bytes: the output size of SHA-256 (RFC 7518, section 3.2).
const MIN_SECRET_BYTES: usize = 32;
/// The length of an RSA key of 2048 bits with the exponent 65537, in PKCS#1.
const MIN_RSA_BYTES: usize = 270;
/// `rsaEncryption` (RFC 8017, appendix A.1).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
/// `id-ecPublicKey` and the curves `secp256r1`, which is P-256, and `secp384r1` (RFC 5480, section 2.1.1).
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
/// `id-Ed25519` (RFC 8410, section 3).
const ED_25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The parameters of a signature. An authentication code (HMAC) has none.
enum Signature {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
    Code,
}

impl JwtAlgorithm {
    fn signature(self) -> Signature {
        match self {
            Self::Hs256 => Signature::Code,
            Self::Rs256 => Signature::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Signature::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Signature::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Signature::Rsa(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Signature::Rsa(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Signature::Rsa(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 => Signature::Curve(&ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Signature::Curve(&ECDSA_P384_SHA384_FIXED),
            Self::EdDsa => Signature::Curve(&ED25519),
        }
    }

    fn is_rsa(self) -> bool {
        matches!(self.signature(), Signature::Rsa(_))
    }

    /// Returns the algorithm of an RSA key that names none.
    fn for_unnamed_rsa(accepted: &[Self]) -> Self {
        accepted.iter().copied().find(|algorithm| algorithm.is_rsa()).unwrap_or(Self::Rs256)
    }
}

#[derive(Clone)]
pub(super) struct VerifyingKey {
    pub(super) algorithm: JwtAlgorithm,
    material: Arc<Material>,
}

/// A public key or a secret, as it was given.
enum Material {
    Secret(hmac::Key),
    /// An RSA key as PKCS#1 writes it, an uncompressed point, or the 32 bytes of Ed25519.
    Public(Vec<u8>),
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
}

impl VerifyingKey {
    fn new(algorithm: JwtAlgorithm, material: Material) -> Self {
        Self { algorithm, material: Arc::new(material) }
    }

    pub(super) fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(KeyError::ShortSecret);
        }
        Ok(Self::new(
            JwtAlgorithm::Hs256,
            Material::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret)),
        ))
    }

    /// An RSA key is for the first RSA algorithm of `accepted`.
    pub(super) fn from_pem(pem: &str, accepted: &[JwtAlgorithm]) -> Result<Self, KeyError> {
        if pem.contains("PRIVATE KEY") {
            return Err(KeyError::Private);
        }
        let (label, document) = Document::from_pem(pem.trim()).map_err(|_| KeyError::NotPem)?;
        let rsa = JwtAlgorithm::for_unnamed_rsa(accepted);
        let (algorithm, key) = match label {
            "RSA PUBLIC KEY" => (rsa, document.as_bytes()),
            "PUBLIC KEY" => {
                let info = SubjectPublicKeyInfoRef::try_from(document.as_bytes())
                    .map_err(|_| KeyError::NotPem)?;
                let algorithm = match info.algorithm.oids() {
                    Ok((RSA, _)) => rsa,
                    Ok((EC, Some(P256))) => JwtAlgorithm::Es256,
                    Ok((EC, Some(P384))) => JwtAlgorithm::Es384,
                    Ok((ED_25519, None)) => JwtAlgorithm::EdDsa,
                    _ => return Err(KeyError::NotPem),
                };
                (algorithm, info.subject_public_key.as_bytes().ok_or(KeyError::NotPem)?)
            }
            _ => return Err(KeyError::NotPem),
        };
        if algorithm.is_rsa() && key.len() < MIN_RSA_BYTES {
            return Err(KeyError::ShortRsa);
        }
        Ok(Self::new(algorithm, Material::Public(key.to_vec())))
    }

    /// # Errors
    /// [`TokenError::Signature`]
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), TokenError> {
        let verified = match (self.algorithm.signature(), &*self.material) {
            (Signature::Code, Material::Secret(secret)) => hmac::verify(secret, message, signature),
            (Signature::Rsa(parameters), Material::Public(key)) => {
                UnparsedPublicKey::new(parameters, key).verify(message, signature)
            }
            (Signature::Rsa(parameters), Material::Rsa(key)) => {
                key.verify(parameters, message, signature)
            }
            (Signature::Curve(curve), Material::Public(key)) => {
                UnparsedPublicKey::new(curve, key).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        verified.map_err(|ring::error::Unspecified| TokenError::Signature)
    }
}

/// A key as it is published in a set (RFC 7517, section 4).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<serde_json::Value>,
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
    /// Returns `None` for keys that cannot verify tokens, also for symmetric ones, which must not be published. An RSA key
    /// without `alg` is for the first RSA algorithm of `accepted`.
    pub(super) fn from_jwk(jwk: &serde_json::Value, accepted: &[JwtAlgorithm]) -> Option<Self> {
        let jwk = Jwk::deserialize(jwk).ok()?;
        let verifies =
            |operations: Vec<String>| operations.iter().any(|operation| operation == "verify");
        let is_for_tokens =
            jwk.usage.is_none_or(|usage| usage == "sig") && jwk.key_ops.is_none_or(verifies);
        if !is_for_tokens {
            return None;
        }
        let named = jwk.alg.map(JwtAlgorithm::deserialize).transpose().ok()?;
        let decode = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let coordinate = |text, bytes| decode(text).filter(|decoded| decoded.len() == bytes);
        let (algorithm, material) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let algorithm = named.unwrap_or_else(|| JwtAlgorithm::for_unnamed_rsa(accepted));
                if !algorithm.is_rsa() {
                    return None;
                }
                // Some sets write the sign of a number in Java's encoding, which ring refuses.
                let number =
                    |text| Some(decode(text)?.into_iter().skip_while(|byte| *byte == 0).collect());
                let material = Material::Rsa(RsaPublicKeyComponents {
                    n: number(&jwk.n)?,
                    e: number(&jwk.e)?,
                });
                (algorithm, material)
            }
            ("EC", Some(curve)) => {
                let (algorithm, bytes) = match curve {
                    "P-256" => (JwtAlgorithm::Es256, 32),
                    "P-384" => (JwtAlgorithm::Es384, 48),
                    _ => return None,
                };
                // An uncompressed point: a tag byte and two coordinates.
                let point =
                    [vec![4], coordinate(&jwk.x, bytes)?, coordinate(&jwk.y, bytes)?].concat();
                (algorithm, Material::Public(point))
            }
            ("OKP", Some("Ed25519")) => {
                (JwtAlgorithm::EdDsa, Material::Public(coordinate(&jwk.x, 32)?))
            }
            _ => return None,
        };
        let is_named = named.is_none_or(|named| named == algorithm);
        is_named.then(|| Self { kid: jwk.kid, key: VerifyingKey::new(algorithm, material) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_public_key_determines_its_algorithm() {
        let read = |pem: &str| VerifyingKey::from_pem(pem, &[]).map(|key| key.algorithm);
        let fixture =
            |name| std::fs::read_to_string(format!("tests/fixtures/jwt/{name}.pem")).unwrap();
        assert_eq!(read(&fixture("rsa.pub")), Ok(JwtAlgorithm::Rs256));
        assert_eq!(read(&fixture("ec.pub")), Ok(JwtAlgorithm::Es256));
        assert_eq!(read(&fixture("ec.pub").replace('\n', "\r\n")), Ok(JwtAlgorithm::Es256));
        assert_eq!(read(&fixture("ec384.pub")), Ok(JwtAlgorithm::Es384));
        assert_eq!(read(&fixture("ed25519.pub")), Ok(JwtAlgorithm::EdDsa));
        let of_two = [JwtAlgorithm::Es256, JwtAlgorithm::Ps512, JwtAlgorithm::Rs256];
        assert_eq!(
            VerifyingKey::from_pem(&fixture("rsa.pub"), &of_two).map(|key| key.algorithm),
            Ok(JwtAlgorithm::Ps512)
        );
        assert_eq!(read(&fixture("rsa1024.pub")), Err(KeyError::ShortRsa));
        assert_eq!(read(&fixture("secp256k1.pub")), Err(KeyError::NotPem));
        for private in ["rsa", "ec"] {
            assert_eq!(read(&fixture(private)), Err(KeyError::Private));
        }
        let certificate = fixture("rsa.pub").replace("PUBLIC KEY", "CERTIFICATE");
        for text in [
            "",
            "secret",
            "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----\n",
            &certificate,
        ] {
            assert_eq!(read(text), Err(KeyError::NotPem), "{text}");
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert!(VerifyingKey::from_secret(&[b'x'; 32]).is_ok());
        assert_eq!(
            VerifyingKey::from_secret(&[b'x'; 31]).map(|key| key.algorithm),
            Err(KeyError::ShortSecret)
        );
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
        let usable =
            |key: &serde_json::Value| NamedKey::from_jwk(key, &[]).map(|named| named.key.algorithm);
        for key in
            [&rsa, &with(&rsa, "use", "sig".into()), &with(&rsa, "key_ops", json!(["verify"]))]
        {
            assert_eq!(usable(key), Some(JwtAlgorithm::Rs256), "{key}");
        }
        assert_eq!(usable(&with(&ec, "alg", "ES256".into())), Some(JwtAlgorithm::Es256));
        let octets = |length| "A".repeat(length);
        let p384 = json!({ "kty": "EC", "crv": "P-384", "x": octets(64), "y": octets(64) });
        assert_eq!(usable(&p384), Some(JwtAlgorithm::Es384));
        let ed25519 = json!({ "kty": "OKP", "crv": "Ed25519", "x": point });
        for name in ["EdDSA", "Ed25519"] {
            assert_eq!(
                usable(&with(&ed25519, "alg", name.into())),
                Some(JwtAlgorithm::EdDsa),
                "{name}"
            );
        }
        for (name, expected) in [("RS512", JwtAlgorithm::Rs512), ("PS256", JwtAlgorithm::Ps256)] {
            assert_eq!(
                usable(&with(&rsa, "alg", name.into())),
                Some(expected),
                "the algorithm that it names"
            );
        }
        let of_pss = NamedKey::from_jwk(&rsa, &[JwtAlgorithm::Es256, JwtAlgorithm::Ps384]).unwrap();
        assert_eq!(
            of_pss.key.algorithm,
            JwtAlgorithm::Ps384,
            "the first RSA algorithm that is accepted"
        );
        assert_eq!(NamedKey::from_jwk(&rsa, &[]).unwrap().kid.as_deref(), Some("a"));
        for key in [
            with(&rsa, "use", "enc".into()),
            with(&rsa, "alg", "ES256".into()),
            with(&rsa, "alg", "RS1".into()),
            with(&ec, "alg", "ES384".into()),
            with(&p384, "x", octets(63).into()),
            with(&ed25519, "alg", "ES256".into()),
            with(&ed25519, "crv", "X25519".into()),
            with(&rsa, "alg", "HS256".into()),
            with(&rsa, "key_ops", json!(["encrypt"])),
            with(&rsa, "n", "!".into()),
            with(&ec, "crv", "P-384".into()),
            with(&ec, "x", "AQAB".into()),
            json!({ "kty": "EC", "crv": "P-256", "x": point }),
            json!({ "kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "HS256" }),
            json!({ "kid": 7 }),
            json!("RSA"),
        ] {
            assert_eq!(usable(&key), None, "{key}");
        }
    }
}
