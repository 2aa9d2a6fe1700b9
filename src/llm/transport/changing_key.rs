//! A provider's key that changes while the server runs: it is read from a file for each request, is what a command prints, kept
//! for a time, or a cloud's token, kept until shortly before it expires. A key that cannot be renewed stays in use until the
//! provider refuses it.

use std::{path::PathBuf, process::Stdio, time::Duration};

use http::{HeaderMap, header::AUTHORIZATION};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    process::Command,
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{
    clouds::GcpCredentials,
    connection::{CloudCredentials, Connection, KeyPlace, SetupError, key_header},
};
use crate::base::text::shortened;

/// The time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_KEY_BYTES: usize = 16 << 10;
const MAX_DETAIL_CHARS: usize = 300;
/// Clouds give out the same token until about four minutes before its end.
const RENEW_BEFORE: Duration = Duration::from_secs(225);

pub(super) struct ChangingKey {
    source: KeySource,
    places: Vec<KeyPlace>,
    /// Locked while the key is read, so that requests share what they wait for.
    last: Mutex<Option<LastKey>>,
}

enum KeySource {
    File(PathBuf),
    Command { command: Vec<String>, ttl: Duration },
    Gcp(GcpCredentials),
}

struct LastKey {
    key: SecretString,
    read_at: Instant,
    /// The time for which it is used.
    ttl: Duration,
}

impl ChangingKey {
    /// Returns `None` if the key of the connection does not change.
    pub(super) fn new(
        connection: &Connection,
        credentials: Option<CloudCredentials>,
        mut places: Vec<KeyPlace>,
    ) -> Result<Option<Self>, SetupError> {
        let source = match (credentials, &connection.api_key_file, connection.api_key_command.as_slice()) {
            (Some(CloudCredentials::Gcp), ..) => {
                places = vec![(AUTHORIZATION, "Bearer ")];
                KeySource::Gcp(GcpCredentials::new().map_err(SetupError::Tls)?)
            }
            (None, Some(path), _) => KeySource::File(path.clone()),
            (None, None, []) => return Ok(None),
            (None, None, command) => KeySource::Command { command: command.to_vec(), ttl: connection.api_key_ttl },
        };
        Ok(Some(Self { source, places, last: Mutex::new(None) }))
    }

    /// Returns the key of now.
    ///
    /// # Errors
    /// A text for the log, if there has never been one.
    pub(super) async fn current(&self) -> Result<SecretString, String> {
        let mut last = self.last.lock().await;
        match &*last {
            Some(LastKey { key, read_at, ttl }) if read_at.elapsed() < *ttl => Ok(key.clone()),
            _ => self.renew(&mut last).await,
        }
    }

    /// Returns another key than the one that a request of this time was refused with, if there is one by now.
    pub(super) async fn after_refusal(&self, refused: &SecretString, asked_at: Instant) -> Option<SecretString> {
        let is_other = |key: &SecretString| key.expose_secret() != refused.expose_secret();
        let mut last = self.last.lock().await;
        match &*last {
            Some(LastKey { key, .. }) if is_other(key) => Some(key.clone()),
            Some(LastKey { read_at, .. }) if *read_at > asked_at => None,
            _ => self.renew(&mut last).await.ok().filter(is_other),
        }
    }

    /// The headers with the key.
    ///
    /// # Errors
    /// A text for the log.
    pub(super) fn headers(&self, key: &SecretString) -> Result<HeaderMap, String> {
        let header = |(name, prefix): &KeyPlace| Ok((name.clone(), key_header(prefix, key)?));
        let headers = self.places.iter().map(header).collect::<Result<_, SetupError>>();
        headers.map_err(|error| error.to_string())
    }

    async fn renew(&self, last: &mut Option<LastKey>) -> Result<SecretString, String> {
        match self.read().await {
            Ok(read) => Ok(last.insert(read).key.clone()),
            Err(error) => match last {
                Some(LastKey { key, .. }) => {
                    tracing::warn!(error, "the key of a model provider cannot be renewed; the last one stays in use");
                    Ok(key.clone())
                }
                None => Err(error),
            },
        }
    }

