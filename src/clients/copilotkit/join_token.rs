//! Tokens of the WebSocket. A browser sends no `Authorization` header with its handshake, so an authenticated request gets
//! a token for it.
//!
//! CopilotKit's client opens its socket again with the token that it has, and gives up after five failures in a row. So a token
//! is signed, and is valid after a restart and on other replicas: with the API key of its caller, so that it ends with the key;
//! for other callers with the secret of the store, which also signs the URLs of files.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{
    auth::ApiKey,
    http::{ApiResult, App},
};
use agui_agent::{Principal, files::UrlSigner};
use agui_base::text::hex;

/// Tokens change after this time, and are valid until the end of the next one: for an hour at most.
const STEP_SECONDS: u64 = 30 * 60;

pub(super) struct JoinTokens {
    keys: Vec<ApiKey>,
    /// For a store without secrets.
    own_signer: UrlSigner,
}

impl JoinTokens {
    /// Signs the tokens of the callers with these keys by the keys.
    pub(super) fn from_keys(keys: &[ApiKey]) -> Self {
        Self { keys: keys.to_vec(), own_signer: UrlSigner::random() }
    }

    /// Returns the signer of the tokens of callers without a key.
    pub(super) async fn signer(&self, app: &App) -> ApiResult<UrlSigner> {
        match &app.threads.core.files {
            Some(files) => Ok(files.signer().await?),
            None => Ok(self.own_signer),
        }
    }

    /// Returns a token of the form `KEY.STEP.SIGNATURE`, where the key is a hash of the principal's id, or
    /// `SOURCE.NAME.EXPIRY.STEP.SIGNATURE`. Tabs with one credential share it.
    pub(super) fn issue(
        &self,
        principal: &Principal,
        signer: &UrlSigner,
        now: SystemTime,
    ) -> String {
        let step = step_of(now) + 1;
        let mut of_principal = self.keys.iter().filter(|api_key| api_key.principal() == principal);
        of_principal
            .find_map(|api_key| signed_by_key(api_key, step))
            .unwrap_or_else(|| signed_by_store(principal, signer, step))
    }

    /// Returns the principal of a token, while its credential is accepted.
    pub(super) fn check(
        &self,
        token: &str,
        signer: &UrlSigner,
        now: SystemTime,
    ) -> Option<Principal> {
        let parts: Vec<_> = token.split('.').collect();
        let is_same = |own: &str| own.as_bytes().ct_eq(token.as_bytes()).into();
        let is_valid = |step: u64| step >= step_of(now);
        match parts[..] {
            [key, step, _] => {
                let step = step.parse().ok().filter(|step| is_valid(*step))?;
                let mut of_principal =
                    self.keys.iter().filter(|api_key| key_of(api_key.principal()) == key);
                let api_key = of_principal.find(|api_key| {
                    signed_by_key(api_key, step).is_some_and(|own| is_same(&own))
                })?;
                Some(api_key.principal().clone())
            }
            [source, name, expiry, step, _] => {
                let step = step.parse().ok().filter(|step| is_valid(*step))?;
                let mut principal = Principal::new(&decoded(source)?, &decoded(name)?);
                if !expiry.is_empty() {
                    let expiry = Duration::from_secs(expiry.parse().ok()?);
                    principal = principal.with_expiry(SystemTime::UNIX_EPOCH.checked_add(expiry)?);
                }
                let has_expired = principal.expires_at().is_some_and(|time| time <= now);
                let is_signed = is_same(&signed_by_store(&principal, signer, step));
                (is_signed && !has_expired && self.accepts(&principal)).then_some(principal)
            }
            _ => None,
        }
    }

    /// A key that was given as its SHA-256 signs nothing, and may be one that the configuration has no more.
    fn accepts(&self, principal: &Principal) -> bool {
        self.keys.is_empty() || self.keys.iter().any(|api_key| api_key.principal() == principal)
    }
}

fn key_of(principal: &Principal) -> String {
    hex(&Sha256::digest(principal.id())[..16])
}

/// Returns the token that is valid until the end of a step; `None` for a key that was given as its SHA-256.
fn signed_by_key(api_key: &ApiKey, step: u64) -> Option<String> {
    let key = key_of(api_key.principal());
    let signature = api_key.sign(&format!("copilotkit join token {key} {step}"))?;
    Some(format!("{key}.{step}.{signature}"))
}

