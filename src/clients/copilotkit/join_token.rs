//! Tokens of the WebSocket. A browser sends no `Authorization` header with its handshake, so an authenticated request gets
//! a token for it.
//!
//! CopilotKit's client opens its socket again with the token that it has, and gives up after five failures in a row. So the
//! token of a caller with an API key is signed with the key, and is valid after a restart and on other replicas. Of other
//! callers, and of keys that the configuration has as SHA-256, the servers know no secret: their tokens are kept in memory.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use hashlink::LruCache;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use smart_default::SmartDefault;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;
use uuid::Uuid;

use crate::auth::ApiKey;
use agui_agent::Principal;
use agui_base::text::hex;

/// The time for which a token opens connections.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The number of principals with a token. The one that asked the longest time ago loses its tokens to a new one.
const MAX_PRINCIPALS: usize = 10_000;
/// The number of credentials of a principal with a token: each token of an identity provider has its own time of expiry.
/// The oldest one loses its token.
const MAX_TOKENS_OF_PRINCIPAL: usize = 64;

/// Signed tokens change after this time, and are valid until the end of the next one.
const SIGNED_STEP: Duration = Duration::from_secs(LIFETIME.as_secs() / 2);

#[derive(SmartDefault)]
pub(super) struct JoinTokens {
    keys: Vec<ApiKey>,
    /// The newest token of each credential: of each principal and expiry.
    #[default(Mutex::new(LruCache::new(MAX_PRINCIPALS)))]
    kept: Mutex<LruCache<String, VecDeque<Entry>>>,
}

struct Entry {
    secret: String,
    principal: Principal,
    issued: Instant,
}

impl JoinTokens {
    /// Signs the tokens of the callers with these keys.
    pub(super) fn from_keys(keys: &[ApiKey]) -> Self {
        Self { keys: keys.to_vec(), ..Self::default() }
    }

    /// Returns a token of the form `KEY.SECRET` or `KEY.STEP.SIGNATURE`, where the key is a hash of the principal's id. Tabs with
    /// one credential share it.
    pub(super) fn issue(&self, principal: &Principal, now: Instant) -> String {
        let key = key_of(principal);
        let step = step_of(SystemTime::now()) + 1;
        let mut of_principal = self.keys.iter().filter(|api_key| api_key.principal() == principal);
        if let Some(token) = of_principal.find_map(|api_key| signed(api_key, &key, step)) {
            return token;
        }
        let mut tokens = self.kept.lock();
        let of_principal = tokens.entry(key.clone()).or_insert_with(VecDeque::new);
        let is_same = |entry: &&Entry| entry.principal.expires_at() == principal.expires_at();
        if let Some(entry) =
            of_principal.iter().find(is_same).filter(|entry| entry.age(now) < LIFETIME / 2)
        {
            return format!("{key}.{}", entry.secret);
        }
        of_principal.retain(|entry| !is_same(&entry));
        if of_principal.len() == MAX_TOKENS_OF_PRINCIPAL {
            of_principal.pop_front();
        }
        let secret = Uuid::new_v4().simple().to_string();
        let token = format!("{key}.{secret}");
        of_principal.push_back(Entry { secret, principal: principal.clone(), issued: now });
        token
    }

    /// Returns the principal of a token, while its credential is accepted.
    pub(super) fn check(&self, token: &str, now: Instant) -> Option<Principal> {
        let (key, secret) = token.split_once('.')?;
        if let Some((step, _)) = secret.split_once('.') {
            return self.check_signed(token, key, step.parse().ok()?, SystemTime::now());
        }
        let tokens = self.kept.lock();
        let is_same = |entry: &&Entry| bool::from(entry.secret.as_bytes().ct_eq(secret.as_bytes()));
        let entry =
            tokens.peek(key)?.iter().find(is_same).filter(|entry| entry.age(now) < LIFETIME)?;
        let has_expired =
            entry.principal.expires_at().is_some_and(|time| time <= SystemTime::now());
        (!has_expired).then(|| entry.principal.clone())
    }

    fn check_signed(
        &self,
        token: &str,
        key: &str,
        step: u64,
        now: SystemTime,
    ) -> Option<Principal> {
        let is_same = |api_key: &&ApiKey| {
            signed(api_key, key, step)
                .is_some_and(|own| own.as_bytes().ct_eq(token.as_bytes()).into())
        };
        let mut of_principal =
            self.keys.iter().filter(|api_key| key_of(api_key.principal()) == key);
        let api_key = of_principal.find(is_same).filter(|_| step >= step_of(now))?;
        Some(api_key.principal().clone())
    }
}

fn key_of(principal: &Principal) -> String {
    hex(&Sha256::digest(principal.id())[..16])
}

/// Returns the token that is valid until the end of a step.
fn signed(api_key: &ApiKey, key: &str, step: u64) -> Option<String> {
    let signature = api_key.sign(&format!("copilotkit join token {key} {step}"))?;
    Some(format!("{key}.{step}.{signature}"))
}

