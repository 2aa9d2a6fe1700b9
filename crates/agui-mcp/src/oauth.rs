//! Access tokens for an MCP server over HTTP, by OAuth 2.1 client credentials.
//!
//! A token is kept until shortly before it expires, or until the MCP server refuses it. It is renewed with the refresh
//! token, if the authorization server gave one, and otherwise with the client's credentials. Concurrent requests share
//! one renewal, and its failure. Until a token expires, no request waits for its renewal. Rules:
//! <https://modelcontextprotocol.io/extensions/auth/oauth-client-credentials>,
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization>, RFC 6749 and RFC 8707.
//!
//! **The MCP server is not asked for its authorization server** (RFC 9728): it could name its own, and would then get
//! the client's secret. The configuration names the token endpoint.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::{Client, Url};
use serde::Deserialize;
use tokio::time::Instant;

use agui_base::{
    InvalidOption, upstream,
    upstream::{secret_names::secret_variable, trust::is_trusted_url},
};
use agui_tools::login::{ClientAuth, ClientCredentials, TokenSource, ask_for_token};

/// A token is renewed this long before it expires, or when a fifth of its time is left if that is later.
const RENEWAL_MARGIN: Duration = Duration::from_secs(60);
/// After a failed renewal, requests fail without another one for this long.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Options of access tokens: `oauth` in a table `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// The token endpoint of the authorization server: `https`, or a server on this machine.
    pub token_url: String,
    /// The client's id.
    pub client_id: String,
    /// The environment variable with the client's secret.
    #[serde(default)]
    pub client_secret_env: String,
    /// The scopes to ask for. If the list is empty, the authorization server decides.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The audience to ask for, for authorization servers that do not know `resource` (RFC 8707), which is the MCP
    /// server's URL.
    pub audience: Option<String>,
    /// The way to send the secret.
    #[serde(default)]
    pub client_auth: ClientAuth,
}

impl OAuthOptions {
    pub(super) fn check(&self) -> Result<(), InvalidOption> {
        let (key, problem) = if !is_trusted_url(&self.token_url) {
            (
                "token_url",
                "expected https, without credentials; http is accepted for this machine only",
            )
        } else if self.client_id.is_empty() {
            ("client_id", "it is empty")
        } else if self.client_secret_env.is_empty() {
            ("client_secret_env", "the name of the variable with the client's secret is needed")
        } else {
            return Ok(());
        };
        Err(invalid(key, problem))
    }

    /// Returns the tokens for the server at an address, with the client's secret from the environment.
    pub(super) fn tokens(&self, resource: &str) -> Result<AccessTokens, InvalidOption> {
        let secret = secret_variable(&self.client_secret_env)
            .map_err(|problem| invalid("client_secret_env", problem))?;
        let client =
            upstream::direct_client(&upstream::ClientOptions::default()).map_err(|error| {
                invalid("token_url", format!("the HTTP client cannot be created: {error}"))
            })?;
        Ok(AccessTokens::new(self.clone(), secret, resource, client))
    }
}

fn invalid(key: &str, problem: impl Into<String>) -> InvalidOption {
    InvalidOption::at(&["oauth", key], problem)
}

/// The access tokens of one MCP server.
pub(super) struct AccessTokens {
    options: OAuthOptions,
    source: TokenSource,
    client: Client,
    token: Mutex<Option<Token>>,
    /// The time and the error of the last renewal, if it has failed. Locked during a renewal.
    renewal: tokio::sync::Mutex<Option<(Instant, String)>>,
}

#[derive(Clone)]
struct Token {
    access: Arc<str>,
    renew_at: Option<Instant>,
    expires_at: Option<Instant>,
    refresh: Option<String>,
}

impl Token {
    fn is_old(&self) -> bool {
        self.renew_at.is_some_and(|at| at <= Instant::now())
    }
}