fn signed_by_store(principal: &Principal, signer: &UrlSigner, step: u64) -> String {
    let (id, name) = (principal.id(), principal.name());
    let source = &id[..id.len() - name.len() - 1];
    let expiry = principal.expires_at().map(|time| seconds_of(time).to_string());
    let token = format!(
        "{}.{}.{}.{step}",
        URL_SAFE_NO_PAD.encode(source),
        URL_SAFE_NO_PAD.encode(name),
        expiry.unwrap_or_default()
    );
    let signature = signer.sign(&format!("copilotkit join token {token}"));
    format!("{token}.{signature}")
}

fn decoded(part: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn step_of(time: SystemTime) -> u64 {
    seconds_of(time) / STEP_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(STEP_SECONDS);

    #[test]
    fn the_token_of_a_key_is_valid_on_every_server_with_the_key_and_for_an_hour_at_most() {
        let key = |name: &str, secret: &str| ApiKey::from_secret(name, secret);
        let server = |keys: &[ApiKey]| JoinTokens::from_keys(keys);
        let (ann, now) = (Principal::new("key", "ann"), SystemTime::now());
        let (one, other) = (UrlSigner::random(), UrlSigner::random());
        let (before, after) = (
            server(&[key("ann", "a"), key("bob", "b")]),
            server(&[key("bob", "b"), key("ann", "a")]),
        );
        let token = before.issue(&ann, &one, now);
        assert_eq!(after.check(&token, &other, now), Some(ann.clone()));
        assert_eq!(after.issue(&ann, &other, now), token);
        // Another key of the name, and a key of another name.
        assert_eq!(server(&[key("ann", "other")]).check(&token, &one, now), None);
        assert_eq!(server(&[key("bob", "a")]).check(&token, &one, now), None);
        let [name, step, signature] = token.split('.').collect::<Vec<_>>()[..] else {
            panic!("{token}")
        };
        let later: u64 = step.parse::<u64>().unwrap() + 1;
        for wrong in [
            format!("{name}.{later}.{signature}"),
            format!("{name}.{step}."),
            format!("{name}.x.{signature}"),
        ] {
            assert_eq!(after.check(&wrong, &one, now), None, "{wrong}");
        }
        assert!(after.check(&token, &one, now + STEP).is_some());
        assert!(after.check(&token, &one, now + 2 * STEP).is_none());
    }

    #[test]
    fn the_token_of_another_caller_is_valid_on_every_server_of_the_store_and_for_an_hour_at_most() {
        let (signer, now) = (UrlSigner::random(), SystemTime::now());
        let (one, other) = (JoinTokens::from_keys(&[]), JoinTokens::from_keys(&[]));
        let ann = Principal::new("jwt:https%3A//id.test", "ann:x");
        let token = one.issue(&ann, &signer, now);
        assert_eq!(other.issue(&ann, &signer, now), token);
        assert_eq!(other.check(&token, &signer, now + STEP), Some(ann));
        assert_eq!(other.check(&token, &signer, now + 2 * STEP), None);
        assert_eq!(other.check(&token, &UrlSigner::random(), now), None);
        let bob = one.issue(&Principal::new("jwt", "bob"), &signer, now);
        let mut mixed: Vec<_> = token.split('.').collect();
        mixed[1] = bob.split('.').nth(1).unwrap();
        let later = token.replacen(&format!(".{}.", step_of(now) + 1), ".999999999.", 1);
        assert_ne!(later, token);
        for wrong in ["", ".", "....", &mixed.join("."), &later, &token[1..], &format!("{token}0")]
        {
            assert_eq!(other.check(wrong, &signer, now), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_is_valid_no_longer_than_the_credential_that_it_was_issued_for() {
        let (tokens, signer) = (JoinTokens::from_keys(&[]), UrlSigner::random());
        let now = SystemTime::now();
        let expiry = now + Duration::from_secs(60);
        let ann = Principal::new("jwt", "ann").with_expiry(expiry);
        let token = tokens.issue(&ann, &signer, now);
        let until = tokens.check(&token, &signer, now).unwrap().expires_at().unwrap();
        assert!(until <= expiry && until + Duration::from_secs(1) > expiry);
        assert_eq!(tokens.check(&token, &signer, expiry), None);
    }

    #[test]
    fn the_token_of_a_key_that_is_known_by_its_hash_ends_with_the_key() {
        let (signer, now) = (UrlSigner::random(), SystemTime::now());
        let key = |name: &str| ApiKey::from_sha256(name, &"ab".repeat(32)).unwrap();
        let (ann, server) = (Principal::new("key", "ann"), JoinTokens::from_keys(&[key("ann")]));
        let token = server.issue(&ann, &signer, now);
        assert_eq!(server.check(&token, &signer, now), Some(ann));
        assert_eq!(JoinTokens::from_keys(&[key("bob")]).check(&token, &signer, now), None);
    }
}
