//! One login, from the link to the tokens. Its steps may come to different servers, which share the store.

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use super::{
    discovery::{client, discover},
    service::{LoginServer, LoginService},
    token_request::{ClientCredentials, ask_for_token, form},
    tokens::{StoredLogin, login_name},
};
use crate::{
    agent::{Connected, LoginError, Logins, OpenedLink, Returned},
    base::text::shortened,
    store::{Millis, now, sealed::ExpectedValue},
};

/// The time for a login.
const LOGIN_TIME: Millis = 10 * 60_000;
const MAX_ERROR_CHARS: usize = 200;
const LINK: &str = "link";
const STATE: &str = "state";

const EXPIRED: LoginError = LoginError::Refused(
    "The link is not valid, or no longer. Go back to the conversation and answer the question there: it is asked again \
     with a new link.",
);
const OTHER_BROWSER: LoginError =
    LoginError::Refused("The link was opened in another browser. Go on there, or ask for a new link.");
const USED: LoginError = LoginError::Refused("This login has ended. Go back to the conversation.");

/// What a link says; sealed, so that only this server makes one.
#[derive(Serialize, Deserialize)]
struct Link {
    owner: String,
    server: String,
    id: String,
    until: Millis,
}

/// A login under way, in the store.
#[derive(Serialize, Deserialize)]
struct Flow {
    /// The digest of the cookie of the browser that has opened the link.
    browser: String,
    stage: Stage,
}

#[derive(Serialize, Deserialize)]
enum Stage {
    Opened,
    Sent(Box<Sent>),
    Used,
}

/// What the return of the browser is checked against, and the code is changed with.
#[derive(Serialize, Deserialize)]
struct Sent {
    verifier: String,
    issuer: String,
    names_issuer: bool,
    client: ClientCredentials,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    resource: String,
}

impl LoginService {
    /// Returns a new link for an owner; `None` on a server that browsers cannot reach, or that stores nothing.
    pub(super) fn link(&self, owner: &str, server: &str) -> Option<String> {
        let (owner, server) = (owner.to_owned(), server.to_owned());
        let link = Link { owner, server, id: Uuid::new_v4().simple().to_string(), until: now() + LOGIN_TIME };
        let base = self.base().filter(|base| !base.is_empty())?;
        Some(format!("{base}/connections/start?link={}", self.sealer.seal_text(LINK, &link)?))
    }

    fn redirect_uri(&self) -> String {
        format!("{}/connections/callback", self.base().unwrap_or_default())
    }

    /// Reads a link that is valid.
    fn read_link(&self, kind: &str, text: &str) -> Result<Link, LoginError> {
        self.sealer.open_text(kind, text).filter(|link: &Link| link.until >= now()).ok_or(EXPIRED)
    }

    /// Reads the login of a link that this browser has opened, with its version.
    async fn flow(&self, link: &Link, browser: &str) -> Result<Option<(Flow, i64)>, LoginError> {
        let Some((flow, version)) = self.read::<Flow>(&link.owner, &flow_name(&link.id)).await? else {
            return Ok(None);
        };
        if !bool::from(flow.browser.as_bytes().ct_eq(digest(browser).as_bytes())) {
            return Err(OTHER_BROWSER);
        }
        if matches!(flow.stage, Stage::Used) { Err(USED) } else { Ok(Some((flow, version))) }
    }

    async fn set_stage(
        &self,
        link: &Link,
        browser: &str,
        stage: Stage,
        expected: ExpectedValue,
    ) -> Result<bool, LoginError> {
        let flow = Flow { browser: digest(browser), stage };
        // Longer than the link, which must not be opened again.
        let until = Some(link.until + LOGIN_TIME);
        Ok(self.write(&link.owner, &flow_name(&link.id), &flow, until, expected).await?.is_some())
    }

    async fn open_link(&self, text: &str, browser: &str) -> Result<(Link, i64), LoginError> {
        let link = self.read_link(LINK, text)?;
        if self.flow(&link, browser).await?.is_none() {
            self.set_stage(&link, browser, Stage::Opened, ExpectedValue::Absent).await?;
        }
        // Another browser may have been faster.
        let (_, version) = self.flow(&link, browser).await?.ok_or(EXPIRED)?;
        Ok((link, version))
    }

    /// Changes a code for tokens, and stores them.
    async fn connect(&self, server: &LoginServer, link: &Link, sent: Sent, code: &str) -> Result<(), LoginError> {
        let redirect_uri = self.redirect_uri();
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &*redirect_uri),
            ("code_verifier", &*sent.verifier),
            ("resource", &*sent.resource),
        ];
        let token = ask_for_token(&server.http, &sent.token_endpoint, &sent.client, &grant).await;
        let token = token.map_err(|refusal| LoginError::Failed(format!("no token: {}", refusal.text)))?;
        let mut login = StoredLogin {
            id: link.id.clone(),
            access: String::new(),
            refresh: None,
            renew_at: None,
            expires_at: None,
            scope: None,
            since: now(),
            client: sent.client,
            token_endpoint: sent.token_endpoint,
            revocation_endpoint: sent.revocation_endpoint,
            resource: sent.resource,
            renewing_until: 0,
        };
        login.take(token);
        self.write(&link.owner, &login_name(&link.server), &login, None, ExpectedValue::Any).await?;
        Ok(())
    }
}

