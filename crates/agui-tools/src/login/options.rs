//! The options of a login that MCP servers and web services share.

use indexmap::IndexMap;
use reqwest::header::AUTHORIZATION;
use serde::Deserialize;

use super::authorization::{ClientAuth, ClientCredentials};
use crate::options::{HeaderSource, check_each};
use agui_base::{InvalidOption, upstream::secret_names::secret_variable};

pub const UNTRUSTED_URL: &str =
    "expected https, without credentials; http is accepted for this machine only";

/// The kind of logins at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// Each person.
    Person,
}

/// Checks `login` beside other options. `further` are the options that need it; true if set.
pub fn check(
    login: Option<LoginKind>,
    further: &[(&str, bool)],
    headers: &IndexMap<String, HeaderSource>,
) -> Result<(), InvalidOption> {
    let has_login = login.is_some();
    let sends_token = headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
    check_each(
        further.iter().map(|(key, is_set)| (*is_set && !has_login, *key, "it is for `login` only")),
    )?;
    check_each([(has_login && sends_token, "headers", "`authorization` is set by `login`")])
}

/// Returns a configured client, with its secret from the environment.
pub fn client(
    id: &str,
    secret_env: Option<&str>,
    auth: ClientAuth,
) -> Result<ClientCredentials, InvalidOption> {
    let secret = secret_env.map(secret_variable).transpose();
    let secret =
        secret.map_err(|problem| InvalidOption::new("login_client_secret_env", problem))?;
    Ok(ClientCredentials { id: id.to_owned(), secret, auth })
}