    async fn read(&self) -> Result<LastKey, String> {
        let (from, read, ttl) = match &self.source {
            KeySource::File(path) => {
                let read = tokio::fs::read(path).await.map_err(|error| format!("cannot be read: {error}"));
                (format!("the file {}", path.display()), read, Duration::ZERO)
            }
            KeySource::Command { command, ttl } => {
                (format!("the command {:?}", command[0]), output(command).await, *ttl)
            }
            KeySource::Gcp(credentials) => {
                let token = credentials.token().await?;
                let ttl = Duration::from_secs(token.expires_in).saturating_sub(RENEW_BEFORE);
                return Ok(LastKey { key: token.access_token, read_at: Instant::now(), ttl });
            }
        };
        let key = read.and_then(|bytes| match std::str::from_utf8(&bytes).map(str::trim) {
            Ok("") => Err("has no key".to_owned()),
            Ok(key) if key.len() <= MAX_KEY_BYTES && !key.contains(char::is_control) => Ok(key.into()),
            _ => Err("has something else than a key: one line of text is needed".to_owned()),
        });
        let key = key.map_err(|problem| format!("{from} {problem}"))?;
        Ok(LastKey { key, read_at: Instant::now(), ttl })
    }
}

/// Returns what a command prints. It ends with its caller.
async fn output(command: &[String]) -> Result<Vec<u8>, String> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).stdin(Stdio::null()).kill_on_drop(true);
    match timeout(COMMAND_TIMEOUT, process.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(output.stdout),
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("failed ({}): {}", output.status, shortened(said.trim(), MAX_DETAIL_CHARS)))
        }
        Ok(Err(error)) => Err(format!("cannot be run: {error}")),
        Err(_) => Err(format!("did not end in {COMMAND_TIMEOUT:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_command(script: &str, ttl: Duration) -> ChangingKey {
        let api_key_command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let connection = Connection { api_key_command, api_key_ttl: ttl, ..Connection::default() };
        ChangingKey::new(&connection, None, Vec::new()).unwrap().unwrap()
    }

    async fn current(key: &ChangingKey) -> Result<String, String> {
        key.current().await.map(|key| key.expose_secret().to_owned())
    }

    #[tokio::test]
    async fn a_file_is_read_for_each_request_and_the_last_key_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let connection = Connection { api_key_file: Some(path.clone()), ..Connection::default() };
        let key = ChangingKey::new(&connection, None, Vec::new()).unwrap().unwrap();
        assert!(current(&key).await.unwrap_err().contains("cannot be read"));
        for (content, expected) in [("one\n", "one"), ("two", "two"), ("", "two"), ("three\n\n", "three")] {
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
        let key = of_command(&counting, Duration::from_secs(3600));
        assert_eq!(current(&key).await.as_deref(), Ok("key-1"));
        assert_eq!(current(&key).await.as_deref(), Ok("key-1"));
        let refused = async |key_of: &str, asked_at| {
            let other = key.after_refusal(&key_of.into(), asked_at).await;
            other.map(|other| other.expose_secret().to_owned())
        };
        let asked_at = Instant::now();
        assert_eq!(refused("key-0", asked_at).await.as_deref(), Some("key-1"), "another request has read it");
        assert_eq!(refused("key-1", asked_at).await.as_deref(), Some("key-2"));
        assert_eq!(refused("key-2", asked_at).await, None, "it was read for this request");
        let short = of_command(&counting, Duration::ZERO);
        assert_eq!(current(&short).await.as_deref(), Ok("key-3"));
        assert_eq!(current(&short).await.as_deref(), Ok("key-4"));
    }

    #[tokio::test]
    async fn a_command_that_fails_is_named_with_what_it_says() {
        for (script, problem) in [
            ("echo no account >&2; exit 3", "the command \"sh\" failed (exit status: 3): no account"),
            ("true", "the command \"sh\" has no key"),
            ("printf 'a\\nb'", "the command \"sh\" has something else than a key: one line of text is needed"),
        ] {
            assert_eq!(current(&of_command(script, Duration::ZERO)).await, Err(problem.to_owned()));
        }
    }
}
