//! One login, from the link to the tokens. Its steps may come to different servers, which share the store.

use std::sync::Arc;

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
use agui_agent::host::{ConnectedAccount, LoginError, Logins, OpenedLink, Returned};
use agui_base::{complete_on_drop::CompleteOnDrop, text::short_line};
use agui_store::{Millis, host::now, sealed::ExpectedValue};

/// The time for a login.
const LOGIN_TIME: Millis = 10 * 60_000;
const LINK: &str = "link";
const STATE: &str = "state";

const EXPIRED: LoginError = LoginError::Refused(
    "The link is not valid, or no longer. Go back to the conversation and answer the question there: it is asked again \
     with a new link.",
);
const OTHER_BROWSER: LoginError = LoginError::Refused(
    "The link was opened in another browser. Go on there, or ask for a new link.",
);
const USED: LoginError = LoginError::Refused("This login has ended. Go back to the conversation.");
const NOT_SHOWN: LoginError = LoginError::Refused(
    "The button of this page was used before, or never shown here. Open the link again, and press it.",
);
const BUSY: LoginError = LoginError::Refused(
    "The authorization server is being asked. Wait a moment, and open the link again.",
);

/// The content of a link, which is sealed, so that only this server can make one.
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
    /// The button was pressed, and the authorization server is being found. This server registers
    /// at most one client for a link.
    Asking,
    /// The browser was sent to the authorization server. Its return is checked against these
    /// values, with which the code is exchanged.
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
        let link = Link {
            owner,
            server,
            id: Uuid::new_v4().simple().to_string(),
            until: now() + LOGIN_TIME,
        };
        let base = self.base().filter(|base| !base.is_empty())?;
        Some(format!("{base}/accounts/start?link={}", self.sealer.seal_text(LINK, &link)?))
    }

    /// Reads a link that is valid.
    fn read_link(&self, kind: &str, text: &str) -> Result<Link, LoginError> {
        self.sealer.open_text(kind, text).filter(|link: &Link| link.until >= now()).ok_or(EXPIRED)
    }

    /// Reads the login of a link that this browser has opened, with its version.
    async fn flow(&self, link: &Link, browser: &str) -> Result<Option<(Flow, i64)>, LoginError> {
        let Some((flow, version)) = self.read::<Flow>(&link.owner, &flow_name(&link.id)).await?
        else {
            return Ok(None);
        };
        if !bool::from(flow.browser.as_bytes().ct_eq(digest(browser).as_bytes())) {
            return Err(OTHER_BROWSER);
        }
        if matches!(flow.stage, Stage::Used) { Err(USED) } else { Ok(Some((flow, version))) }
    }

    /// Returns the new version; `None` if the login was changed by another request.
    async fn set_stage(
        &self,
        link: &Link,
        browser: &str,
        stage: Stage,
        expected: ExpectedValue,
    ) -> Result<Option<i64>, LoginError> {
        let flow = Flow { browser: digest(browser), stage };
        // Kept longer than the link, which must not be opened again.
        let until = Some(link.until + LOGIN_TIME);
        self.write(&link.owner, &flow_name(&link.id), &flow, until, expected).await
    }

    /// Returns the URL at which a login begins, and stores its stage. `version` is the version of
    /// the login whose button was pressed.
    async fn begin(
        &self,
        link: Link,
        browser: &str,
        stage: Stage,
        version: i64,
    ) -> Result<String, LoginError> {
        // From here on, no button works until a page is shown again.
        let asking =
            self.set_stage(&link, browser, Stage::Asking, ExpectedValue::Version(version)).await?;
        let asking = ExpectedValue::Version(asking.ok_or(NOT_SHOWN)?);
        let found = match stage {
            Stage::Sent { authorization, .. } => Ok(*authorization),
            _ => self.server(&link.server)?.authorization(self.base_url()).await,
        };
        let authorization = match found {
            Ok(found) => found,
            Err(error) => {
                self.set_stage(&link, browser, Stage::Used, asking).await?;
                return Err(error);
            }
        };
        let verifier =
            [Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string()].concat();
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let state = self.sealer.seal_text(STATE, &link).ok_or(EXPIRED)?;
        let url = authorization.url(self.base_url(), &state, &challenge)?;
        let stage = Stage::Sent { verifier, authorization: Box::new(authorization) };
        self.set_stage(&link, browser, stage, asking).await?.map(|_| url).ok_or(USED)
    }
}

#[async_trait]
impl Logins for LoginService {
    fn base_url(&self) -> &str {
        self.base().unwrap_or_default()
    }

