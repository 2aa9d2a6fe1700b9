//! The tokens of one person at one server: read from the store, and renewed there by one server at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    authorization::TokenSource,
    service::PersonLogin,
    token_request::{TokenResponse, ask_for_token},
};
use agui_agent::host::LoginError;
use agui_base::complete_on_drop::CompleteOnDrop;
use agui_store::{Millis, host::now, sealed::ExpectedValue};

/// A token is renewed this long before it ends, or when a fifth of its time is left if that is later.
const RENEWAL_MARGIN: Millis = 60_000;
/// The time that one server has to renew a token before another one tries.
const RENEWAL_TIME: Millis = 40_000;
/// The time between two reads of a token that another server renews.
const RENEWAL_POLL: Duration = Duration::from_millis(200);

/// A login, as it is sealed in the store.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// Differs after each login, and stays after a renewal.
    pub(super) id: String,
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) renew_at: Option<Millis>,
    pub(super) expires_at: Option<Millis>,
    pub(super) scope: Option<String>,
    pub(super) since: Millis,
    pub(super) source: TokenSource,
    /// The end of the time that one server has to renew the token.
    pub(super) renewing_until: Millis,
}

impl StoredLogin {
    pub(super) fn new(id: String, source: TokenSource, token: TokenResponse) -> Self {
        let mut login = Self {
            id,
            access: String::new(),
            refresh: None,
            renew_at: None,
            expires_at: None,
            scope: None,
            since: now(),
            source,
            renewing_until: 0,
        };
        login.take(token);
        login
    }

    /// Takes the tokens of a response.
    fn take(&mut self, token: TokenResponse) {
        let lifetime = token
            .lifetime()
            .map(|time| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX / 2));
        self.expires_at = lifetime.map(|lifetime| now() + lifetime);
        self.renew_at =
            lifetime.map(|lifetime| now() + lifetime - RENEWAL_MARGIN.min(lifetime / 5));
        self.access = token.access_token;
        // RFC 6749, section 6: without a new refresh token, the old one stays valid.
        self.refresh =
            token.refresh_token.filter(|token| !token.is_empty()).or(self.refresh.take());
        self.scope = token.scope.or(self.scope.take());
        self.renewing_until = 0;
    }

    fn is_usable(&self, refused: Option<&str>) -> bool {
        self.expires_at.is_none_or(|at| now() < at) && refused != Some(&self.access)
    }

    fn is_fresh(&self, refused: Option<&str>) -> bool {
        self.is_usable(refused) && self.renew_at.is_none_or(|at| now() < at)
    }
}

pub(super) fn login_name(server: &str) -> String {
    format!("login:{server}")
}

impl PersonLogin {
    /// Returns the id that tells the owner's login from earlier ones; `None` without a login.
    pub async fn id(&self, owner: &str) -> Option<String> {
        let login = self.service.read::<StoredLogin>(owner, &login_name(&self.server)).await;
        let login = login.inspect_err(
            |error| tracing::warn!(server = &*self.server, %error, "no login can be read"),
        );
        login.ok().flatten().map(|(login, _)| login.id)
    }

    /// Renews a token. `version` is the stored version that reserves the renewal for this server.
    async fn renew(
        self,
        owner: String,
        mut stored: StoredLogin,
        version: i64,
        refresh: String,
        refused: Option<String>,
    ) -> Result<Option<StoredLogin>, LoginError> {
        let Self { service, server } = self;
        let (name, at) = (login_name(&server), service.server(&server)?);
        stored.source.client = at.client_of(&stored.source).clone();
        let grant = [("grant_type", "refresh_token"), ("refresh_token", &*refresh)];
        let failure = match ask_for_token(&at.http, &stored.source, &grant).await {
            Ok(token) => {
                stored.take(token);
                None
            }
            Err(refusal) if refusal.is_invalid_grant => {
                tracing::info!(
                    server = &*server,
                    why = refusal.text,
                    "the login of a person has ended"
                );
                service.stored()?.delete_sealed(&owner, Some(&name), Some(version)).await?;
                return Ok(None);
            }
            Err(refusal) => {
                stored.renewing_until = 0;
                Some(refusal.text)
            }
        };
        let written =
            service.write(&owner, &name, &stored, None, ExpectedValue::Version(version)).await?;
        match failure {
            // During the renewal the account was disconnected, or the person logged in again.
            None if written.is_none() => Ok(None),
            Some(text) if !stored.is_usable(refused.as_deref()) => {
                Err(LoginError::Failed(format!("no access token: {text}")))
            }
            _ => Ok(Some(stored)),
        }
    }
}

/// The tokens of a person at a server.
pub struct PersonTokens {
    /// Asks for a login.
    pub login: PersonLogin,
    /// `None` for the session without a login, which has no tokens.
    owner: Option<Arc<str>>,
    known: Mutex<Option<StoredLogin>>,
    is_refused: AtomicBool,
}

impl PersonTokens {
    pub fn new(login: PersonLogin, owner: Option<Arc<str>>) -> Self {
        Self { login, owner, known: Mutex::default(), is_refused: AtomicBool::new(false) }
    }

    /// Returns the current token; `None` if the person has to log in.
    pub async fn current(&self) -> Result<Option<Arc<str>>, String> {
        let known = self
            .known
            .lock()
            .as_ref()
            .filter(|login| login.is_fresh(None))
            .map(|login| login.access.as_str().into());
        if known.is_some() { Ok(known) } else { self.renew(None).await }
    }

    /// Replaces a token that the server has refused; `None` if the person has to log in.
    pub async fn replace(&self, refused: &str) -> Result<Option<Arc<str>>, String> {
        self.renew(Some(refused)).await
    }

