//! The options of a login that MCP servers and web services share.

use indexmap::IndexMap;
use reqwest::header::AUTHORIZATION;
use serde::Deserialize;

use super::authorization::{ClientAuth, ClientCredentials};
use crate::{base::InvalidOption, tools::options::HeaderSource, upstream::secret_names::secret_variable};

/// Who logs in at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoginKind {
    /// Each person.
    Person,
}

/// Checks `login` beside other options. `further` are those that need it, and whether each is set.
pub(crate) fn check(
    login: Option<LoginKind>,
    further: &[(&str, bool)],
    headers: &IndexMap<String, HeaderSource>,
) -> Result<(), InvalidOption> {
    let further = further.iter().find(|(_, is_set)| *is_set && login.is_none());
    let sends_token = headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
    match further {
        Some((key, _)) => Err(InvalidOption::new(*key, "it is for `login` only")),
        None if login.is_some() && sends_token => {
            Err(InvalidOption::new("headers", "`authorization` is set by `login`"))
        }
        None => Ok(()),
    }
}

/// Returns a configured client, with its secret from the environment.
pub(crate) fn client(id: &str, secret_env: Option<&str>, auth: ClientAuth) -> Result<ClientCredentials, InvalidOption> {
    let secret = secret_env.map(secret_variable).transpose();
    let secret = secret.map_err(|problem| InvalidOption::new("login_client_secret_env", problem))?;
    Ok(ClientCredentials { id: id.to_owned(), secret, auth })
}