#[async_trait]
impl Logins for LoginService {
    fn base_url(&self) -> &str {
        self.base().unwrap_or_default()
    }

    async fn open(&self, link: &str, browser: &str) -> Result<OpenedLink, LoginError> {
        let (Link { owner, server, .. }, _) = self.open_link(link, browser).await?;
        let host = self.server(&server)?.url.host_str().unwrap_or_default().to_owned();
        Ok(OpenedLink { server, host, owner })
    }

    async fn authorize(&self, link: &str, browser: &str) -> Result<String, LoginError> {
        let (link, version) = self.open_link(link, browser).await?;
        let server = self.server(&link.server)?;
        let found = discover(server).await?;
        let redirect_uri = self.redirect_uri();
        let client = client(server, &found.metadata, &redirect_uri).await?;
        let verifier = [Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string()].concat();
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let state = self.sealer.seal_text(STATE, &link).ok_or(EXPIRED)?;
        let scope = found.scopes.join(" ");
        let mut url = server.check(&found.metadata.authorization_endpoint)?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource);
        if !scope.is_empty() {
            url.query_pairs_mut().append_pair("scope", &scope);
        }
        if found.scopes.iter().any(|scope| scope == "offline_access") {
            // OpenID Connect gives a refresh token only then.
            url.query_pairs_mut().append_pair("prompt", "consent");
        }
        let metadata = found.metadata;
        // A wrong endpoint for revocation is not worth a failure.
        let revocation_endpoint = metadata.revocation_endpoint.filter(|url| server.check(url).is_ok());
        let sent = Sent {
            verifier,
            issuer: metadata.issuer,
            names_issuer: metadata.names_issuer,
            client,
            token_endpoint: metadata.token_endpoint,
            revocation_endpoint,
            resource: found.resource,
        };
        let stage = Stage::Sent(Box::new(sent));
        let is_stored = self.set_stage(&link, browser, stage, ExpectedValue::Version(version)).await?;
        if is_stored { Ok(url.into()) } else { Err(USED) }
    }

    async fn finish(&self, returned: Returned, browser: &str) -> Result<String, LoginError> {
        let link = self.read_link(STATE, &returned.state)?;
        let (flow, version) = self.flow(&link, browser).await?.ok_or(EXPIRED)?;
        let Stage::Sent(sent) = flow.stage else { return Err(EXPIRED) };
        if !self.set_stage(&link, browser, Stage::Used, ExpectedValue::Version(version)).await? {
            return Err(USED);
        }
        let is_of_issuer = match &returned.iss {
            Some(issuer) => *issuer == sent.issuer,
            None => !sent.names_issuer,
        };
        if !is_of_issuer {
            return Err(LoginError::Failed("another authorization server has answered".to_owned()));
        }
        let server = self.server(&link.server)?;
        let Some(code) = returned.code.filter(|_| returned.error.is_none()) else {
            let error = returned.error.unwrap_or_else(|| "it gives no code".to_owned());
            let text = format!("{error} {}", returned.error_description.unwrap_or_default());
            return Err(LoginError::Failed(shortened(text.replace(char::is_control, " ").trim(), MAX_ERROR_CHARS)));
        };
        self.connect(server, &link, *sent, &code).await?;
        tracing::info!(server = link.server, principal = link.owner, "a person has connected an account");
        Ok(link.server)
    }

    async fn list(&self, owner: &str) -> Result<Vec<Connected>, LoginError> {
        let mut all = Vec::new();
        for server in self.servers.keys() {
            if let Some((login, _)) = self.read::<StoredLogin>(owner, &login_name(server)).await? {
                let ends_at = login.expires_at.filter(|_| login.refresh.is_none());
                all.push(Connected { server: server.clone(), since: login.since, scope: login.scope, ends_at });
            }
        }
        Ok(all)
    }

    async fn revoke(&self, owner: &str, server: &str) -> Result<(), LoginError> {
        let name = login_name(server);
        let login = self.read::<StoredLogin>(owner, &name).await?;
        self.stored()?.delete_sealed(owner, Some(&name), None).await?;
        let endpoint = login.and_then(|(login, _)| Some((login.revocation_endpoint.clone()?, login)));
        if let (Some((endpoint, login)), Ok(server)) = (endpoint, self.server(server)) {
            let (http, issuer) = (server.http.clone(), Url::parse(&endpoint).ok());
            // Who revokes does not wait for another server.
            tokio::spawn(async move {
                for token in login.refresh.iter().chain([&login.access]) {
                    let request = form(&http, &endpoint, &login.client, &[("token", token)]);
                    let sent = request.timeout(std::time::Duration::from_secs(10)).send().await;
                    if !sent.is_ok_and(|response| response.status().is_success()) {
                        let host = issuer.as_ref().and_then(Url::host_str);
                        tracing::warn!(
                            host,
                            "an authorization server does not revoke a token, which is forgotten here"
                        );
                    }
                }
            });
        }
        Ok(())
    }
}

