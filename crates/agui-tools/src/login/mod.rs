//! Logins of people at other servers, by the authorization code flow of OAuth 2.1, and the tokens that come of them.
//!
//! 1. A call needs a login: [`PersonLogin::question`] asks the person to open a link of this server, which is sealed: it names
//!    owner and server, and ends after ten minutes.
//! 2. The first browser that opens the link owns it, by a cookie ([`flow`]). The person sees who gets access to what, and presses
//!    the button of this page, which works once, to go on to the authorization server ([`server`]), which the configuration names,
//!    or an MCP server ([`discovery`]).
//! 3. The authorization server sends the browser back with a code, to an address that it alone has. The same browser, once, within ten minutes, changes it for
//!    tokens, which belong to the owner, sealed with the key of the configuration ([`seal`]) in the server's store.
//! 4. The next attempt of the call uses them ([`tokens`]), on each server that shares store and key.
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
