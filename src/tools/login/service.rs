//! The logins of all servers, and where they are stored.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use reqwest::{Client, Url};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    seal::{MIN_KEY_BYTES, Sealer},
    token_request::ClientCredentials,
};
use crate::{
    agent::LoginError,
    auth::owner_of,
    base::InvalidOption,
    protocol::own_names::MCP_SERVER,
    store::{
        Millis, Store, StoreError, now,
        sealed::{ExpectedValue, SealedStore, SealedValue},
    },
    tools::{Question, ToolContext, ToolError},
    upstream::{
        public_hosts::NamedHosts,
        trust::{is_trusted_url, server_url},
    },
};

/// How often one call asks for a login.
const MAX_QUESTIONS: usize = 3;

/// A server that people log in at.
pub(crate) struct LoginServer {
    pub(super) url: Url,
    /// The hosts of authorization servers; if empty, all with public addresses that the server names.
    hosts: Vec<String>,
    /// The server's own host, and `hosts`.
    named: NamedHosts,
    /// `None`: this server registers itself.
    pub(super) client: Option<ClientCredentials>,
    pub(super) scopes: Vec<String>,
    pub(super) http: Client,
}

impl LoginServer {
    pub(crate) fn new(
        url: &str,
        hosts: Vec<String>,
        client: Option<ClientCredentials>,
        scopes: Vec<String>,
    ) -> Result<Self, InvalidOption> {
        let url = server_url(url).ok_or_else(|| InvalidOption::new("url", "expected a URL"))?;
        let named: Vec<_> = hosts.iter().cloned().chain(url.host_str().map(str::to_owned)).collect();
        let named = NamedHosts(named.into());
        let http = named.client().map_err(|error| InvalidOption::new("login", error.to_string()))?;
        Ok(Self { url, hosts, named, client, scopes, http })
    }

    /// Checks that a URL which another server has named may be used.
    pub(super) fn check(&self, url: &str) -> Result<Url, LoginError> {
        let parsed = server_url(url).ok_or_else(|| LoginError::Failed(format!("{url:?} is not a URL")))?;
        let is_own = parsed.host_str() == self.url.host_str();
        let host = parsed.host_str().unwrap_or_default();
        let is_listed = self.hosts.iter().any(|listed| listed.eq_ignore_ascii_case(host));
        let is_trusted = is_trusted_url(url) || (is_own && self.url.scheme() == "http");
        let problem = if !is_own && !is_listed && !self.hosts.is_empty() {
            "is not in `login_hosts`"
        } else if !is_trusted {
            "is not https"
        } else if !self.named.permits(&parsed) {
            "has a private address, and is not in `login_hosts`"
        } else {
            return Ok(parsed);
        };
        Err(LoginError::Failed(format!("the authorization server {} {problem}", parsed.origin().ascii_serialization())))
    }
}

/// What is known once this server has started.
pub(crate) struct LoginPlace {
    pub(crate) store: Arc<dyn Store>,
    /// The URL of this server for browsers, without a slash at its end.
    pub(crate) base_url: String,
}

/// The logins of all servers.
pub(crate) struct LoginService {
    pub(super) sealer: Sealer,
    pub(super) servers: IndexMap<String, LoginServer>,
    place: OnceLock<LoginPlace>,
}

impl LoginService {
    /// # Errors
    /// If the key is too short.
    pub(crate) fn new(key: &str, servers: IndexMap<String, LoginServer>) -> Result<Self, InvalidOption> {
        let too_short = || InvalidOption::new("key_env", format!("the key needs at least {MIN_KEY_BYTES} bytes"));
        Ok(Self { sealer: Sealer::new(key).ok_or_else(too_short)?, servers, place: OnceLock::new() })
    }

    /// Sets the place. Has no effect if there is one.
    pub(crate) fn set_place(&self, place: LoginPlace) {
        let _ = self.place.set(place);
    }

    pub(super) fn base(&self) -> Option<&str> {
        self.place.get().map(|place| &*place.base_url)
    }

    pub(super) fn server(&self, name: &str) -> Result<&LoginServer, LoginError> {
        self.servers.get(name).ok_or(LoginError::Refused("This server no longer knows the server of the login."))
    }

    pub(super) fn stored(&self) -> Result<&dyn SealedStore, LoginError> {
        let values = self.place.get().and_then(|place| place.store.sealed_values());
        values.ok_or_else(|| StoreError::Unavailable("the store keeps no logins".into()).into())
    }

