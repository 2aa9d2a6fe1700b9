//! A provider's key that changes while the server runs. It comes from a file that is read for each
//! request, from a command whose output is kept for a time, or from a cloud whose token is kept
//! until shortly before it expires. Requests share a renewal. During a renewal, and after a failed
//! one, the last key stays in use until the provider refuses it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use http::{HeaderMap, header::AUTHORIZATION};
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout};

use super::{
    clouds::{AwsCredentials, AwsKeys, GcpCredentials, signed_headers},
    key_command::output,
    provider_client::{CloudCredentials, KeyPlace, SetupError, key_header},
};
use crate::ModelOptions;

const MAX_KEY_BYTES: usize = 16 << 10;
/// The time between a renewal and the end of the old token. Clouds return the same token until
/// about four minutes before its end.
const RENEW_BEFORE: Duration = Duration::from_secs(225);
/// The time limit of a renewal. It is longer than the limits of its steps.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(40);
/// The time for which the request that begins a renewal waits for it before it uses the last key. A
/// file takes no longer.
const RENEWAL_GRACE: Duration = Duration::from_secs(1);

pub(super) struct ChangingKey {
    places: Vec<KeyPlace>,
    shared: Arc<SharedKey>,
}

/// The state that requests share with the renewal, which outlives the request that began it.
struct SharedKey {
    source: KeySource,
    state: Mutex<KeyState>,
}

#[derive(Default)]
struct KeyState {
    last: Option<LastKey>,
    renewal: Option<Renewal>,
}

type Renewal = Shared<BoxFuture<'static, Result<RequestKey, String>>>;

enum KeySource {
    File(PathBuf),
    Command { command: Vec<String>, ttl: Duration },
    Gcp(GcpCredentials),
    Aws(AwsCredentials),
}

/// The secret that authenticates a request.
#[derive(Clone)]
pub(super) enum RequestKey {
    /// A text in a header.
    Text(SecretString),
    /// The keys of a signature.
    Aws(AwsKeys),
}

struct LastKey {
    key: RequestKey,
    read_at: Instant,
    /// The time for which the key is used before it is renewed.
    ttl: Duration,
    /// The time after which the provider refuses the key, if known.
    lifetime: Option<Duration>,
}

impl LastKey {
    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < self.ttl
    }

    fn is_expired(&self) -> bool {
        self.lifetime.is_some_and(|lifetime| self.read_at.elapsed() >= lifetime)
    }
}

impl ChangingKey {
    /// Returns `None` if the client's key does not change. `url` is the provider's URL.
    pub(super) fn new(
        options: &ModelOptions,
        url: &Url,
        mut places: Vec<KeyPlace>,
    ) -> Result<Option<Self>, SetupError> {
        let client = &options.client;
        let source =
            match (options.credentials, &client.api_key_file, client.api_key_command.as_slice()) {
                (Some(CloudCredentials::Gcp), ..) => {
                    places = vec![(AUTHORIZATION, "Bearer ")];
                    KeySource::Gcp(GcpCredentials::new().map_err(SetupError::Tls)?)
                }
                (Some(CloudCredentials::Aws), ..) => {
                    KeySource::Aws(AwsCredentials::new(url).map_err(SetupError::Tls)?)
                }
                (None, Some(path), _) => KeySource::File(path.clone()),
                (None, None, []) => return Ok(None),
                (None, None, command) => {
                    KeySource::Command { command: command.to_vec(), ttl: client.api_key_ttl }
                }
            };
        Ok(Some(Self { places, shared: Arc::new(SharedKey { source, state: Mutex::default() }) }))
    }

    /// Returns the current key.
    ///
    /// # Errors
    /// A text for the log, if there has never been a key.
    pub(super) async fn current(&self) -> Result<RequestKey, String> {
        let (last, wait, renewal) = {
            let mut state = self.shared.state.lock();
            let wait = match &state.last {
                Some(last) if last.is_fresh() => return Ok(last.key.clone()),
                Some(last) if last.is_expired() => RENEWAL_TIMEOUT,
                Some(last) if state.is_renewing() => return Ok(last.key.clone()),
                Some(_) => RENEWAL_GRACE,
                None => RENEWAL_TIMEOUT,
            };
            (
                state.last.as_ref().map(|last| last.key.clone()),
                wait,
                self.shared.renewal(&mut state),
            )
        };
        let renewed = timeout(wait, renewal).await.unwrap_or_else(|_| Err(late()));
        renewed.or_else(|error| last.ok_or(error))
    }