fn flow_name(id: &str) -> String {
    format!("flow:{id}")
}

fn digest(browser: &str) -> String {
    crate::base::text::hex(&Sha256::digest(browser))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        store::{MemoryStore, Store},
        tools::login::test_logins::replica,
    };

    fn text(error: LoginError) -> String {
        error.to_string()
    }

    #[tokio::test]
    async fn a_link_ends_after_ten_minutes_and_is_for_one_browser_and_one_login() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (login, other) = (replica(&store).service, replica(&store).service);
        let url = login.link("key:ann", "notes").unwrap();
        let link = url.strip_prefix("http://localhost/connections/start?link=").unwrap();
        let opened = login.open(link, "first").await.unwrap();
        assert_eq!((&*opened.owner, &*opened.server, &*opened.host), ("key:ann", "notes", "127.0.0.1"));
        // Also on another server of the store.
        other.open(link, "first").await.unwrap();
        assert!(text(other.open(link, "second").await.unwrap_err()).contains("opened in another browser"));
        assert!(text(login.authorize(link, "second").await.unwrap_err()).contains("opened in another browser"));
        let read = login.read_link(LINK, link).unwrap();
        assert!((LOGIN_TIME - 60_000..=LOGIN_TIME).contains(&(read.until - now())));
        login.set_stage(&read, "first", Stage::Used, ExpectedValue::Any).await.unwrap();
        assert!(text(login.open(link, "first").await.unwrap_err()).contains("has ended"));
        let seal = |kind, until| {
            let link = Link { owner: "key:ann".to_owned(), server: "notes".to_owned(), id: "2".to_owned(), until };
            login.sealer.seal_text(kind, &link).unwrap()
        };
        for wrong in [seal(LINK, now() - 1), seal(STATE, now() + 1000), "x".to_owned(), String::new()] {
            assert!(text(login.open(&wrong, "first").await.unwrap_err()).contains("not valid, or no longer"));
        }
        let returned = |state: String| Returned { state, code: Some("c".to_owned()), ..Returned::default() };
        for wrong in [seal(LINK, now() + 1000), seal(STATE, now() - 1), seal(STATE, now() + 1000)] {
            assert!(
                text(login.finish(returned(wrong), "first").await.unwrap_err()).contains("not valid, or no longer")
            );
        }
    }

    #[tokio::test]
    async fn a_code_is_taken_once_from_the_issuer_that_was_asked() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let login = replica(&store).service;
        let sent = |names_issuer| Sent {
            verifier: "v".to_owned(),
            issuer: "https://id.test".to_owned(),
            names_issuer,
            client: ClientCredentials { id: "c".to_owned(), secret: None, auth: Default::default() },
            token_endpoint: "http://127.0.0.1:9/token".to_owned(),
            revocation_endpoint: None,
            resource: "http://127.0.0.1:9/mcp".to_owned(),
        };
        for (names_issuer, iss, expected) in [
            (true, None, "another authorization server has answered"),
            (true, Some("https://evil.test"), "another authorization server has answered"),
            (false, Some("https://evil.test"), "another authorization server has answered"),
            (true, Some("https://id.test"), "no token"),
            (false, None, "no token"),
        ] {
            let url = login.link("key:ann", "notes").unwrap();
            let (_, text_of_link) = url.split_once("link=").unwrap();
            let link = login.read_link(LINK, text_of_link).unwrap();
            let stage = Stage::Sent(Box::new(sent(names_issuer)));
            login.set_stage(&link, "b", stage, ExpectedValue::Absent).await.unwrap();
            let state = login.sealer.seal_text(STATE, &link).unwrap();
            let iss = iss.map(str::to_owned);
            let returned = || Returned {
                state: state.clone(),
                code: Some("c".to_owned()),
                iss: iss.clone(),
                ..Returned::default()
            };
            assert!(text(login.finish(returned(), "other").await.unwrap_err()).contains("another browser"));
            assert!(text(login.finish(returned(), "b").await.unwrap_err()).contains(expected));
            assert!(text(login.finish(returned(), "b").await.unwrap_err()).contains("has ended"));
        }
        assert!(login.list("key:ann").await.unwrap().is_empty());
    }
}
