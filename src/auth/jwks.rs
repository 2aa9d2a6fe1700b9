//! Public keys that an identity provider publishes at an address (JWKS), fetched and kept.
//!
//! They are fetched when the first token comes, again in the background when they have grown old, and again when a
//! token names a key that is not among them, for keys are changed. Anybody can make up such a token, so that happens
//! only every so often, and whoever comes meanwhile waits for the one fetch. When a fetch fails, what was known stays.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::{Client, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{
    AuthError, TokenFault,
    key::{JwtAlgorithm, NamedKey, VerifyingKey},
};
use crate::upstream::{ClientOptions, client, direct_client};

/// The largest set, in bytes.
const LARGEST: usize = 1024 * 1024;
/// How many keys of a set are looked at. Those that exist have fewer than ten.
const MOST_KEYS: usize = 100;

/// When keys are fetched.
#[derive(Debug, Clone)]
pub struct JwksOptions {
    /// How old they may grow.
    pub refresh: Duration,
    /// How soon after one fetch the next one may follow, when a token names a key that is not known.
    pub retry: Duration,
    /// The same while there are no keys at all, and nobody can be let in.
    pub retry_without_keys: Duration,
    /// How long a fetch may take.
    pub timeout: Duration,
}

impl Default for JwksOptions {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(600),
            retry: Duration::from_secs(30),
            retry_without_keys: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
        }
    }
}

#[derive(Clone)]
pub(super) struct Jwks(Arc<Inner>);

struct Inner {
    client: Client,
    url: String,
    algorithms: Vec<JwtAlgorithm>,
    options: JwksOptions,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    keys: Arc<[Named]>,
    /// When these keys came.
    fetched: Option<Instant>,
    /// When they were last asked for, or when that ended.
    tried: Option<Instant>,
    /// Whether they are being asked for now.
    fetching: bool,
}

struct Named {
    kid: Option<String>,
    key: Arc<VerifyingKey>,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("it took too long")]
    Timeout,
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the answer has the status {0}")]
    Status(StatusCode),
    #[error("the answer is larger than 1 MiB")]
    TooLarge,
    #[error("the answer is no set of keys: {0}")]
    Json(#[from] serde_json::Error),
    #[error("there is no key in it that could be used")]
    NoKeys,
}

impl Jwks {
    pub(super) fn new(url: &str, algorithms: Vec<JwtAlgorithm>, options: JwksOptions) -> reqwest::Result<Self> {
        let connecting = ClientOptions { connect_timeout: options.timeout };
        // What is on this machine is not asked for through a proxy, which is somewhere else.
        let client = if url.starts_with("https:") { client(&connecting)? } else { direct_client(&connecting)? };
        let state = watch::Sender::default();
        Ok(Self(Arc::new(Inner { client, url: url.to_owned(), algorithms, options, state })))
    }

    /// The key that a token names, for the algorithm it claims.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: JwtAlgorithm,
    ) -> Result<Arc<VerifyingKey>, AuthError> {
        let found = choose(&self.0.state.borrow().keys, kid, algorithm);
        match found {
            Ok(key) => {
                if self.0.state.borrow().fetched.is_none_or(|at| at.elapsed() >= self.0.options.refresh) {
                    self.fetch();
                }
                return Ok(key);
            }
            Err(TokenFault::UnknownKey) => {}
            Err(fault) => return Err(fault.into()),
        }
        self.fetch();
        // The sender lives as long as this does.
        let _ = self.0.state.subscribe().wait_for(|state| !state.fetching).await;
        let state = self.0.state.borrow();
        if state.keys.is_empty() {
            return Err(AuthError::NoKeys { retry_after: state.wait(&self.0.options) });
        }
        Ok(choose(&state.keys, kid, algorithm)?)
    }

    /// Begins a fetch, unless there is one, or the last one was just now. It is a task of its own: whoever gave the
    /// reason for it may leave, and must not be able to begin one after the other that way.
    fn fetch(&self) {
        let begun = self.0.state.send_if_modified(|state| {
            let may = !state.fetching && state.wait(&self.0.options).is_zero();
            if may {
                state.fetching = true;
                state.tried = Some(Instant::now());
            }
            may
        });
        if begun {
            let fetch = Fetch(self.0.clone());
            tokio::spawn(async move { fetch.run().await });
        }
    }
}

impl State {
    /// How long it is until keys may be asked for again.
    fn wait(&self, options: &JwksOptions) -> Duration {
        let pause = if self.keys.is_empty() { options.retry_without_keys } else { options.retry };
        self.tried.map_or(Duration::ZERO, |tried| pause.saturating_sub(tried.elapsed()))
    }
}

/// A fetch that has begun. However it ends, others may follow.
struct Fetch(Arc<Inner>);

impl Fetch {
    async fn run(self) {
        let fetched = timeout(self.0.options.timeout, self.0.ask()).await.unwrap_or(Err(FetchError::Timeout));
        match fetched {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "fetched the keys for tokens");
                self.0.state.send_modify(|state| {
                    state.keys = keys.into();
                    state.fetched = Some(Instant::now());
                });
            }
            Err(error) => {
                let known = self.0.state.borrow().keys.len();
                tracing::warn!(%error, known, "cannot fetch the keys for tokens; those that are known stay in use");
            }
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.fetching = false;
            state.tried = Some(Instant::now());
        });
    }
}

