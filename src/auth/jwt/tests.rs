use std::time::{Duration, SystemTime};

use serde_json::json;

use super::*;

#[allow(dead_code, unreachable_pub, reason = "the tests use a part of it")]
#[path = "../../../tests/support/tokens.rs"]
mod tokens;

use tokens::{by_ec, by_rsa, by_secret, claims, fixture, from_now, hs256, sign, with};

fn options() -> JwtOptions {
    JwtOptions { issuer: Some("https://id.test".to_owned()), ..JwtOptions::new(["other", "agui"]) }
}

fn secret() -> Jwt {
    Jwt::from_secret(tokens::SECRET.as_bytes(), options()).unwrap()
}

async fn subject(jwt: &Jwt, token: &str) -> Result<String, TokenError> {
    match jwt.principal(token.as_bytes()).await {
        Ok(principal) => Ok(principal.name().to_owned()),
        Err(AuthError::Token(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

async fn by_hs256(claims: serde_json::Value) -> Result<String, TokenError> {
    subject(&secret(), &hs256(&claims)).await
}

#[tokio::test]
async fn the_examples_of_the_standard_have_valid_signatures() {
    // RFC 7515, appendix A.1 to A.3. They expired in 2011, which is only looked at once the signature is right.
    let payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let hmac = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9";
    let secret =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    let secret =
        base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, secret).unwrap();
    let ec = "eyJhbGciOiJFUzI1NiJ9";
    let ec_jwk = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
    });
    let ec_key = super::key::NamedKey::from_jwk(&ec_jwk, &[]).unwrap().key;
    for (jwt, token) in [
        (
            Jwt::from_secret(&secret, JwtOptions::new([""; 0])).unwrap(),
            format!("{hmac}.{payload}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        ),
        (
            Jwt::with_key(ec_key, JwtOptions::new([""; 0])),
            format!(
                "{ec}.{payload}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
            ),
        ),
    ] {
        assert_eq!(subject(&jwt, &token).await, Err(TokenError::Expired));
        assert_eq!(
            subject(&jwt, &token.replace(".eyJp", ".eyJq")).await,
            Err(TokenError::Signature)
        );
    }
}

#[tokio::test]
async fn a_key_accepts_tokens_of_its_own_algorithm_only() {
    let (rsa, ec) = (fixture("rsa.pub"), fixture("ec.pub"));
    let by_rsa = |key: &'static str| {
        sign(&json!({ "alg": "RS256", "kid": "any" }), &claims("ada"), |message| {
            by_rsa(&fixture(key), message)
        })
    };
    let by_ec =
        sign(&json!({ "alg": "ES256" }), &claims("ada"), |message| by_ec(&fixture("ec"), message));
    let by_secret = hs256(&claims("ada"));
    let keys = [
        secret(),
        Jwt::from_public_key(&rsa, &[], options()).unwrap(),
        Jwt::from_public_key(&ec, &[], options()).unwrap(),
    ];
    for (place, jwt) in keys.iter().enumerate() {
        for (other, token) in [&by_secret, &by_rsa("rsa"), &by_ec].into_iter().enumerate() {
            let expected =
                if place == other { Ok("ada".to_owned()) } else { Err(TokenError::Algorithm) };
            assert_eq!(subject(jwt, token).await, expected, "{place} {other}");
        }
    }
    assert_eq!(subject(&keys[1], &by_rsa("rsa2")).await, Err(TokenError::Signature));
}

#[tokio::test]
async fn the_example_of_ed25519_has_a_valid_signature() {
    // RFC 8037, appendix A.4. Its payload is a text, which is only looked at once the signature is right.
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
    let jwt = Jwt::with_key(super::key::NamedKey::from_jwk(&jwk, &[]).unwrap().key, options());
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
                 hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert_eq!(subject(&jwt, token).await, Err(TokenError::Malformed));
    assert_eq!(subject(&jwt, &token.replace(".RXh", ".RXi")).await, Err(TokenError::Signature));
}

#[tokio::test]
async fn a_published_key_verifies_its_own_algorithm_alone() {
    let rsa = |name: &str| tokens::with(tokens::jwk("rsa", "k"), "alg", name);
    let (p384, ed25519) = (tokens::P384::new(), tokens::ed25519());
    let sign_rsa = |algorithm: &str, encoding: &'static dyn ring::signature::RsaEncoding| {
        sign(&json!({ "alg": algorithm }), &claims("ada"), |message| {
            tokens::by_rsa_as(encoding, &fixture("rsa"), message)
        })
    };
    let signed = [
        (rsa("RS256"), sign_rsa("RS256", &ring::signature::RSA_PKCS1_SHA256)),
        (rsa("RS384"), sign_rsa("RS384", &ring::signature::RSA_PKCS1_SHA384)),
        (rsa("RS512"), sign_rsa("RS512", &ring::signature::RSA_PKCS1_SHA512)),
        (rsa("PS256"), sign_rsa("PS256", &ring::signature::RSA_PSS_SHA256)),
        (rsa("PS384"), sign_rsa("PS384", &ring::signature::RSA_PSS_SHA384)),
        (rsa("PS512"), sign_rsa("PS512", &ring::signature::RSA_PSS_SHA512)),
        (
            tokens::jwk("ec", "k"),
            sign(&json!({ "alg": "ES256" }), &claims("ada"), |message| {
                by_ec(&fixture("ec"), message)
            }),
        ),
        (
            p384.jwk(),
            sign(&json!({ "alg": "ES384" }), &claims("ada"), |message| p384.sign(message)),
        ),
        (
            tokens::ed25519_jwk(&ed25519),
            sign(&json!({ "alg": "EdDSA" }), &claims("ada"), |message| {
                ed25519.sign(message).as_ref().to_vec()
            }),
        ),
        (
            tokens::ed25519_jwk(&ed25519),
            sign(&json!({ "alg": "Ed25519" }), &claims("ada"), |message| {
                ed25519.sign(message).as_ref().to_vec()
            }),
        ),
    ];
    for (at, (jwk, _)) in signed.iter().enumerate() {
        let key = super::key::NamedKey::from_jwk(jwk, &[]).unwrap().key;
        let jwt = Jwt::with_key(key.clone(), options());
        for (other, (other_jwk, token)) in signed.iter().enumerate() {
            let is_same = super::key::NamedKey::from_jwk(other_jwk, &[]).unwrap().key.algorithm
                == key.algorithm;
            let expected = if is_same { Ok("ada".to_owned()) } else { Err(TokenError::Algorithm) };
            assert_eq!(subject(&jwt, token).await, expected, "{at} {other}");
        }
        let (message, signature) = signed[at].1.rsplit_once('.').unwrap();
        let changed = format!(
            "{message}.{}{}",
            if signature.starts_with('A') { 'B' } else { 'A' },
            &signature[1..]
        );
        assert_eq!(subject(&jwt, &changed).await, Err(TokenError::Signature), "{jwk}");
    }
}

#[tokio::test]
async fn a_public_key_is_never_used_as_a_secret() {
    for name in ["rsa.pub", "ec.pub"] {
        let pem = fixture(name);
        let jwt = Jwt::from_public_key(&pem, &[], options()).unwrap();
        for secret in [pem.as_bytes(), pem.trim().as_bytes(), &tokens::der(&pem)] {
            let forged = sign(&json!({ "alg": "HS256" }), &claims("ada"), |message| {
                by_secret(secret, message)
            });
            assert_eq!(subject(&jwt, &forged).await, Err(TokenError::Algorithm), "{name}");
        }
    }
}

#[tokio::test]
async fn an_unsigned_token_is_refused() {
    let signed = hs256(&claims("ada"));
    let (message, signature) = signed.rsplit_once('.').unwrap();
    for algorithm in ["none", "None", "NONE", "", "HS1"] {
        let forged = sign(&json!({ "alg": algorithm }), &claims("ada"), |_| vec![]);
        assert_eq!(subject(&secret(), &forged).await, Err(TokenError::Algorithm), "{algorithm}");
    }
    for (token, expected) in [
        (format!("{message}."), TokenError::Signature),
        (
            format!("{message}.{}", signature.replace(|c: char| c.is_ascii_digit(), "A")),
            TokenError::Signature,
        ),
        (format!("{message}.{signature}!"), TokenError::Malformed),
        (message.to_owned(), TokenError::Malformed),
        (format!("{signed}.{signature}"), TokenError::Malformed),
        (String::new(), TokenError::Malformed),
        ("a.b.c".to_owned(), TokenError::Malformed),
        ("é".repeat(20), TokenError::Malformed),
        ("x".repeat(MAX_TOKEN_BYTES + 1), TokenError::TooLong),
        (hs256(&with(claims("ada"), "pad", "x".repeat(MAX_TOKEN_BYTES))), TokenError::TooLong),
        (sign(&json!({ "alg": "HS512" }), &claims("ada"), |_| vec![0; 64]), TokenError::Algorithm),
    ] {
        assert_eq!(subject(&secret(), &token).await, Err(expected), "{token}");
    }
    let critical = json!({ "alg": "HS256", "crit": ["b64"], "b64": true });
    let token =
        sign(&critical, &claims("ada"), |message| by_secret(tokens::SECRET.as_bytes(), message));
    assert_eq!(subject(&secret(), &token).await, Err(TokenError::Critical));
}

#[tokio::test]
async fn every_claim_with_a_rule_is_checked() {
    let ada = || claims("ada");
    assert_eq!(by_hs256(ada()).await, Ok("ada".to_owned()));
    for (claims, expected) in [
        (with(ada(), "exp", from_now(-31)), TokenError::Expired),
        (with(ada(), "exp", json!(null)), TokenError::Claim("exp")),
        (with(ada(), "exp", "never"), TokenError::Claim("exp")),
        (with(ada(), "nbf", from_now(60)), TokenError::NotYet),
        (with(ada(), "nbf", "soon"), TokenError::Claim("nbf")),
        (with(ada(), "aud", "another"), TokenError::Audience),
        (with(ada(), "aud", json!(["another", "third"])), TokenError::Audience),
        (with(ada(), "aud", json!([])), TokenError::Audience),
        (with(ada(), "aud", json!(null)), TokenError::Claim("aud")),
        (with(ada(), "aud", 7), TokenError::Claim("aud")),
        (with(ada(), "iss", "https://id.test/"), TokenError::Issuer),
        (with(ada(), "iss", json!(null)), TokenError::Claim("iss")),
        (with(ada(), "sub", json!(null)), TokenError::Subject),
        (with(ada(), "sub", ""), TokenError::Subject),
        (with(ada(), "sub", " \t"), TokenError::Subject),
        (with(ada(), "sub", 7), TokenError::Subject),
        (with(ada(), "sub", "ada\n"), TokenError::Subject),
        (with(ada(), "sub", "ada\0"), TokenError::Subject),
        (with(ada(), "sub", "x".repeat(257)), TokenError::Subject),
    ] {
        assert_eq!(by_hs256(claims.clone()).await, Err(expected), "{claims}");
    }
    for claims in [
        with(ada(), "exp", from_now(-20)),
        with(ada(), "exp", json!(from_now(5) as f64 + 0.5)),
        with(ada(), "nbf", from_now(20)),
        with(ada(), "aud", json!(["another", "agui"])),
        with(ada(), "aud", "other"),
        with(ada(), "sub", "ada"),
    ] {
        assert_eq!(by_hs256(claims.clone()).await, Ok("ada".to_owned()), "{claims}");
    }
    assert_eq!(by_hs256(with(ada(), "sub", "x".repeat(256))).await, Ok("x".repeat(256)));
}

#[tokio::test]
async fn issuer_and_audience_are_checked_only_if_configured() {
    let free = JwtOptions {
        leeway: Duration::ZERO,
        subject_claim: "email".to_owned(),
        ..JwtOptions::new([""; 0])
    };
    let jwt = Jwt::from_secret(tokens::SECRET.as_bytes(), free).unwrap();
    let bare = json!({ "email": "ada@id.test", "exp": from_now(60) });
    assert_eq!(subject(&jwt, &hs256(&bare)).await, Ok("ada@id.test".to_owned()));
    let of_another = with(bare.clone(), "aud", "another");
    assert_eq!(subject(&jwt, &hs256(&of_another)).await, Ok("ada@id.test".to_owned()));
    assert_eq!(
        subject(&jwt, &hs256(&with(bare.clone(), "exp", from_now(-2)))).await,
        Err(TokenError::Expired)
    );
    assert_eq!(subject(&jwt, &hs256(&claims("ada"))).await, Err(TokenError::Subject));
}

#[tokio::test]
async fn a_principal_expires_when_its_token_is_no_longer_accepted() {
    let principal = secret()
        .principal(hs256(&with(claims("ada"), "exp", from_now(60))).as_bytes())
        .await
        .unwrap();
    let left = principal.expires_at().unwrap().duration_since(SystemTime::now()).unwrap();
    assert!(
        (Duration::from_secs(85)..=Duration::from_secs(90)).contains(&left),
        "exp and the leeway: {left:?}"
    );
}

#[tokio::test]
async fn a_principal_keeps_only_the_claims_that_are_named() {
    let keeping =
        JwtOptions { claims: vec!["tenant".to_owned(), "absent".to_owned()], ..options() };
    let jwt = Jwt::from_secret(tokens::SECRET.as_bytes(), keeping).unwrap();
    let token = hs256(&with(claims("ada"), "tenant", "acme"));
    let ada = jwt.principal(token.as_bytes()).await.unwrap();
    assert_eq!(
        (ada.claim("tenant"), ada.claim("aud"), ada.claim("absent")),
        (Some(&json!("acme")), None, None)
    );
    assert!(!format!("{ada:?}").contains("acme"));
    // Quotas and threads belong to the principal, whatever its token states.
    let other = secret().principal(token.as_bytes()).await.unwrap();
    assert_eq!(ada, other);
    assert_eq!(std::collections::HashSet::from([ada, other]).len(), 1);
}

#[test]
fn debug_output_shows_no_key() {
    assert_eq!(format!("{:?}", secret()), "Jwt { algorithms: [Hs256], .. }");
    let set = Jwt::from_jwks(
        "https://id.test",
        &[JwtAlgorithm::Hs256],
        JwksOptions::default(),
        options(),
    );
    assert!(matches!(set, Err(KeyError::SecretInSet)));
}