    /// Returns another key than the one of a request that was sent at `asked_at` and refused, if
    /// there is one.
    pub(super) async fn after_refusal(
        &self,
        refused: &RequestKey,
        asked_at: Instant,
    ) -> Option<RequestKey> {
        let is_other = |key: &RequestKey| !key.secrets().eq(refused.secrets());
        let renewal = {
            let mut state = self.shared.state.lock();
            match &state.last {
                Some(LastKey { key, .. }) if is_other(key) => return Some(key.clone()),
                Some(LastKey { read_at, .. }) if *read_at > asked_at => return None,
                _ => self.shared.renewal(&mut state),
            }
        };
        renewal.await.ok().filter(is_other)
    }

    /// Returns the headers that authenticate a request.
    ///
    /// # Errors
    /// A text for the log.
    pub(super) fn headers(
        &self,
        key: &RequestKey,
        url: &Url,
        body: &[u8],
    ) -> Result<HeaderMap, String> {
        match key {
            RequestKey::Text(key) => {
                let header =
                    |(name, prefix): &KeyPlace| Ok((name.clone(), key_header(prefix, key)?));
                let headers = self.places.iter().map(header).collect::<Result<_, SetupError>>();
                headers.map_err(|error| error.to_string())
            }
            RequestKey::Aws(keys) => signed_headers(keys, url, body, Timestamp::now()),
        }
    }
}

impl KeyState {
    /// Returns whether a renewal runs. A panicked one does not.
    fn is_renewing(&self) -> bool {
        self.renewal.as_ref().is_some_and(|renewal| renewal.peek().is_none())
    }
}

impl SharedKey {
    /// Returns the running renewal, or begins one.
    fn renewal(self: &Arc<Self>, state: &mut KeyState) -> Renewal {
        if let Some(running) = state.renewal.as_ref().filter(|_| state.is_renewing()) {
            return running.clone();
        }
        let renewal = tokio::spawn(self.clone().renew());
        let renewal = async { renewal.await.unwrap_or_else(|error| Err(error.to_string())) };
        state.renewal.insert(renewal.boxed().shared()).clone()
    }

    async fn renew(self: Arc<Self>) -> Result<RequestKey, String> {
        let read = timeout(RENEWAL_TIMEOUT, self.read()).await.unwrap_or_else(|_| Err(late()));
        let mut state = self.state.lock();
        state.renewal = None;
        match read {
            Ok(read) => Ok(state.last.insert(read).key.clone()),
            Err(error) => {
                if state.last.is_some() {
                    tracing::warn!(
                        error,
                        "the key of a model provider cannot be renewed; the last one stays in use"
                    );
                }
                Err(error)
            }
        }
    }

    async fn read(&self) -> Result<LastKey, String> {
        let (key, ttl, lifetime) = match &self.source {
            KeySource::File(path) => {
                let read =
                    tokio::fs::read(path).await.map_err(|error| format!("cannot be read: {error}"));
                let key = read
                    .and_then(line)
                    .map_err(|problem| format!("the file {} {problem}", path.display()))?;
                (RequestKey::Text(key), Duration::ZERO, None)
            }
            KeySource::Command { command, ttl } => {
                let key = output(command).await.and_then(line);
                let key =
                    key.map_err(|problem| format!("the command {:?} {problem}", command[0]))?;
                (RequestKey::Text(key), *ttl, None)
            }
            KeySource::Gcp(credentials) => {
                let token = credentials.token().await?;
                let lifetime = Duration::from_secs(token.expires_in);
                (
                    RequestKey::Text(token.access_token),
                    lifetime.saturating_sub(RENEW_BEFORE),
                    Some(lifetime),
                )
            }
            KeySource::Aws(credentials) => {
                let (keys, lifetime) = credentials.keys().await?;
                (RequestKey::Aws(keys), lifetime.saturating_sub(RENEW_BEFORE), Some(lifetime))
            }
        };
        Ok(LastKey { key, read_at: Instant::now(), ttl, lifetime })
    }
}

impl RequestKey {
    /// Returns the texts that no error and no log may contain.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let (key, token) = match self {
            Self::Text(key) => (key, None),
            Self::Aws(keys) => (&keys.given.secret_access_key, keys.given.token.as_ref()),
        };
        std::iter::once(key).chain(token).map(ExposeSecret::expose_secret)
    }
}

fn late() -> String {
    format!("the key was not read in {RENEWAL_TIMEOUT:?}")
}

