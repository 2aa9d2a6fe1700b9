//! Public keys that an identity provider publishes at a URL (JWKS, RFC 7517), fetched and cached.
//!
//! Keys are also fetched when a token names an unknown key, because providers rotate keys. Callers can make up such
//! tokens, so there is one fetch at a time, and a pause after it. If fetches fail, the known keys stay in use until they are
//! older than [`JwksOptions::max_age`]: the provider may have withdrawn one of them.

use std::{error::Error, sync::Arc, time::Duration};

use reqwest::{Client, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use smart_default::SmartDefault;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{
    algorithm::JwtAlgorithm,
    key::{NamedKey, VerifyingKey},
};
use crate::auth::error::{AuthError, TokenError};
use agui_base::upstream::{ClientError, ClientOptions, body::read_whole, client, direct_client};

const MAX_SET_BYTES: usize = 1024 * 1024;
/// The number of keys of a set that are read. Sets have fewer than ten.
const MAX_KEYS: usize = 100;
/// The number of keys that a token is checked with, because it names none, or because several have its id. A check takes 0.1 ms
/// at most.
const MAX_TRIED_KEYS: usize = 10;

/// Times of fetching keys.
#[derive(Debug, Clone, SmartDefault)]
#[non_exhaustive]
pub struct JwksOptions {
    /// The age at which keys are fetched again, in the background.
    #[default(Duration::from_secs(600))]
    pub refresh: Duration,
    /// The age at which keys are no longer used, if none could be fetched since. Tokens are then answered with 503.
    #[default(Duration::from_secs(24 * 3600))]
    pub max_age: Duration,
    /// The pause after a fetch before a token with an unknown key causes the next one.
    #[default(Duration::from_secs(30))]
    pub retry: Duration,
    /// The same while no keys are known, and all tokens are answered with 503.
    #[default(Duration::from_secs(5))]
    pub retry_without_keys: Duration,
    /// The time limit of a fetch.
    #[default(Duration::from_secs(5))]
    pub timeout: Duration,
}

#[derive(Clone)]
pub(super) struct Jwks(Arc<JwksCache>);

struct JwksCache {
    client: Client,
    url: String,
    algorithms: Vec<JwtAlgorithm>,
    options: JwksOptions,
    state: watch::Sender<JwksState>,
}

#[derive(Default)]
struct JwksState {
    keys: Arc<[NamedKey]>,
    fetched_at: Option<Instant>,
    /// The time at which the last fetch began or ended.
    tried_at: Option<Instant>,
    is_fetching: bool,
}

impl Jwks {
    pub(super) fn new(
        url: &str,
        algorithms: Vec<JwtAlgorithm>,
        options: JwksOptions,
    ) -> Result<Self, ClientError> {
        let connecting = ClientOptions { connect_timeout: options.timeout };
        // Plain http is for this machine only, and must not go through a proxy.
        let client = if url.starts_with("https:") {
            client(&connecting)?
        } else {
            direct_client(&connecting)?
        };
        let state = watch::Sender::default();
        Ok(Self(Arc::new(JwksCache { client, url: url.to_owned(), algorithms, options, state })))
    }

    /// Returns the keys of which one has signed a token, if the token is valid.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: JwtAlgorithm,
    ) -> Result<Vec<VerifyingKey>, AuthError> {
        let found = choose(self.0.state.borrow().usable_keys(&self.0.options), kid, algorithm);
        match found {
            Ok(keys) => {
                if self
                    .0
                    .state
                    .borrow()
                    .fetched_at
                    .is_none_or(|at| at.elapsed() >= self.0.options.refresh)
                {
                    self.fetch();
                }
                return Ok(keys);
            }
            Err(TokenError::UnknownKey) => {}
            Err(error) => return Err(error.into()),
        }
        self.fetch();
        // Cannot fail: `self` holds the sender.
        let _ = self.0.state.subscribe().wait_for(|state| !state.is_fetching).await;
        let state = self.0.state.borrow();
        let keys = state.usable_keys(&self.0.options);
        if keys.is_empty() {
            return Err(AuthError::NoKeys { retry_after: state.wait(&self.0.options) });
        }
        Ok(choose(keys, kid, algorithm)?)
    }

    /// Starts a fetch. It is a task: if it ended with the request that caused it, clients that leave could cause one
    /// after the other.
    fn fetch(&self) {
        let begun = self.0.state.send_if_modified(|state| {
            let start = !state.is_fetching && state.wait(&self.0.options).is_zero();
            if start {
                state.is_fetching = true;
                state.tried_at = Some(Instant::now());
            }
            start
        });
        if begun {
            let fetch = Fetch(self.0.clone());
            tokio::spawn(async move { fetch.run().await });
        }
    }
}