    /// Notes whether the server wants a login that this person does not have.
    pub fn set_refused(&self, is_refused: bool) {
        self.is_refused.store(is_refused, Ordering::Relaxed);
    }

    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Returns the words that must not appear in results.
    pub fn secrets(&self) -> Vec<String> {
        let known = self.known.lock();
        let words = known.iter().flat_map(|login| {
            [Some(&login.access), login.refresh.as_ref(), login.source.client.secret.as_ref()]
        });
        words.flatten().cloned().collect()
    }

    async fn renew(&self, refused: Option<&str>) -> Result<Option<Arc<str>>, String> {
        let Some(owner) = &self.owner else { return Ok(None) };
        let login = self.renewed(owner, refused).await.map_err(|error| match error {
            LoginError::Store(error) => format!("the login cannot be read: {error:?}"),
            error => error.to_string(),
        })?;
        let token = login.as_ref().map(|login| login.access.as_str().into());
        *self.known.lock() = login;
        Ok(token)
    }

    /// Returns the login with a usable token. Among several servers and calls that need a new
    /// token, one asks for it.
    async fn renewed(
        &self,
        owner: &str,
        refused: Option<&str>,
    ) -> Result<Option<StoredLogin>, LoginError> {
        let (service, name) = (&self.login.service, login_name(&self.login.server));
        loop {
            let Some((login, version)) = service.read::<StoredLogin>(owner, &name).await? else {
                return Ok(None);
            };
            if login.is_fresh(refused) {
                return Ok(Some(login));
            }
            let Some(refresh) = login.refresh.clone() else {
                return Ok(login.is_usable(refused).then_some(login));
            };
            if login.renewing_until > now() {
                if login.is_usable(refused) {
                    return Ok(Some(login));
                }
                sleep(RENEWAL_POLL).await;
                continue;
            }
            let reserved = StoredLogin { renewing_until: now() + RENEWAL_TIME, ..login };
            let written = service
                .write(owner, &name, &reserved, None, ExpectedValue::Version(version))
                .await?;
            let Some(version) = written else { continue };
            // Continues if this call ends: the authorization server gives a new refresh token only
            // once.
            let (owner, refused) = (owner.to_owned(), refused.map(str::to_owned));
            let renewal = self.login.clone().renew(owner, reserved, version, refresh, refused);
            return CompleteOnDrop::new(renewal).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use axum::{Router, http::StatusCode, routing::post};
    use futures::future::join_all;

    use super::*;
    use crate::login::test_logins::{log_in_as, replica};
    use agui_store::{MemoryStore, Store};

    const OWNER: &str = "key:ann";

    /// An authorization server that gives the token `new-N` for the N-th request, or a refusal.
    async fn token_endpoint(
        refusal: Option<(StatusCode, &'static str)>,
    ) -> (String, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let respond = move || async move {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(Duration::from_millis(50)).await;
            refusal.map_or_else(
                || {
                    let token = format!(r#"{{"access_token":"new-{number}","token_type":"Bearer","expires_in":3600}}"#);
                    (StatusCode::OK, token)
                },
                |(status, text)| (status, text.to_owned()),
            )
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        tokio::spawn(async move {
            axum::serve(listener, Router::new().route("/token", post(respond))).await
        });
        (url, count)
    }

    fn tokens(login: &PersonLogin) -> PersonTokens {
        PersonTokens::new(login.clone(), Some(OWNER.into()))
    }

    async fn log_in(login: &PersonLogin, token_endpoint: String, lifetime: Millis) {
        log_in_as(login, OWNER, token_endpoint, lifetime).await;
    }

    #[tokio::test]
    async fn calls_on_two_servers_renew_a_token_once() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let replicas = [replica(&store), replica(&store)];
        let (endpoint, requests) = token_endpoint(None).await;
        log_in(&replicas[0], endpoint, 0).await;
        let tokens: Vec<_> = (0..10).map(|number| tokens(&replicas[number % 2])).collect();
        let found = join_all(tokens.iter().map(|tokens| tokens.current())).await;
        assert!(
            found.iter().all(|found| found.as_ref().unwrap().as_deref() == Some("new-1")),
            "{found:?}"
        );
        // The server refuses the token that all know.
        let found = join_all(tokens.iter().map(|tokens| tokens.replace("new-1"))).await;
        assert!(
            found.iter().all(|found| found.as_ref().unwrap().as_deref() == Some("new-2")),
            "{found:?}"
        );
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_renewal_continues_when_its_call_ends() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let login = replica(&store);
        let (endpoint, requests) = token_endpoint(None).await;
        log_in(&login, endpoint, 0).await;
        let interrupted = tokens(&login);
        let ended = tokio::time::timeout(Duration::from_millis(20), interrupted.current()).await;
        assert!(ended.is_err());
        assert_eq!(tokens(&login).current().await.unwrap().as_deref(), Some("new-1"));
        assert_eq!(requests.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_login_that_has_ended_is_forgotten_and_one_that_cannot_be_renewed_now_is_used() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let login = replica(&store);
        let (endpoint, _) = token_endpoint(Some((StatusCode::SERVICE_UNAVAILABLE, ""))).await;
        log_in(&login, endpoint.clone(), 60_000).await;
        assert_eq!(tokens(&login).current().await.unwrap().as_deref(), Some("old"));
        log_in(&login, endpoint, 0).await;
        assert!(tokens(&login).current().await.unwrap_err().contains("503"));
        let (endpoint, _) =
            token_endpoint(Some((StatusCode::BAD_REQUEST, r#"{"error":"invalid_grant"}"#))).await;
        log_in(&login, endpoint, 60_000).await;
        assert_eq!(tokens(&login).current().await.unwrap(), None);
        assert_eq!(login.id(OWNER).await, None);
    }
}
