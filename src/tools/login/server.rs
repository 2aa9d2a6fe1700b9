//! A server that people log in at, whose authorization server is written in the configuration or found with its metadata.

use reqwest::Client;

use super::{
    authorization::{Authorization, ClientCredentials, TokenSource},
    discovery::Discovery,
};
use crate::{
    agent::LoginError,
    base::InvalidOption,
    upstream::{public_hosts::NamedHosts, trust::server_url},
};

/// A server that people log in at.
pub(crate) struct LoginServer {
    /// The host of the server, for people.
    pub(super) host: String,
    /// For requests to the authorization server.
    pub(super) http: Client,
    way: Way,
}

enum Way {
    Discovered(Box<Discovery>),
    Written(Box<Authorization>),
}

impl LoginServer {
    /// An MCP server, which names its authorization server. `hosts` are those of the authorization servers that may be used; if
    /// empty, all with public addresses. Without a `client`, this server registers itself.
    pub(crate) fn discovered(
        url: &str,
        hosts: Vec<String>,
        client: Option<ClientCredentials>,
        scopes: Vec<String>,
    ) -> Result<Self, InvalidOption> {
        let url = server_url(url).ok_or_else(|| InvalidOption::new("url", "expected a URL"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let named = NamedHosts(hosts.iter().chain([&host]).cloned().collect());
        let http = http_client(&named)?;
        let discovery = Discovery { url, hosts, named, client, scopes, http: http.clone() };
        Ok(Self { host, http, way: Way::Discovered(Box::new(discovery)) })
    }

    /// A web service, whose authorization server is written in the configuration.
    pub(crate) fn written(host: String, authorization: Authorization) -> Result<Self, InvalidOption> {
        let TokenSource { token_endpoint, revocation_endpoint, .. } = &authorization.source;
        let urls = [token_endpoint].into_iter().chain(revocation_endpoint).filter_map(|url| server_url(url));
        let http = http_client(&NamedHosts(urls.filter_map(|url| Some(url.host_str()?.to_owned())).collect()))?;
        Ok(Self { host, http, way: Way::Written(Box::new(authorization)) })
    }

    /// Returns where the next login is, for which this server registers itself if it has to.
    pub(super) async fn authorization(&self, redirect_uri: &str) -> Result<Authorization, LoginError> {
        match &self.way {
            Way::Discovered(discovery) => discovery.authorization(redirect_uri).await,
            Way::Written(authorization) => Ok(*authorization.clone()),
        }
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