impl Inner {
    async fn ask(&self) -> Result<Vec<Named>, FetchError> {
        let request = self.client.get(&self.url).header(header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(reqwest::Error::without_url)?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(reqwest::Error::without_url)? {
            if body.len() + piece.len() > LARGEST {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        let keys = read(&body, &self.algorithms)?;
        if keys.is_empty() { Err(FetchError::NoKeys) } else { Ok(keys) }
    }
}

/// The keys of a set that tokens can be checked with.
fn read(body: &[u8], algorithms: &[JwtAlgorithm]) -> Result<Vec<Named>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(body)?;
    let usable = set.keys.iter().take(MOST_KEYS).filter_map(NamedKey::from_jwk);
    let accepted = usable.filter(|named| algorithms.contains(&named.key.algorithm));
    Ok(accepted.map(|named| Named { kid: named.kid, key: Arc::new(named.key) }).collect())
}

/// Whether what is fetched there is what was published: nobody may change it on the way.
pub(super) fn is_safe(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let is_loopback = match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        None => false,
    };
    let is_bare = url.username().is_empty() && url.password().is_none();
    is_bare && (url.scheme() == "https" || url.scheme() == "http" && is_loopback)
}

/// The key of a name, or the only one when there is no name. Names may be shared by keys for different algorithms.
fn choose(keys: &[Named], kid: Option<&str>, algorithm: JwtAlgorithm) -> Result<Arc<VerifyingKey>, TokenFault> {
    let named = || keys.iter().filter(|named| kid.is_none() || named.kid.as_deref() == kid);
    let mut fitting = named().filter(|named| named.key.algorithm == algorithm);
    match (fitting.next(), fitting.next()) {
        (Some(_), Some(_)) if kid.is_none() => Err(TokenFault::NoKeyId),
        (Some(named), _) => Ok(named.key.clone()),
        (None, _) if named().next().is_some() => Err(TokenFault::Algorithm),
        (None, _) => Err(TokenFault::UnknownKey),
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

    fn set(keys: Vec<Value>) -> Vec<Named> {
        read(json!({ "keys": keys }).to_string().as_bytes(), &BOTH).unwrap()
    }

    #[test]
    fn a_key_is_found_by_name_and_algorithm() {
        let keys = set(vec![rsa("a"), rsa("b"), ec("b"), ec("c")]);
        let found = |kid, algorithm| choose(&keys, kid, algorithm).map(|key| key.algorithm);
        assert_eq!(found(Some("a"), JwtAlgorithm::Rs256), Ok(JwtAlgorithm::Rs256));
        assert_eq!(found(Some("b"), JwtAlgorithm::Es256), Ok(JwtAlgorithm::Es256));
        assert_eq!(found(Some("c"), JwtAlgorithm::Rs256), Err(TokenFault::Algorithm));
        assert_eq!(found(Some("a"), JwtAlgorithm::Hs256), Err(TokenFault::Algorithm));
        assert_eq!(found(Some("d"), JwtAlgorithm::Rs256), Err(TokenFault::UnknownKey));
        assert_eq!(found(None, JwtAlgorithm::Rs256), Err(TokenFault::NoKeyId));
    }

    #[test]
    fn a_name_is_not_needed_where_there_is_one_key() {
        let keys = set(vec![rsa("a"), ec("b")]);
        assert!(choose(&keys, None, JwtAlgorithm::Rs256).is_ok());
        assert!(choose(&keys, None, JwtAlgorithm::Es256).is_ok());
        let none = choose(&[], None, JwtAlgorithm::Rs256).map(|key| key.algorithm);
        assert_eq!(none, Err(TokenFault::UnknownKey), "worth a fetch");
    }

    #[test]
    fn keys_are_not_fetched_where_anybody_could_change_them() {
        for url in ["https://id.test/keys", "http://localhost:80/k", "http://127.0.0.1/k", "http://[::1]:1/k"] {
            assert!(is_safe(url), "{url}");
        }
        for url in ["", "keys", "http://id.test/keys", "http://localhost.id.test/", "file:///k", "https://u:p@id.test/"]
        {
            assert!(!is_safe(url), "{url}");
        }
    }

    #[test]
    fn a_set_is_read_as_far_as_it_can_be_used() {
        let mut keys: Vec<Value> = vec![json!(7), json!({ "kty": "oct", "k": "AAAA" }), rsa("a")];
        keys.extend((0..200).map(|number| ec(&number.to_string())));
        assert_eq!(set(keys).len(), MOST_KEYS - 2);
        let only_ec = json!({ "keys": [rsa("a"), ec("b")] }).to_string();
        assert_eq!(read(only_ec.as_bytes(), &[JwtAlgorithm::Es256]).unwrap().len(), 1);
        assert!(read(b"{}", &BOTH).is_err());
        assert!(read(b"<html>", &BOTH).is_err());
    }
}