    async fn open(&self, link: &str, browser: &str) -> Result<OpenedLink, LoginError> {
        let link = self.read_link(LINK, link)?;
        if self.flow(&link, browser).await?.is_none() {
            self.set_stage(&link, browser, Stage::Opened, ExpectedValue::Absent).await?;
        }
        // Another browser may have been faster.
        let (_, version) = self.flow(&link, browser).await?.ok_or(EXPIRED)?;
        let host = self.server(&link.server)?.host.clone();
        Ok(OpenedLink {
            server: link.server,
            host,
            owner: link.owner,
            button: button(browser, version),
        })
    }

    async fn authorize(
        self: Arc<Self>,
        link: &str,
        pressed: &str,
        browser: &str,
    ) -> Result<String, LoginError> {
        let link = self.read_link(LINK, link)?;
        let (flow, version) = self.flow(&link, browser).await?.ok_or(NOT_SHOWN)?;
        if matches!(flow.stage, Stage::Asking) {
            return Err(BUSY);
        }
        if !bool::from(button(browser, version).as_bytes().ct_eq(pressed.as_bytes())) {
            return Err(NOT_SHOWN);
        }
        let browser = browser.to_owned();
        // This continues without the browser: a second press ends the browser's first request.
        CompleteOnDrop::new(async move { self.begin(link, &browser, flow.stage, version).await })
            .await
    }

