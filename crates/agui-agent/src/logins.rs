//! The logins of people at other servers, as the routes below `/accounts` see them.

use std::sync::Arc;

use async_trait::async_trait;

use agui_store::{Millis, StoreError};

/// Begins, ends, lists and revokes logins. `browser` is the cookie of the browser, if it has one.
#[async_trait]
pub trait Logins: Send + Sync {
    /// The URL of this server for browsers, without a slash at its end.
    fn base_url(&self) -> &str;

    /// Opens a link for the first browser that asks, and from then on only for this browser.
    async fn open(&self, link: &str, browser: &str) -> Result<OpenedLink, LoginError>;

    /// Returns the URL at the authorization server to which the browser goes next. `button` is the
    /// button of the last page from [`open`](Self::open). It works once.
    async fn authorize(
        self: Arc<Self>,
        link: &str,
        button: &str,
        browser: &str,
    ) -> Result<String, LoginError>;

    /// Ends a login with the response of the authorization server. `callback` has the parameters of
    /// the address to which the browser returns. Returns the name of the connected server.
    async fn finish(
        &self,
        returned: Returned,
        callback: Option<&str>,
        browser: &str,
    ) -> Result<String, LoginError>;

    /// Lists the accounts that an owner has connected.
    async fn list(&self, owner: &str) -> Result<Vec<ConnectedAccount>, LoginError>;

    /// Disconnects the account at a server, and revokes its tokens if the authorization server can
    /// do that.
    async fn revoke(&self, owner: &str, server: &str) -> Result<(), LoginError>;
}

/// A link that is opened in the right browser.
#[derive(Debug)]
pub struct OpenedLink {
    /// The name of the server to log in at.
    pub server: String,
    /// The host of that server, which the page shows.
    pub host: String,
    /// The owner of the account after the login.
    pub owner: String,
    /// The value that the button of the page sends.
    pub button: String,
}

/// The parameters with which an authorization server sends the browser back.
#[derive(Default, serde::Deserialize)]
pub struct Returned {
    /// The sealed link of the login, as this server sent it; empty if it is missing.
    #[serde(default)]
    pub state: String,
    /// The authorization code; `None` if the login failed.
    pub code: Option<String>,
    /// The issuer identifier of the authorization server (RFC 9207), if it sends one.
    pub iss: Option<String>,
    /// The error code (RFC 6749, section 4.1.2.1); `None` if the login succeeded.
    pub error: Option<String>,
    /// The authorization server's text about `error`.
    pub error_description: Option<String>,
}

/// An account of an owner at a server.
#[derive(Debug)]
pub struct ConnectedAccount {
    /// The name of that server.
    pub server: String,
    /// The time of the login.
    pub since: Millis,
    /// The scope that the authorization server granted, if it says so.
    pub scope: Option<String>,
    /// The time after which another login is needed; `None` if the tokens are renewed.
    pub ends_at: Option<Millis>,
}

/// The reason why an operation of [`Logins`] failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The link, the browser or the state is wrong.
    #[error("{0}")]
    Refused(&'static str),
    /// The other server refuses the login, or breaks the protocol.
    #[error("{0}")]
    Failed(String),
    /// The store failed.
    #[error("the store of this server is not available now")]
    Store(#[from] StoreError),
}
