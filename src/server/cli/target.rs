//! The target of a command's runs: one endpoint, a server's agents, or the configured agents on a
//! local port.

use std::error::Error;

use reqwest::{Client, Url, header::HeaderValue};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use uuid::Uuid;

use super::arguments::{CommandOptions, TargetOptions};
use crate::{
    auth::{ApiKey, ApiKeys, Authenticator},
    server::Server,
};
use agui_base::{upstream, upstream::ClientOptions};
use agui_observe::{metrics::MetricsOptions, recordings::RecordOptions, telemetry::logs};
use agui_protocol::JsonObject;

/// The meaning of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UrlMeaning {
    /// A server, also if the URL has a path.
    Server,
    /// A server if the URL has no path, otherwise one agent's endpoint.
    ServerOrEndpoint,
}

pub(super) struct RunTarget {
    pub(super) client: Client,
    /// The URL for all runs, if the target is one endpoint.
    endpoint: Option<Url>,
    /// The URL below which the routes of a server are, as far as it is known.
    server: Option<Url>,
    /// The header with the key.
    pub(super) authorization: Option<HeaderValue>,
    /// The server in this process, which stops when the sender is dropped.
    own: Option<(oneshot::Sender<()>, JoinHandle<std::io::Result<()>>)>,
}

impl RunTarget {
    /// Opens the target of a URL; without a URL, the configured agents in this process. `argument`
    /// is the flag with the URL, for errors.
    pub(super) async fn open(
        argument: &str,
        url: Option<&str>,
        meaning: UrlMeaning,
        options: &TargetOptions,
    ) -> Result<Self, Box<dyn Error>> {
        let client = upstream::client(&ClientOptions::default())?;
        let key = options.key_env.as_deref().map(key_of).transpose()?;
        if let Some(url) = url {
            let url = Url::parse(url)
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            let url = url.ok_or_else(|| {
                format!("{argument}: expected a URL such as http://localhost:8080")
            })?;
            let is_server = meaning == UrlMeaning::Server || url.path() == "/";
            let server = if is_server { Some(url.clone()) } else { server_of(&url) };
            let authorization = key.as_deref().map(authorization).transpose()?;
            return Ok(Self {
                client,
                endpoint: (!is_server).then_some(url),
                server,
                authorization,
                own: None,
            });
        }
        let claims: JsonObject = options.claims.iter().cloned().collect();
        let options = CommandOptions {
            config: options.config.clone(),
            log: options.log.clone(),
            ..CommandOptions::default()
        };
        let has_log = options.log.is_some();
        let (loaded, _) = options.load()?;
        if has_log {
            logs::init(&loaded.config.log)?;
        }
        // Threads in memory, on a port that only this machine reaches, where other users cannot ask the agents.
        let key = key.unwrap_or_else(|| Uuid::new_v4().to_string());
        let authorization = Some(authorization(&key)?);
        let is_anonymous = claims.is_empty();
        let key = ApiKey::from_secret("command", &key).with_claims(claims);
        let authenticator = Authenticator::from(ApiKeys::new([key]));
        let authenticator =
            if is_anonymous { authenticator.without_principal() } else { authenticator };
        let server = Server::from_config(&loaded)?
            .authenticator(authenticator)
            .metrics(MetricsOptions::default())
            .record(RecordOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = Url::parse(&format!("http://{}/", listener.local_addr()?))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(server.serve_on(listener, async move { drop(stopped.await) }));
        let own = Some((stop, server));
        Ok(Self { client, endpoint: None, server: Some(url), authorization, own })
    }

    /// Returns the URL for runs of an agent, by default of the server's default agent.
    pub(super) fn url(&self, agent: Option<&str>) -> Result<Url, Box<dyn Error>> {
        match (&self.endpoint, agent) {
            (Some(endpoint), _) => Ok(endpoint.clone()),
            (None, Some(agent)) => self.route(&["agents", agent, "send-message"]),
            (None, None) => self.route(&["send-message"]),
        }
    }

    /// Returns the URL of a server's route. It is an error if only an endpoint is known.
    pub(super) fn route(&self, segments: &[&str]) -> Result<Url, Box<dyn Error>> {
        let mut url = self
            .server
            .clone()
            .ok_or("only the URL of an endpoint is known, not that of its server")?;
        url.path_segments_mut()
            .map_err(|()| "the URL has no path")?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    /// Ends the server of this process.
    pub(super) async fn close(self) {
        if let Some((stop, server)) = self.own {
            drop(stop);
            // The results are known; a failure of the shutdown does not change them.
            let _ = server.await;
        }
    }
}

fn key_of(variable: &str) -> Result<String, String> {
    let key = std::env::var(variable)
        .map_err(|_| format!("--key-env: the environment variable {variable} is not set"))?;
    Ok(key.trim().to_owned())
}

fn authorization(key: &str) -> Result<HeaderValue, &'static str> {
    let mut value = HeaderValue::try_from(format!("Bearer {key}"))
        .map_err(|_| "--key-env: the key cannot be sent in a header")?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the URL of the server with this route for runs, if the path is the one that this crate's servers have.
fn server_of(endpoint: &Url) -> Option<Url> {
    let path = endpoint.path().strip_suffix("/send-message")?;
    let base = match path.rsplit_once("/agents/") {
        Some((base, agent)) if !agent.contains('/') => base,
        _ => path,
    };
    let mut url = endpoint.clone();
    url.set_path(&format!("{base}/"));
    url.set_query(None);
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_an_endpoint_is_known_by_its_path() {
        for (endpoint, server) in [
            ("http://h/send-message", Some("http://h/")),
            ("http://h/agents/clerk/send-message", Some("http://h/")),
            ("http://h/agui/agents/clerk/send-message?a=b", Some("http://h/agui/")),
            ("http://h/agui/send-message", Some("http://h/agui/")),
            ("http://h/agent", None),
            ("http://h/my-send-message", None),
        ] {
            let found = server_of(&Url::parse(endpoint).unwrap());
            assert_eq!(found.as_ref().map(Url::as_str), server, "{endpoint}");
        }
    }
}
