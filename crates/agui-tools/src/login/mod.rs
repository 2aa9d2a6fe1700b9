//! Logins of people at other servers, by the authorization code flow of OAuth 2.1, and their
//! tokens.
//!
//! 1. A call needs a login: [`PersonLogin::question`] asks the person to open a link of this
//!    server. The link is sealed, names owner and server, and ends after ten minutes.
//! 2. The first browser that opens the link owns it, by a cookie ([`flow`]). The person sees who
//!    gets access to what, and presses the page's button, which works once. It leads to the
//!    authorization server ([`server`]) that the configuration or an MCP server ([`discovery`])
//!    names.
//! 3. The authorization server sends the browser back with a code, to an address that no other
//!    authorization server has. The same browser exchanges the code for tokens, once, within ten
//!    minutes. The tokens belong to the owner, and are stored sealed with the configured key
//!    ([`seal`]).
//! 4. The next attempt of the call uses the tokens ([`tokens`]), on each server that shares store
//!    and key.
//!
//! Rules: <https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization>, RFC 6749, 7009, 7591, 7636, 8414,
//! 8707, 9207 and 9728. The flow is not that of `rmcp`, whose logs have codes and identity tokens, and which reaches no
//! private address with a client of our own.

mod authorization;
mod discovery;
mod flow;
mod metadata;
pub mod options;
mod seal;
mod server;
mod service;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::missing_panics_doc)]
pub mod test_logins;
mod token_request;
mod tokens;

pub(crate) use self::authorization::callback_of;
pub use self::{
    authorization::{Authorization, ClientAuth, ClientCredentials, TokenSource},
    server::LoginServer,
    service::{LoginPlace, LoginService, PersonLogin},
    token_request::ask_for_token,
    tokens::PersonTokens,
};
