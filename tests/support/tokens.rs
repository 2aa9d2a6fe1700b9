//! Makes JSON Web Tokens with `ring` alone, so that the library under test does not check its own output.
//!
//! The keys in `tests/fixtures/jwt` were made for these tests and are not used elsewhere.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaEncoding, RsaKeyPair,
    },
};
use serde_json::{Value, json};

pub const SECRET: &str = "a secret of more than 32 bytes, for tests";

/// Reads a file of `tests/fixtures/jwt`.
pub fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/jwt");
    std::fs::read_to_string(format!("{folder}/{name}.pem")).unwrap()
}

pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a PEM file.
pub fn der(pem: &str) -> Vec<u8> {
    let base64: String = pem.lines().filter(|line| !line.contains("-----")).collect();
    general_purpose::STANDARD.decode(base64).unwrap()
}

/// Returns the time `seconds` from now, in seconds since 1970.
pub fn from_now(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() + seconds
}

/// Returns the claims of a valid token.
pub fn claims(subject: &str) -> Value {
    json!({ "sub": subject, "aud": "agui", "iss": "https://id.test", "exp": from_now(300) })
}

/// Returns the claims with one changed, or removed if the value is `null`.
pub fn with(mut claims: Value, name: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

/// Makes a token with the signature that `sign` returns.
pub fn sign(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
    let signature = base64url(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

pub fn by_secret(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

pub fn by_rsa(pem: &str, message: &[u8]) -> Vec<u8> {
    by_rsa_as(&RSA_PKCS1_SHA256, pem, message)
}

pub fn by_rsa_as(encoding: &'static dyn RsaEncoding, pem: &str, message: &[u8]) -> Vec<u8> {
    let key = RsaKeyPair::from_pkcs8(&der(pem)).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(encoding, &SystemRandom::new(), message, &mut signature).unwrap();
    signature
}

pub fn by_ec(pem: &str, message: &[u8]) -> Vec<u8> {
    let random = SystemRandom::new();
    let key =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der(pem), &random).unwrap();
    key.sign(&random, message).unwrap().as_ref().to_vec()
}

/// A new key on the curve P-384.
pub struct P384(EcdsaKeyPair, SystemRandom);

impl P384 {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
        Self(
            EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, key.as_ref(), &random)
                .unwrap(),
            random,
        )
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(&self.1, message).unwrap().as_ref().to_vec()
    }

    pub fn jwk(&self) -> Value {
        let (x, y) = self.0.public_key().as_ref()[1..].split_at(48);
        json!({ "kty": "EC", "crv": "P-384", "x": base64url(x), "y": base64url(y) })
    }
}

/// A new key of Ed25519.
pub fn ed25519() -> Ed25519KeyPair {
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap()
}

pub fn ed25519_jwk(key: &Ed25519KeyPair) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "alg": "Ed25519", "x": base64url(key.public_key()) })
}

pub fn hs256(claims: &Value) -> String {
    sign(&json!({ "alg": "HS256", "typ": "JWT" }), claims, |message| {
        by_secret(SECRET.as_bytes(), message)
    })
}

pub fn rs256(key: &str, kid: &str, claims: &Value) -> String {
    sign(&json!({ "alg": "RS256", "kid": kid }), claims, |message| by_rsa(&fixture(key), message))
}

pub fn es256(key: &str, kid: &str, claims: &Value) -> String {
    sign(&json!({ "alg": "ES256", "kid": kid }), claims, |message| by_ec(&fixture(key), message))
}

/// Returns a public key of the fixtures as JWK.
pub fn jwk(key: &str, kid: &str) -> Value {
    let der = der(&fixture(&format!("{key}.pub")));
    if key.starts_with("ec") {
        // The DER encoding ends with the two coordinates of 32 bytes each.
        let (x, y) = der[der.len() - 64..].split_at(32);
        return json!({ "kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "x": base64url(x), "y": base64url(y) });
    }
    // The DER encoding ends with the modulus of 256 bytes and the exponent 65537 in 5 bytes.
    let modulus = &der[der.len() - 261..der.len() - 5];
    json!({ "kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": base64url(modulus), "e": "AQAB" })
}