/// Returns a text of one line as a key.
fn line(bytes: Vec<u8>) -> Result<SecretString, String> {
    match std::str::from_utf8(&bytes).map(str::trim) {
        Ok("") => Err("has no key".to_owned()),
        Ok(key) if key.len() <= MAX_KEY_BYTES && !key.contains(char::is_control) => Ok(key.into()),
        _ => Err("has something else than a key: one line of text is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProviderClient;

    fn changing(client: ProviderClient) -> ChangingKey {
        let url = Url::parse("http://h").unwrap();
        ChangingKey::new(&ModelOptions::new("m", client), &url, Vec::new()).unwrap().unwrap()
    }

    fn text(key: RequestKey) -> String {
        key.secrets().collect()
    }

    fn by_command(script: &str, ttl: Duration) -> ChangingKey {
        let api_key_command = ["sh", "-c", script].map(str::to_owned).to_vec();
        changing(ProviderClient { api_key_command, api_key_ttl: ttl, ..ProviderClient::default() })
    }

    async fn current(key: &ChangingKey) -> Result<String, String> {
        key.current().await.map(text)
    }

    #[tokio::test]
    async fn a_file_is_read_for_each_request_and_the_last_key_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = changing(ProviderClient {
            api_key_file: Some(path.clone()),
            ..ProviderClient::default()
        });
        assert!(current(&key).await.unwrap_err().contains("cannot be read"));
        for (content, expected) in
            [("one\n", "one"), ("two", "two"), ("", "two"), ("three\n\n", "three")]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(current(&key).await.as_deref(), Ok(expected));
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(current(&key).await.as_deref(), Ok("three"));
    }

    #[tokio::test]
    async fn the_output_of_a_command_is_kept_for_its_time_and_asked_for_again_after_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count").display().to_string();
        let counting = format!("echo x >> {count}; echo key-$(wc -l < {count})");
        let key = by_command(&counting, Duration::from_secs(3600));
        assert_eq!(current(&key).await.as_deref(), Ok("key-1"));
        assert_eq!(current(&key).await.as_deref(), Ok("key-1"));
        let refused = async |key_of: &str, asked_at| {
            key.after_refusal(&RequestKey::Text(key_of.into()), asked_at).await.map(text)
        };
        let asked_at = Instant::now();
        assert_eq!(
            refused("key-0", asked_at).await.as_deref(),
            Some("key-1"),
            "another request has read it"
        );
        assert_eq!(refused("key-1", asked_at).await.as_deref(), Some("key-2"));
        assert_eq!(refused("key-2", asked_at).await, None, "it was read for this request");
        let short = by_command(&counting, Duration::ZERO);
        assert_eq!(current(&short).await.as_deref(), Ok("key-3"));
        assert_eq!(current(&short).await.as_deref(), Ok("key-4"));
    }

    #[tokio::test]
    async fn a_command_that_hangs_stops_no_request_that_has_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count").display().to_string();
        // The first command prints a key, and all others hang.
        let hanging = format!("[ -e {count} ] && exec sleep 60; echo x >> {count}; echo key");
        let key = by_command(&hanging, Duration::ZERO);
        let begun = Instant::now();
        assert_eq!(current(&key).await.as_deref(), Ok("key"));
        for _ in 0..20 {
            assert_eq!(current(&key).await.as_deref(), Ok("key"));
        }
        let all = futures::future::join_all((0..20).map(|_| current(&key))).await;
        assert!(all.iter().all(|key| key.as_deref() == Ok("key")), "{all:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        // A refused key is not used: the request waits for the renewal.
        let refused = RequestKey::Text("key".into());
        let waiting =
            timeout(Duration::from_millis(100), key.after_refusal(&refused, Instant::now()));
        assert!(waiting.await.is_err());
    }

    #[tokio::test]
    async fn requests_without_a_key_share_one_run_of_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count").display().to_string();
        let key = by_command(
            &format!("echo x >> {count}; sleep 0.2; wc -l < {count}"),
            Duration::from_secs(60),
        );
        let all = futures::future::join_all((0..20).map(|_| current(&key))).await;
        assert!(all.iter().all(|key| key.as_deref() == Ok("1")), "{all:?}");
    }

    #[tokio::test]
    async fn a_command_that_fails_is_named_with_what_it_says() {
        for (script, problem) in [
            (
                "echo no account >&2; exit 3",
                "the command \"sh\" failed (exit status: 3): no account",
            ),
            ("true", "the command \"sh\" has no key"),
            (
                "printf 'a\\nb'",
                "the command \"sh\" has something else than a key: one line of text is needed",
            ),
        ] {
            assert_eq!(current(&by_command(script, Duration::ZERO)).await, Err(problem.to_owned()));
        }
    }
}