    /// Reads a value with its version. One that was sealed with another key does not count.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        owner: &str,
        name: &str,
    ) -> Result<Option<(T, i64)>, LoginError> {
        let values = self.stored()?.sealed(owner).await?;
        let now = now();
        let found = values.into_iter().find(|it| it.name == name && it.until.is_none_or(|until| until >= now));
        Ok(found.and_then(|found| Some((self.sealer.open(&place(owner, name), &found.value)?, found.version))))
    }

    /// Writes a value. Returns its version; `None` if the stored one is not as expected.
    pub(super) async fn write(
        &self,
        owner: &str,
        name: &str,
        value: &impl Serialize,
        until: Option<Millis>,
        expected: ExpectedValue,
    ) -> Result<Option<i64>, LoginError> {
        let sealed = self.sealer.seal(&place(owner, name), value);
        let sealed = sealed.ok_or_else(|| LoginError::Failed("a value cannot be sealed".to_owned()))?;
        let value = SealedValue::new(name.to_owned(), sealed, until);
        Ok(self.stored()?.put_sealed(owner, &value, expected).await?.then_some(value.version))
    }
}

/// A sealed value of one owner and name is none of another.
pub(super) fn place(owner: &str, name: &str) -> String {
    format!("{}:{owner}{name}", owner.len())
}

/// The logins at one server.
#[derive(Clone)]
pub(crate) struct PersonLogin {
    pub(super) service: Arc<LoginService>,
    pub(super) server: Arc<str>,
}

impl PersonLogin {
    pub(crate) fn new(service: Arc<LoginService>, server: Arc<str>) -> Self {
        Self { service, server }
    }

    /// Returns the question for the person of a run to log in, as the error of the call; another error if the person was
    /// asked often enough.
    pub(crate) fn question(&self, cx: &ToolContext) -> ToolError {
        let server = &self.server;
        for number in 1..=MAX_QUESTIONS {
            let Some(url) = self.service.link(&owner_of(cx.principal()), server) else {
                return ToolError::new(format!(
                    "nobody can log in at `{server}`: a login needs [server] public_url and a store"
                ));
            };
            let message = format!("Connect your account at `{server}`: open the page, log in there, and come back.");
            let question = Question::visit(message, url).key(format!("login-{number}"));
            let question = question.metadata(MCP_SERVER, server.as_ref().into());
            match cx.reply_to(question.metadata("toolName", cx.tool_name().into())) {
                // It is answered, and the server wants a login still.
                Ok(Some(reply)) if reply.get("approved").is_none_or(|approved| approved != false) => {}
                // Front ends that know approvals only send that one.
                Ok(_) => return ToolError::new(format!("The user declined to connect an account at `{server}`.")),
                Err(question) => return question,
            }
        }
        ToolError::new(format!("The user has not connected an account at `{server}`."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_servers_are_on_the_servers_host_or_public_with_https_or_listed() {
        let check = |hosts: &[&str], url: &str| {
            let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
            let server = LoginServer::new("https://mcp.example.com/mcp", hosts, None, vec![]).unwrap();
            server.check(url).map(drop).map_err(|error| error.to_string())
        };
        let listed = ["id.example.com", "10.0.0.7"];
        for url in ["https://mcp.example.com/auth", "https://id.example.com/auth", "https://mcp.example.com:8443/"] {
            check(&[], url).unwrap();
            check(&listed, url).unwrap();
        }
        check(&listed, "https://10.0.0.7/auth").unwrap();
        for (hosts, url, expected) in [
            (&[][..], "http://id.example.com/", "http://id.example.com is not https"),
            (&[], "http://mcp.example.com/", "is not https"),
            (&[], "https://10.0.0.7/", "has a private address, and is not in `login_hosts`"),
            (&[], "http://127.0.0.1:9/", "has a private address"),
            (&[], "https://169.254.169.254/latest", "has a private address"),
            (&listed, "https://other.example.com/", "is not in `login_hosts`"),
            (&listed, "http://10.0.0.7/", "is not https"),
            (&[], "https://u:p@id.example.com/", "is not a URL"),
            (&[], "javascript:alert(1)", "is not a URL"),
        ] {
            let error = check(hosts, url).unwrap_err();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