impl JwksState {
    fn usable_keys(&self, options: &JwksOptions) -> &[NamedKey] {
        let is_usable = self.fetched_at.is_some_and(|at| at.elapsed() < options.max_age);
        if is_usable { &self.keys } else { &[] }
    }

    /// Returns the time until keys may be fetched again.
    fn wait(&self, options: &JwksOptions) -> Duration {
        let pause = if self.usable_keys(options).is_empty() {
            options.retry_without_keys
        } else {
            options.retry
        };
        self.tried_at.map_or(Duration::ZERO, |tried| pause.saturating_sub(tried.elapsed()))
    }
}

/// A running fetch. Dropping it allows the next one, also after a panic.
struct Fetch(Arc<JwksCache>);

impl Fetch {
    async fn run(self) {
        let fetched = timeout(self.0.options.timeout, self.0.fetch_keys()).await;
        match fetched.unwrap_or_else(|_| Err("no response in time".into())) {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "fetched the keys that tokens are checked with");
                self.0.state.send_modify(|state| {
                    state.keys = keys.into();
                    state.fetched_at = Some(Instant::now());
                });
            }
            Err(error) => {
                let known = self.0.state.borrow().keys.len();
                let max_age = self.0.options.max_age;
                tracing::warn!(%error, known, ?max_age, "cannot fetch the keys that tokens are checked with; the known ones stay in use until they are older than `max_age`");
            }
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.is_fetching = false;
            state.tried_at = Some(Instant::now());
        });
    }
}

impl JwksCache {
    /// An error is the reason, for the log.
    async fn fetch_keys(&self) -> Result<Vec<NamedKey>, Box<dyn Error + Send + Sync>> {
        let request = self.client.get(&self.url).header(header::ACCEPT, "application/json");
        let response = request.send().await.map_err(reqwest::Error::without_url)?;
        if response.status() != StatusCode::OK {
            return Err(format!("the status of the response is {}", response.status()).into());
        }
        let body = read_whole(response, MAX_SET_BYTES).await?;
        let keys = read(&body, &self.algorithms);
        let keys = keys.map_err(|error| format!("the response is not a set of keys: {error}"))?;
        if keys.is_empty() { Err("the response has no usable key".into()) } else { Ok(keys) }
    }
}

fn read(body: &[u8], algorithms: &[JwtAlgorithm]) -> Result<Vec<NamedKey>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(body)?;
    let usable =
        set.keys.iter().take(MAX_KEYS).filter_map(|key| NamedKey::from_jwk(key, algorithms));
    let accepted = usable.filter(|named| algorithms.contains(&named.key.algorithm));
    Ok(accepted.collect())
}