fn step_of(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
        / SIGNED_STEP.as_secs()
}

impl Entry {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_given_for_half_of_its_lifetime_and_then_replaced() {
        let (tokens, ann, start) =
            (JoinTokens::default(), Principal::new("key", "ann"), Instant::now());
        let first = tokens.issue(&ann, start);
        assert_eq!(tokens.issue(&ann, start + LIFETIME / 2 - Duration::from_secs(1)), first);
        assert_eq!(
            tokens.check(&first, start + LIFETIME - Duration::from_secs(1)),
            Some(ann.clone())
        );
        assert_eq!(tokens.check(&first, start + LIFETIME), None);
        let second = tokens.issue(&ann, start + LIFETIME / 2);
        assert_ne!(second, first);
        assert_eq!(tokens.check(&second, start + LIFETIME), Some(ann));
    }

    #[test]
    fn the_token_of_a_key_is_valid_on_every_server_with_the_key_and_for_an_hour_at_most() {
        let key = |name: &str, secret: &str| ApiKey::from_secret(name, secret);
        let server = |keys: &[ApiKey]| JoinTokens::from_keys(keys);
        let (ann, now) = (Principal::new("key", "ann"), Instant::now());
        let (before, after) = (
            server(&[key("ann", "a"), key("bob", "b")]),
            server(&[key("bob", "b"), key("ann", "a")]),
        );
        let token = before.issue(&ann, now);
        assert_eq!(after.check(&token, now), Some(ann.clone()));
        assert_eq!(after.issue(&ann, now), token);
        // Another key of the name, and a key of another name.
        assert_eq!(server(&[key("ann", "other")]).check(&token, now), None);
        assert_eq!(server(&[key("bob", "a")]).check(&token, now), None);
        let of_digest = ApiKey::from_sha256("ann", &"ab".repeat(32)).unwrap();
        let unsigned = server(std::slice::from_ref(&of_digest)).issue(&ann, now);
        assert!(
            unsigned.split('.').count() == 2
                && server(&[of_digest]).check(&unsigned, now).is_none()
        );
        let [name, step, signature] = token.split('.').collect::<Vec<_>>()[..] else {
            panic!("{token}")
        };
        let later: u64 = step.parse::<u64>().unwrap() + 1;
        for wrong in [
            format!("{name}.{later}.{signature}"),
            format!("{name}.{step}."),
            format!("{name}.x.{signature}"),
        ] {
            assert_eq!(after.check(&wrong, now), None, "{wrong}");
        }
        let check = |time: SystemTime| after.check_signed(&token, name, later - 1, time);
        assert!(
            check(SystemTime::now() + SIGNED_STEP).is_some()
                && check(SystemTime::now() + LIFETIME).is_none()
        );
    }

    #[test]
    fn a_token_is_valid_no_longer_than_the_credential_that_it_was_issued_for() {
        let (tokens, now) = (JoinTokens::default(), Instant::now());
        let until = |time| tokens.issue(&Principal::new("jwt", "ann").with_expiry(time), now);
        let valid = until(SystemTime::now() + Duration::from_secs(60));
        let expired = until(SystemTime::now());
        assert!(tokens.check(&valid, now).is_some() && tokens.check(&expired, now).is_none());
    }

    #[test]
    fn a_token_is_that_of_its_principal_and_the_number_of_tokens_is_bounded() {
        let (tokens, now) = (JoinTokens::default(), Instant::now());
        let (ann, bob) = (Principal::new("key", "ann"), Principal::new("key", "bob"));
        let token = tokens.issue(&ann, now);
        assert_eq!(tokens.issue(&ann, now), token);
        assert_ne!(tokens.issue(&bob, now), token);
        assert_eq!(tokens.check(&token, now), Some(ann));
        let (key, secret) = token.split_once('.').unwrap();
        for wrong in [
            "",
            ".",
            key,
            &token[1..],
            &format!("{key}."),
            &format!("{secret}.{secret}"),
            &format!("{token}0"),
        ] {
            assert_eq!(tokens.check(wrong, now), None, "{wrong}");
        }
        for n in 0..MAX_PRINCIPALS {
            tokens.issue(&Principal::new("key", &n.to_string()), now);
        }
        assert_eq!(tokens.check(&token, now), None);
    }

    #[test]
    fn a_principal_with_many_credentials_takes_no_token_of_another() {
        let (tokens, now) = (JoinTokens::default(), Instant::now());
        let bobs = tokens.issue(&Principal::new("jwt", "bob"), now);
        let expiry = |n: u64| SystemTime::now() + Duration::from_secs(60 + n);
        let anns = |n: u64| tokens.issue(&Principal::new("jwt", "ann").with_expiry(expiry(n)), now);
        let first = anns(0);
        let last = (1..=10_400).map(anns).last().unwrap();
        assert!(tokens.check(&bobs, now).is_some() && tokens.check(&last, now).is_some());
        assert_eq!(tokens.check(&first, now), None, "the oldest one is replaced");
    }
}