impl AccessTokens {
    fn new(options: OAuthOptions, secret: String, resource: &str, client: Client) -> Self {
        // RFC 8707: a resource has no fragment.
        let resource = resource.split('#').next().map(str::to_owned);
        let credentials = ClientCredentials {
            id: options.client_id.clone(),
            secret: Some(secret),
            auth: options.client_auth,
        };
        let token_endpoint = options.token_url.clone();
        let source = TokenSource {
            token_endpoint,
            revocation_endpoint: None,
            client: credentials,
            resource,
        };
        Self {
            options,
            source,
            client,
            token: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the current token, and asks for one if there is none or it expires soon. An error
    /// has no secrets.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Arc<str>, String> {
        if let Some(token) = self.known(|token| token.renew_at) {
            return Ok(token);
        }
        let Some(unexpired) = self.known(|token| token.expires_at) else {
            return self.renew(Token::is_old).await;
        };
        if self.renewal.try_lock().is_ok() {
            let tokens = self.clone();
            tokio::spawn(async move {
                if let Err(error) = tokens.renew(Token::is_old).await {
                    tracing::warn!(
                        error,
                        "an access token cannot be renewed; it is used until it expires"
                    );
                }
            });
        }
        Ok(unexpired)
    }

    /// Returns another token than one that the MCP server has refused.
    pub(super) async fn replace(&self, refused: &str) -> Result<Arc<str>, String> {
        self.renew(|token| *token.access == *refused).await
    }

    /// Returns the words that must not appear in results.
    pub(super) fn secrets(&self) -> Vec<String> {
        let token = self.token.lock().clone();
        let access = token.iter().map(|token| token.access.to_string());
        let refresh = token.iter().filter_map(|token| token.refresh.clone());
        access.chain(refresh).chain(self.source.client.secret.clone()).collect()
    }

    /// Returns the known token if its `end` is in the future, or if it has no end.
    fn known(&self, end: impl Fn(&Token) -> Option<Instant>) -> Option<Arc<str>> {
        let token = self.token.lock();
        let token =
            token.as_ref().filter(|token| end(token).is_none_or(|at| Instant::now() < at))?;
        Some(token.access.clone())
    }

    async fn renew(&self, is_stale: impl Fn(&Token) -> bool) -> Result<Arc<str>, String> {
        let mut failure = self.renewal.lock().await;
        let known = self.token.lock().clone();
        // Another request may have renewed the token while this one waited.
        if let Some(token) = known.as_ref().filter(|token| !is_stale(token)) {
            return Ok(token.access.clone());
        }
        if let Some((at, error)) = &*failure
            && at.elapsed() < FAILURE_PAUSE
        {
            return Err(error.clone());
        }
        let mut renewed = None;
        if let Some(refresh) = known.and_then(|token| token.refresh) {
            let token =
                self.ask(&[("grant_type", "refresh_token"), ("refresh_token", &refresh)]).await;
            let token = token.inspect_err(|error| {
                tracing::debug!(%error, "the refresh token is refused; the client's credentials are used");
            });
            // RFC 6749, section 6: without a new refresh token, the old one stays valid.
            renewed =
                token.ok().map(|token| Token { refresh: token.refresh.or(Some(refresh)), ..token });
        }
        let token = match renewed {
            Some(token) => Ok(token),
            None => self.ask(&[("grant_type", "client_credentials")]).await,
        };
        let token = token.map_err(|problem| {
            let endpoint = Url::parse(&self.options.token_url).ok();
            let endpoint =
                endpoint.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
            format!("no access token from {endpoint}: {problem}")
        });
        *failure = token.as_ref().err().map(|error| (Instant::now(), error.clone()));
        let token = token?;
        *self.token.lock() = Some(token.clone());
        Ok(token.access)
    }

    async fn ask(&self, grant: &[(&str, &str)]) -> Result<Token, String> {
        let OAuthOptions { scopes, audience, .. } = &self.options;
        let scope = scopes.join(" ");
        let mut parameters: Vec<(&str, &str)> = grant.to_vec();
        parameters.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        parameters.extend(audience.as_deref().map(|audience| ("audience", audience)));
        let sent = Instant::now();
        let token = ask_for_token(&self.client, &self.source, &parameters)
            .await
            .map_err(|refusal| refusal.text)?;
        let lifetime = token.lifetime();
        let margin = |lifetime: Duration| lifetime - RENEWAL_MARGIN.min(lifetime / 5);
        Ok(Token {
            access: token.access_token.into(),
            renew_at: lifetime.and_then(|lifetime| sent.checked_add(margin(lifetime))),
            expires_at: lifetime.and_then(|lifetime| sent.checked_add(lifetime)),
            refresh: token.refresh_token.filter(|token| !token.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{Router, http::StatusCode, routing::post};

    use super::*;

    const SECRET: &str = "s3cret-of-the-client";

    /// Returns the tokens of an authorization server that gives one response.
    async fn tokens(status: u16, response: String) -> Arc<AccessTokens> {
        let respond = move || async move { (StatusCode::from_u16(status).unwrap(), response) };
        tokens_from(Router::new().route("/token", post(respond))).await
    }

    async fn tokens_from(server: Router) -> Arc<AccessTokens> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let token_url = format!("http://{}/token", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, server).await });
        let text =
            format!("token_url = {token_url:?}\nclient_id = \"agui\"\nclient_secret_env = \"X\"");
        let options: OAuthOptions = toml::from_str(&text).unwrap();
        options.check().unwrap();
        let client = upstream::direct_client(&Default::default()).unwrap();
        Arc::new(AccessTokens::new(options, SECRET.to_owned(), "http://localhost/mcp", client))
    }

    #[tokio::test]
    async fn refusals_and_invalid_answers_are_errors_without_secrets() {
        let refusal = format!(r#"{{"error":"invalid_client","error_description":"no\n{SECRET}"}}"#);
        let long =
            format!(r#"{{"access_token":"{}","token_type":"Bearer"}}"#, "x".repeat(64 * 1024));
        for (status, response, expected) in [
            (401, refusal.replace('\n', "\\n"), "401 Unauthorized invalid_client: no [redacted]"),
            (500, "<html>".to_owned(), "500 Internal Server Error"),
            (302, String::new(), "302 Found"),
            (200, "<html>".to_owned(), "its response is not a token response"),
            (
                200,
                r#"{"access_token":"a b","token_type":"bearer"}"#.to_owned(),
                "its token is not a bearer token",
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"mac"}"#.to_owned(),
                "its token is not a bearer token",
            ),
            (200, long, "its response is longer than 65536 bytes"),
        ] {
            let error = tokens(status, response).await.current().await.unwrap_err().to_string();
            assert!(
                error.starts_with("no access token from 127.0.0.1: ") && error.contains(expected),
                "{error}"
            );
            assert!(!error.contains(SECRET));
        }
    }

    /// A token that has to be renewed, and expires after some time.
    fn old_token(expires_in: Duration) -> Token {
        let now = Instant::now();
        Token {
            access: "old".into(),
            renew_at: Some(now),
            expires_at: Some(now + expires_in),
            refresh: None,
        }
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_renewed_is_used_until_it_expires() {
        let tokens = tokens(503, String::new()).await;
        *tokens.token.lock() = Some(old_token(RENEWAL_MARGIN));
        assert_eq!(&*tokens.current().await.unwrap(), "old");
        tokens.replace("old").await.unwrap_err();
        *tokens.token.lock() = Some(old_token(Duration::ZERO));
        tokens.current().await.unwrap_err();
    }

    #[tokio::test]
    async fn a_token_is_used_while_it_is_being_renewed() {
        let asked = Arc::new(tokio::sync::Notify::new());
        let seen = asked.clone();
        let never_answer = move || async move {
            seen.notify_one();
            std::future::pending::<()>().await;
        };
        let tokens = tokens_from(Router::new().route("/token", post(never_answer))).await;
        *tokens.token.lock() = Some(old_token(RENEWAL_MARGIN));
        let begin = Instant::now();
        assert_eq!(&*tokens.current().await.unwrap(), "old");
        asked.notified().await;
        assert_eq!(&*tokens.current().await.unwrap(), "old");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn requests_that_wait_for_a_renewal_share_its_failure() {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let refuse = move || async move {
            counted.fetch_add(1, Ordering::Relaxed);
            StatusCode::SERVICE_UNAVAILABLE
        };
        let tokens = tokens_from(Router::new().route("/token", post(refuse))).await;
        let errors = futures::future::join_all((0..10).map(|_| tokens.current())).await;
        assert!(
            errors
                .iter()
                .all(|error| error.as_ref().is_err_and(|error| error.to_string().contains("503")))
        );
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        // The pause ends.
        if let Some((at, _)) = &mut *tokens.renewal.lock().await {
            *at -= FAILURE_PAUSE;
        }
        tokens.current().await.unwrap_err();
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn the_secrets_are_those_of_the_token_and_of_the_client() {
        let response =
            r#"{"access_token":"token-1","token_type":"Bearer","refresh_token":"refresh-1"}"#;
        let tokens = tokens(200, response.to_owned()).await;
        assert_eq!(&*tokens.current().await.unwrap(), "token-1");
        assert_eq!(tokens.secrets(), ["token-1", "refresh-1", SECRET]);
    }
}