/// Returns the keys for an algorithm: those with the id, or without an id the first ones. Keys for different algorithms may share
/// an id.
fn choose(
    keys: &[NamedKey],
    kid: Option<&str>,
    algorithm: JwtAlgorithm,
) -> Result<Vec<VerifyingKey>, TokenError> {
    let named = || keys.iter().filter(|named| kid.is_none() || named.kid.as_deref() == kid);
    let fitting = named().filter(|named| named.key.algorithm == algorithm);
    let fitting: Vec<_> = fitting.take(MAX_TRIED_KEYS).map(|named| named.key.clone()).collect();
    match fitting.is_empty() {
        false => Ok(fitting),
        true if named().next().is_some() => Err(TokenError::Algorithm),
        true => Err(TokenError::UnknownKey),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOTH: [JwtAlgorithm; 2] = [JwtAlgorithm::Rs256, JwtAlgorithm::Es256];

    fn rsa(kid: &str) -> Value {
        json!({ "kty": "RSA", "kid": kid, "n": "AQAB", "e": "AQAB" })
    }

    fn ec(kid: &str) -> Value {
        let point = "A".repeat(43);
        json!({ "kty": "EC", "kid": kid, "crv": "P-256", "x": point, "y": point })
    }

    fn set(keys: Vec<Value>) -> Vec<NamedKey> {
        read(json!({ "keys": keys }).to_string().as_bytes(), &BOTH).unwrap()
    }

    #[test]
    fn a_key_is_found_by_id_and_algorithm() {
        let keys = set(vec![rsa("a"), rsa("b"), ec("b"), ec("c")]);
        let found = |kid, algorithm| choose(&keys, kid, algorithm).map(|keys| keys[0].algorithm);
        assert_eq!(found(Some("a"), JwtAlgorithm::Rs256), Ok(JwtAlgorithm::Rs256));
        assert_eq!(found(Some("b"), JwtAlgorithm::Es256), Ok(JwtAlgorithm::Es256));
        assert_eq!(found(Some("c"), JwtAlgorithm::Rs256), Err(TokenError::Algorithm));
        assert_eq!(found(Some("a"), JwtAlgorithm::Hs256), Err(TokenError::Algorithm));
        assert_eq!(found(Some("d"), JwtAlgorithm::Rs256), Err(TokenError::UnknownKey));
    }

    #[test]
    fn without_an_id_the_first_keys_of_the_algorithm_are_tried() {
        let count =
            |keys: &[NamedKey], algorithm| choose(keys, None, algorithm).map(|keys| keys.len());
        let keys = set(vec![rsa("a"), ec("b"), rsa("c")]);
        assert_eq!(count(&keys, JwtAlgorithm::Rs256), Ok(2));
        assert_eq!(count(&keys, JwtAlgorithm::Es256), Ok(1));
        let many = set((0..50).map(|number| rsa(&number.to_string())).collect());
        assert_eq!(count(&many, JwtAlgorithm::Rs256), Ok(MAX_TRIED_KEYS));
        assert_eq!(count(&[], JwtAlgorithm::Rs256), Err(TokenError::UnknownKey), "causes a fetch");
    }

    #[test]
    fn unusable_keys_of_a_set_are_skipped() {
        let mut keys: Vec<Value> = vec![json!(7), json!({ "kty": "oct", "k": "AAAA" }), rsa("a")];
        keys.extend((0..200).map(|number| ec(&number.to_string())));
        assert_eq!(set(keys).len(), MAX_KEYS - 2);
        let only_ec = json!({ "keys": [rsa("a"), ec("b")] }).to_string();
        assert_eq!(read(only_ec.as_bytes(), &[JwtAlgorithm::Es256]).unwrap().len(), 1);
        assert!(read(b"{}", &BOTH).is_err());
        assert!(read(b"<html>", &BOTH).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_cannot_be_fetched_again_are_used_until_their_largest_age() {
        let options = JwksOptions { max_age: Duration::from_secs(3600), ..JwksOptions::default() };
        // Nothing listens on port 1.
        let jwks = Jwks::new("http://127.0.0.1:1/keys", BOTH.to_vec(), options).unwrap();
        jwks.0.state.send_modify(|state| {
            state.keys = set(vec![rsa("a")]).into();
            state.fetched_at = Some(Instant::now());
        });
        for _ in 0..59 {
            assert!(jwks.find(Some("a"), JwtAlgorithm::Rs256).await.is_ok());
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        tokio::time::advance(Duration::from_secs(61)).await;
        let refused = jwks.find(Some("a"), JwtAlgorithm::Rs256).await.map(drop);
        assert!(matches!(refused, Err(AuthError::NoKeys { .. })), "{refused:?}");
    }
}
