//! A server that people log in at, whose authorization server is written in the configuration or found with its metadata.

use reqwest::Client;

use super::{
    authorization::{Authorization, ClientCredentials, TokenSource, callback_of, redirect_uri},
    discovery::Discovery,
};
use agui_agent::host::LoginError;
use agui_base::{
    InvalidOption,
    upstream::{public_hosts::NamedHosts, trust::server_url},
};

/// A server that people log in at.
pub struct LoginServer {
    /// The host of the server, for people.
    pub(super) host: String,
    /// Sends requests to the authorization server.
    pub(super) http: Client,
    way: Way,
}

enum Way {
    Discovered(Box<Discovery>),
    Written(Box<Authorization>),
}

impl LoginServer {
    /// Creates an MCP server, which names its authorization server. Only authorization servers with
    /// one of the `hosts` may be used, or with any public address if there are none, or the
    /// `issuer` alone if there is one. Without a `client`, this server registers itself.
    pub fn discovered(
        url: &str,
        hosts: &[String],
        issuer: Option<String>,
        client: Option<ClientCredentials>,
        scopes: Vec<String>,
    ) -> Result<Self, InvalidOption> {
        let url = server_url(url).ok_or_else(|| InvalidOption::new("url", "expected a URL"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let named = NamedHosts::new(hosts.iter().map(String::as_str).chain([&*host]));
        let http = http_client(&named)?;
        let hosts = NamedHosts::new(hosts.iter().map(String::as_str));
        let discovery = Discovery { url, hosts, issuer, named, client, scopes, http: http.clone() };
        Ok(Self { host, http, way: Way::Discovered(Box::new(discovery)) })
    }

    /// Creates a web service, whose authorization server is written in the configuration.
    pub fn written(host: String, authorization: Authorization) -> Result<Self, InvalidOption> {
        let TokenSource { token_endpoint, revocation_endpoint, .. } = &authorization.source;
        let urls = [token_endpoint]
            .into_iter()
            .chain(revocation_endpoint)
            .filter_map(|url| server_url(url));
        let urls: Vec<_> = urls.collect();
        let http = http_client(&NamedHosts::new(urls.iter().filter_map(|url| url.host_str())))?;
        Ok(Self { host, http, way: Way::Written(Box::new(authorization)) })
    }

    /// Returns the authorization server of the next login. Registers this server there if it has
    /// to. `base` is the URL of this server.
    pub(super) async fn authorization(&self, base: &str) -> Result<Authorization, LoginError> {
        match &self.way {
            Way::Discovered(discovery) => discovery.authorization(base).await,
            Way::Written(authorization) => Ok(*authorization.clone()),
        }
    }

    /// Returns advice about the redirect address of a configured client; `None` if this server
    /// registers itself. If `is_online`, the server is asked for its issuer if the configuration
    /// has none.
    pub(super) async fn redirect_advice(&self, base: &str, is_online: bool) -> Option<String> {
        let (configured, likely) = match &self.way {
            Way::Discovered(discovery) => {
                discovery.client.as_ref()?;
                let asks = is_online && discovery.issuer.is_none();
                (&discovery.issuer, if asks { Some(discovery.named_issuer().await) } else { None })
            }
            Way::Written(written) => (
                &written.issuer,
                server_url(&written.endpoint).map(|url| Ok(url.origin().ascii_serialization())),
            ),
        };
        let own = |issuer: &str| redirect_uri(base, Some(&callback_of(issuer)));
        let shared = redirect_uri(base, None);
        Some(match (configured, likely) {
            (Some(issuer), _) => format!("the redirect URI to register is {}", own(issuer)),
            (None, Some(Ok(issuer))) => format!(
                "the redirect URI is {shared}, as that of other logins; to have one of its own, register {} and set \
                 `login_issuer = {issuer:?}`",
                own(&issuer)
            ),
            (None, Some(Err(error))) => {
                format!("the redirect URI is {shared}; the issuer is not found: {error}")
            }
            (None, None) => format!(
                "the redirect URI is {shared}, as that of other logins; `check --online` finds the issuer for one of its own"
            ),
        })
    }

    pub(super) fn is_mcp(&self) -> bool {
        matches!(self.way, Way::Discovered(_))
    }

    /// Returns the client for tokens of an earlier login: its secret may have changed in the configuration since then.
    pub(super) fn client_of<'c>(&'c self, source: &'c TokenSource) -> &'c ClientCredentials {
        let configured = match &self.way {
            Way::Discovered(discovery) => discovery.client.as_ref(),
            Way::Written(authorization) => Some(&authorization.source.client),
        };
        configured.filter(|client| client.id == source.client.id).unwrap_or(&source.client)
    }
}

fn http_client(named: &NamedHosts) -> Result<Client, InvalidOption> {
    named.client().map_err(|error| InvalidOption::new("login", error.to_string()))
}
