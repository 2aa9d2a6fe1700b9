//! One login, from the link to the tokens. Its steps may come to different servers, which share the store.

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use super::{
    authorization::Authorization,
    service::LoginService,
    token_request::{ask_for_token, form},
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
    /// The return of the browser is checked against it, and the code is changed with it.
    Sent {
        verifier: String,
        authorization: Box<Authorization>,
    },
    Used,
}

impl LoginService {
    /// Returns a new link for an owner; `None` on a server that browsers cannot reach.
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
}

#[async_trait]
impl Logins for LoginService {
    fn base_url(&self) -> &str {
        self.base().unwrap_or_default()
    }

    async fn open(&self, link: &str, browser: &str) -> Result<OpenedLink, LoginError> {
        let (Link { owner, server, .. }, _) = self.open_link(link, browser).await?;
        let host = self.server(&server)?.host.clone();
        Ok(OpenedLink { server, host, owner })
    }

    async fn authorize(&self, link: &str, browser: &str) -> Result<String, LoginError> {
        let (link, version) = self.open_link(link, browser).await?;
        let redirect_uri = self.redirect_uri();
        let authorization = self.server(&link.server)?.authorization(&redirect_uri).await?;
        let verifier = [Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string()].concat();
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let state = self.sealer.seal_text(STATE, &link).ok_or(EXPIRED)?;
        let url = authorization.url(&redirect_uri, &state, &challenge)?;
        let stage = Stage::Sent { verifier, authorization: Box::new(authorization) };
        let is_stored = self.set_stage(&link, browser, stage, ExpectedValue::Version(version)).await?;
        if is_stored { Ok(url) } else { Err(USED) }
    }

    async fn finish(&self, returned: Returned, browser: &str) -> Result<String, LoginError> {
        let link = self.read_link(STATE, &returned.state)?;
        let (flow, version) = self.flow(&link, browser).await?.ok_or(EXPIRED)?;
        let Stage::Sent { verifier, authorization } = flow.stage else { return Err(EXPIRED) };
        if !self.set_stage(&link, browser, Stage::Used, ExpectedValue::Version(version)).await? {
            return Err(USED);
        }
        if !authorization.is_issuer(returned.iss.as_deref()) {
            return Err(LoginError::Failed("another authorization server has answered".to_owned()));
        }
        let Some(code) = returned.code.filter(|_| returned.error.is_none()) else {
            let error = returned.error.unwrap_or_else(|| "it gives no code".to_owned());
            let text = format!("{error} {}", returned.error_description.unwrap_or_default());
            return Err(LoginError::Failed(shortened(text.replace(char::is_control, " ").trim(), MAX_ERROR_CHARS)));
        };
        let (redirect_uri, source) = (self.redirect_uri(), authorization.source);
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", &*redirect_uri),
            ("code_verifier", &*verifier),
        ];
        let token = ask_for_token(&self.server(&link.server)?.http, &source, &grant).await;
        let token = token.map_err(|refusal| LoginError::Failed(format!("no token: {}", refusal.text)))?;
        let login = StoredLogin::new(link.id, source, token);
        self.write(&link.owner, &login_name(&link.server), &login, None, ExpectedValue::Any).await?;
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
        let endpoint = login.and_then(|(login, _)| Some((login.source.revocation_endpoint.clone()?, login)));
        if let (Some((endpoint, login)), Ok(server)) = (endpoint, self.server(server)) {
            let (http, host) = (server.http.clone(), server.host.clone());
            let client = server.client_of(&login.source).clone();
            // Who revokes does not wait for another server.
            tokio::spawn(async move {
                for token in login.refresh.iter().chain([&login.access]) {
                    let request = form(&http, &endpoint, &client, &[("token", token)]);
                    let sent = request.timeout(std::time::Duration::from_secs(10)).send().await;
                    if !sent.is_ok_and(|response| response.status().is_success()) {
                        tracing::warn!(host, "a token for it is not revoked, and is forgotten here");
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
        tools::login::test_logins::{replica, token_source},
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
        let authorization = |issuer: Option<&str>, names_issuer| Authorization {
            endpoint: "http://127.0.0.1:9/auth".to_owned(),
            scopes: vec![],
            issuer: issuer.map(str::to_owned),
            names_issuer,
            source: token_source("http://127.0.0.1:9/token".to_owned()),
        };
        let known = Some("https://id.test");
        for (issuer, names_issuer, iss, expected) in [
            (known, true, None, "another authorization server has answered"),
            (known, true, Some("https://evil.test"), "another authorization server has answered"),
            (known, false, Some("https://evil.test"), "another authorization server has answered"),
            (known, true, Some("https://id.test"), "no token"),
            (known, false, None, "no token"),
            (None, false, Some("https://id.test"), "no token"),
        ] {
            let url = login.link("key:ann", "notes").unwrap();
            let (_, text_of_link) = url.split_once("link=").unwrap();
            let link = login.read_link(LINK, text_of_link).unwrap();
            let authorization = Box::new(authorization(issuer, names_issuer));
            let stage = Stage::Sent { verifier: "v".to_owned(), authorization };
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
