//! The logins of people at other servers, as the routes below `/connections` see them.

use std::sync::Arc;

use async_trait::async_trait;

use agui_store::{Millis, StoreError};

/// Begins, ends, lists and revokes logins. `browser` is the cookie of the browser, if it has one.
#[async_trait]
pub trait Logins: Send + Sync {
    /// The URL of this server for browsers, without a slash at its end.
    fn base_url(&self) -> &str;

    /// Opens a link for the first browser that does so, which is the only one from then on.
    async fn open(&self, link: &str, browser: &str) -> Result<OpenedLink, LoginError>;

    /// Returns the URL at the authorization server to which the browser goes next. `button` is that of the page which [`open`](Self::open)
    /// has shown last, and which works once.
    async fn authorize(
        self: Arc<Self>,
        link: &str,
        button: &str,
        browser: &str,
    ) -> Result<String, LoginError>;

    /// Ends a login with what the authorization server says. `callback` is the end of the address to which the browser returns.
    /// Returns the name of the server that is connected now.
    async fn finish(
        &self,
        returned: Returned,
        callback: Option<&str>,
        browser: &str,
    ) -> Result<String, LoginError>;

    /// Lists the connections of an owner.
    async fn list(&self, owner: &str) -> Result<Vec<Connected>, LoginError>;

    /// Removes the connection to a server, and revokes its tokens where they are from, if it is known how.
    async fn revoke(&self, owner: &str, server: &str) -> Result<(), LoginError>;
}

/// A link that is opened in the right browser.
#[derive(Debug)]
pub struct OpenedLink {
    /// The name of the server to log in at.
    pub server: String,
    /// The host of that server, which the page shows.
    pub host: String,
    /// The owner that gets the connection.
    pub owner: String,
    /// What the button of the page sends.
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

/// The connection of an owner to a server.
#[derive(Debug)]
pub struct Connected {
    /// The name of the connected server.
    pub server: String,
    /// The time of the login.
    pub since: Millis,
    /// What the authorization server granted, if it says so.
    pub scope: Option<String>,
    /// When the connection ends without another login; `None` if it is renewed.
    pub ends_at: Option<Millis>,
}

/// The reason why an operation of [`Logins`] failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The link, the browser or the state is not the right one.
    #[error("{0}")]
    Refused(&'static str),
    /// The other server refuses the login, or does not do what it has to.
    #[error("{0}")]
    Failed(String),
    /// The store failed.
    #[error("the store of this server is not available now")]
    Store(#[from] StoreError),
}