    async fn finish(
        &self,
        returned: Returned,
        callback: Option<&str>,
        browser: &str,
    ) -> Result<String, LoginError> {
        let link = self.read_link(STATE, &returned.state)?;
        let (flow, version) = self.flow(&link, browser).await?.ok_or(EXPIRED)?;
        let Stage::Sent { verifier, authorization } = flow.stage else { return Err(EXPIRED) };
        self.set_stage(&link, browser, Stage::Used, ExpectedValue::Version(version))
            .await?
            .ok_or(USED)?;
        if !authorization.is_issuer(returned.iss.as_deref(), callback) {
            return Err(LoginError::Failed("another authorization server has answered".to_owned()));
        }
        let Some(code) = returned.code.filter(|_| returned.error.is_none()) else {
            let error = returned.error.unwrap_or_else(|| "it gives no code".to_owned());
            let text = format!("{error} {}", returned.error_description.unwrap_or_default());
            return Err(LoginError::Failed(short_line(text.replace(char::is_control, " ").trim())));
        };
        let (redirect_uri, source) =
            (authorization.redirect_uri(self.base_url()), authorization.source);
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", &*redirect_uri),
            ("code_verifier", &*verifier),
        ];
        let token = ask_for_token(&self.server(&link.server)?.http, &source, &grant).await;
        let token =
            token.map_err(|refusal| LoginError::Failed(format!("no token: {}", refusal.text)))?;
        let login = StoredLogin::new(link.id, source, token);
        self.write(&link.owner, &login_name(&link.server), &login, None, ExpectedValue::Any)
            .await?;
        tracing::info!(
            server = link.server,
            principal = link.owner,
            "a person has connected an account"
        );
        Ok(link.server)
    }

    async fn list(&self, owner: &str) -> Result<Vec<ConnectedAccount>, LoginError> {
        let mut all = Vec::new();
        for server in self.servers.keys() {
            if let Some((login, _)) = self.read::<StoredLogin>(owner, &login_name(server)).await? {
                let ends_at = login.expires_at.filter(|_| login.refresh.is_none());
                all.push(ConnectedAccount {
                    server: server.clone(),
                    since: login.since,
                    scope: login.scope,
                    ends_at,
                });
            }
        }
        Ok(all)
    }

    async fn revoke(&self, owner: &str, server: &str) -> Result<(), LoginError> {
        let name = login_name(server);
        let login = self.read::<StoredLogin>(owner, &name).await?;
        self.stored()?.delete_sealed(owner, Some(&name), None).await?;
        let endpoint =
            login.and_then(|(login, _)| Some((login.source.revocation_endpoint.clone()?, login)));
        if let (Some((endpoint, login)), Ok(server)) = (endpoint, self.server(server)) {
            let (http, host) = (server.http.clone(), server.host.clone());
            let client = server.client_of(&login.source).clone();
            // The revoking request does not wait for the other server.
            tokio::spawn(async move {
                for token in login.refresh.iter().chain([&login.access]) {
                    let request = form(&http, &endpoint, &client, &[("token", token)]);
                    let sent = request.timeout(std::time::Duration::from_secs(10)).send().await;
                    if !sent.is_ok_and(|response| response.status().is_success()) {
                        tracing::warn!(
                            host,
                            "a token for it is not revoked, and is forgotten here"
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

/// Returns the value that a page's button sends. Only the browser with the cookie can know it, and
/// each press of a button changes the version of the login.
fn button(browser: &str, version: i64) -> String {
    digest(&format!("{browser} {version}"))
}

fn digest(text: &str) -> String {
    agui_base::text::hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::{
        authorization::callback_of,
        test_logins::{replica, token_source},
    };
    use agui_store::{MemoryStore, Store};

    fn text(error: LoginError) -> String {
        error.to_string()
    }

    #[tokio::test]
    async fn a_link_ends_after_ten_minutes_and_is_for_one_browser_and_one_login() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (login, other) = (replica(&store).service, replica(&store).service);
        let url = login.link("key:ann", "notes").unwrap();
        let link = url.strip_prefix("http://localhost/accounts/start?link=").unwrap();
        let press = |button: &str, browser: &'static str| {
            let (login, button) = (login.clone(), button.to_owned());
            async move { text(login.authorize(link, &button, browser).await.unwrap_err()) }
        };
        // A browser that was shown no page knows no button.
        assert!(press("", "first").await.contains("never shown here"));
        let opened = login.open(link, "first").await.unwrap();
        for wrong in ["", "1", &button("second", 0)] {
            assert!(press(wrong, "first").await.contains("never shown here"));
        }
        assert_eq!(
            (&*opened.owner, &*opened.server, &*opened.host),
            ("key:ann", "notes", "127.0.0.1")
        );
        // Another server of the store does the same.
        other.open(link, "first").await.unwrap();
        assert!(
            text(other.open(link, "second").await.unwrap_err())
                .contains("opened in another browser")
        );
        assert!(press(&opened.button, "second").await.contains("opened in another browser"));
        let read = login.read_link(LINK, link).unwrap();
        assert!((LOGIN_TIME - 60_000..=LOGIN_TIME).contains(&(read.until - now())));
        login.set_stage(&read, "first", Stage::Used, ExpectedValue::Any).await.unwrap();
        assert!(text(login.open(link, "first").await.unwrap_err()).contains("has ended"));
        let seal = |kind, until| {
            let link = Link {
                owner: "key:ann".to_owned(),
                server: "notes".to_owned(),
                id: "2".to_owned(),
                until,
            };
            login.sealer.seal_text(kind, &link).unwrap()
        };
        for wrong in
            [seal(LINK, now() - 1), seal(STATE, now() + 1000), "x".to_owned(), String::new()]
        {
            assert!(
                text(login.open(&wrong, "first").await.unwrap_err())
                    .contains("not valid, or no longer")
            );
        }
        let returned =
            |state: String| Returned { state, code: Some("c".to_owned()), ..Returned::default() };
        for wrong in [seal(LINK, now() + 1000), seal(STATE, now() - 1), seal(STATE, now() + 1000)] {
            let error = text(login.finish(returned(wrong), None, "first").await.unwrap_err());
            assert!(error.contains("not valid, or no longer"));
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
            callback: issuer.map(callback_of),
            source: token_source("http://127.0.0.1:9/token".to_owned()),
        };
        let (known, evil, other) =
            (Some("https://id.test"), Some("https://evil.test"), "another authorization server");
        for (issuer, names_issuer, iss, callback, expected) in [
            (known, true, None, known, other),
            (known, true, evil, known, other),
            (known, false, evil, known, other),
            (known, true, known, known, "no token"),
            (known, false, None, known, "no token"),
            (None, false, known, None, "no token"),
            // The address belongs to another server.
            (known, false, None, evil, other),
            (known, true, known, None, other),
            (None, false, None, known, other),
        ] {
            let url = login.link("key:ann", "notes").unwrap();
            let (_, text_of_link) = url.split_once("link=").unwrap();
            let link = login.read_link(LINK, text_of_link).unwrap();
            let authorization = Box::new(authorization(issuer, names_issuer));
            let stage = Stage::Sent { verifier: "v".to_owned(), authorization };
            login.set_stage(&link, "b", stage, ExpectedValue::Absent).await.unwrap();
            let state = login.sealer.seal_text(STATE, &link).unwrap();
            let iss = iss.map(str::to_owned);
            let callback = callback.map(callback_of);
            let finish = async |browser| {
                let (code, state) = (Some("c".to_owned()), state.clone());
                let returned = Returned { state, code, iss: iss.clone(), ..Returned::default() };
                text(login.finish(returned, callback.as_deref(), browser).await.unwrap_err())
            };
            assert!(finish("other").await.contains("another browser"));
            assert!(finish("b").await.contains(expected));
            assert!(finish("b").await.contains("has ended"));
        }
        assert!(login.list("key:ann").await.unwrap().is_empty());
    }
}
