//! Finds the authorization server of a server's URL, and registers this server as a client there.

use reqwest::{
    Client, StatusCode, Url,
    header::{ACCEPT, WWW_AUTHENTICATE},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    authorization::{
        Authorization, ClientAuth, ClientCredentials, TokenSource, callback_of, redirect_uri,
    },
    metadata::{IssuerMetadata, ResourceMetadata, read, read_first, send, well_known},
};
use agui_agent::host::LoginError;
use agui_base::{
    host_names::Host,
    text::short_line,
    upstream::{
        public_hosts::NamedHosts,
        trust::{is_trusted_url, server_url},
    },
};

const MAX_AUTHORIZATION_SERVERS: usize = 4;

/// A server that names its authorization server.
pub(super) struct Discovery {
    pub(super) url: Url,
    /// The hosts of authorization servers; if empty, all with public addresses that the server names.
    pub(super) hosts: NamedHosts,
    /// The only authorization server that may be used.
    pub(super) issuer: Option<String>,
    /// The server's own host, and `hosts`.
    pub(super) named: NamedHosts,
    /// The configured client; `None` if this server registers itself.
    pub(super) client: Option<ClientCredentials>,
    pub(super) scopes: Vec<String>,
    pub(super) http: Client,
}

/// The response to a registration (RFC 7591).
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl Discovery {
    /// Finds the authorization server, this server's client there, and the scopes. `base` is the
    /// URL of this server.
    pub(super) async fn authorization(&self, base: &str) -> Result<Authorization, LoginError> {
        let (metadata, scopes, resource) = self.find().await?;
        // A configured client is registered with the address that it had before its issuer was configured.
        let has_own = self.client.is_none() || self.issuer.is_some();
        let callback = has_own.then(|| callback_of(&metadata.issuer));
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.register(&metadata, &redirect_uri(base, callback.as_deref())).await?,
        };
        Ok(Authorization {
            endpoint: metadata.authorization_endpoint,
            scopes,
            issuer: Some(metadata.issuer),
            names_issuer: metadata.names_issuer,
            callback,
            source: TokenSource {
                token_endpoint: metadata.token_endpoint,
                // An invalid endpoint is ignored: it is only needed for revocation.
                revocation_endpoint: metadata
                    .revocation_endpoint
                    .filter(|url| self.check(url).is_ok()),
                client,
                resource: Some(resource),
            },
        })
    }

    /// Returns the issuer that the server names.
    pub(super) async fn named_issuer(&self) -> Result<String, LoginError> {
        self.find().await.map(|(metadata, ..)| metadata.issuer)
    }

    /// Returns the authorization server, the scopes to ask for, and the resource.
    async fn find(&self) -> Result<(IssuerMetadata, Vec<String>, String), LoginError> {
        // A refusal of the server names its metadata.
        let refused =
            send(self.http.get(self.url.clone()).header(ACCEPT, "text/event-stream")).await?;
        let header = refused.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge =
            header.filter(|_| refused.status() == StatusCode::UNAUTHORIZED).unwrap_or_default();
        let resource = self.resource(parameter(challenge, "resource_metadata")).await?;
        let wanted =
            if self.issuer.is_some() { "not `login_issuer`" } else { "no authorization server" };
        let mut found = Err(failed(format!("the server names {wanted}")));
        let is_wanted = |named: &&String| {
            self.issuer.as_ref().is_none_or(|issuer| is_same_issuer(issuer, named))
        };
        for issuer in
            resource.authorization_servers.iter().filter(is_wanted).take(MAX_AUTHORIZATION_SERVERS)
        {
            found = self.issuer(issuer).await;
            if found.is_ok() {
                break;
            }
        }
        let metadata = found?;
        let wanted = parameter(challenge, "scope").unwrap_or_default();
        let wanted = wanted.split_whitespace().map(str::to_owned).collect();
        let choices = [self.scopes.clone(), wanted, resource.scopes_supported];
        let mut scopes = choices.into_iter().find(|scopes| !scopes.is_empty()).unwrap_or_default();
        // Without this scope, many servers give no refresh token.
        let offline = "offline_access".to_owned();
        if metadata.scopes_supported.contains(&offline) && !scopes.contains(&offline) {
            scopes.push(offline);
        }
        Ok((metadata, scopes, resource.resource))
    }

    /// Checks that a URL which another server has named may be used.
    fn check(&self, url: &str) -> Result<Url, LoginError> {
        let parsed = server_url(url).ok_or_else(|| failed(format!("{url:?} is not a URL")))?;
        let host = |url: &Url| url.host_str().and_then(Host::parse);
        let is_own = host(&parsed) == host(&self.url);
        let is_listed = host(&parsed).is_some_and(|host| self.hosts.has(&host));
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
        Err(failed(format!(
            "the authorization server {} {problem}",
            parsed.origin().ascii_serialization()
        )))
    }

    async fn resource(&self, named: Option<String>) -> Result<ResourceMetadata, LoginError> {
        let mut own = self.url.clone();
        own.set_fragment(None);
        let urls = match named {
            Some(named) => vec![self.check(&named)?],
            None => well_known(&own, "oauth-protected-resource", false),
        };
        match read_first::<ResourceMetadata>(&self.http, urls).await? {
            Some(found) if is_resource_of(&own, &found.resource) => Ok(found),
            Some(found) => {
                let other = short_line(&found.resource);
                Err(failed(format!("the metadata of the server are those of {other}")))
            }
            // Before RFC 9728, a server was its own authorization server.
            None => Ok(ResourceMetadata {
                resource: own.to_string(),
                authorization_servers: vec![own.origin().ascii_serialization()],
                scopes_supported: Vec::new(),
            }),
        }
    }

    /// Checks that an authorization server may be used. The hosts in `login_hosts` get the codes
    /// and the secret of a configured client: the server itself does not, unless it is listed.
    fn check_issuer(&self, issuer: &str) -> Result<Url, LoginError> {
        let url = self.check(issuer)?;
        let is_listed =
            || url.host_str().and_then(Host::parse).is_some_and(|host| self.hosts.has(&host));
        if self.client.is_some() && self.issuer.is_none() && !self.hosts.is_empty() && !is_listed()
        {
            return Err(failed(format!(
                "the authorization server {issuer} is not in `login_hosts`"
            )));
        }
        Ok(url)
    }

    async fn issuer(&self, issuer: &str) -> Result<IssuerMetadata, LoginError> {
        let url = self.check_issuer(issuer)?;
        let kinds = ["oauth-authorization-server", "openid-configuration"];
        let urls = kinds.into_iter().flat_map(|kind| well_known(&url, kind, true)).collect();
        let problem = match read_first::<IssuerMetadata>(&self.http, urls).await? {
            None => "has no metadata",
            Some(found) if !is_same_issuer(&found.issuer, issuer) => {
                "names another issuer in its metadata"
            }
            Some(found)
                if found
                    .code_challenge_methods_supported
                    .iter()
                    .any(|known| !has(known, "S256")) =>
            {
                "does not know PKCE with S256"
            }
            Some(found) => {
                self.check_endpoints(&url, &found)?;
                return Ok(found);
            }
        };
        Err(failed(format!("the authorization server {issuer} {problem}")))
    }

    /// Checks that the endpoints of an issuer are its own: an issuer that sends people to another
    /// authorization server would get that server's code. Pages and token endpoint may have
    /// different hosts, as at Google and Cognito.
    fn check_endpoints(&self, issuer: &Url, metadata: &IssuerMetadata) -> Result<(), LoginError> {
        let token = self.check(&metadata.token_endpoint)?;
        let registration =
            metadata.registration_endpoint.as_ref().filter(|_| self.client.is_none());
        for url in [&metadata.authorization_endpoint].into_iter().chain(registration) {
            let endpoint = self.check(url)?.origin();
            if ![issuer, &token, &self.url].iter().any(|own| own.origin() == endpoint) {
                let (issuer, endpoint) = (&metadata.issuer, endpoint.ascii_serialization());
                return Err(failed(format!(
                    "the authorization server {issuer} sends people to another one, {endpoint}"
                )));
            }
        }
        if token.origin() != issuer.origin() {
            let (issuer, token) = (&*metadata.issuer, token.origin().ascii_serialization());
            if !self.hosts.is_empty() {
                let advice = "leave out `login_hosts` if that is right";
                return Err(failed(format!(
                    "the token endpoint of {issuer} is at another host, {token}: {advice}"
                )));
            }
            tracing::warn!(
                issuer,
                token,
                "the token endpoint of an authorization server is at another host"
            );
        }
        Ok(())
    }

    /// Registers this server as a client, for each login: authorization servers forget their
    /// clients without notice.
    async fn register(
        &self,
        metadata: &IssuerMetadata,
        redirect_uri: &str,
    ) -> Result<ClientCredentials, LoginError> {
        let issuer = &metadata.issuer;
        let Some(endpoint) = &metadata.registration_endpoint else {
            return Err(failed(format!("{issuer} registers no clients: set `login_client_id`")));
        };
        let kind = if redirect_uri.starts_with("https:") || !is_trusted_url(redirect_uri) {
            "web"
        } else {
            "native"
        };
        let known = &metadata.token_endpoint_auth_methods_supported;
        let is_secret_needed =
            !known.is_empty() && !has(known, "none") && has(known, "client_secret_post");
        let wanted = json!({
            "client_name": "agui-server",
            "application_type": kind,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": if is_secret_needed { "client_secret_post" } else { "none" },
        });
        let client: Registered =
            read(self.http.post(self.check(endpoint)?).json(&wanted)).await?.map_err(|why| {
                let why = short_line(&why.replace(char::is_control, " "));
                failed(format!("{issuer} does not register this server: {why}"))
            })?;
        let is_post = client.token_endpoint_auth_method.as_deref() == Some("client_secret_post");
        Ok(ClientCredentials {
            id: client.client_id,
            secret: client.client_secret.filter(|secret| !secret.is_empty()),
            auth: if is_post { ClientAuth::Post } else { ClientAuth::Basic },
        })
    }
}

fn failed(problem: String) -> LoginError {
    LoginError::Failed(problem)
}

fn is_same_issuer(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn has(known: &[String], wanted: &str) -> bool {
    known.iter().any(|known| known == wanted)
}

/// Returns a quoted parameter of a header.
fn parameter(header: &str, name: &str) -> Option<String> {
    let starts = header.match_indices(name).map(|(at, _)| at);
    let is_whole = |at: &usize| header[..*at].ends_with([' ', ',']);
    let value =
        starts.filter(is_whole).find_map(|at| header[at + name.len()..].strip_prefix("=\""))?;
    value.split('"').next().filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Returns whether tokens for a resource are valid at a server: the resource is the server, or a
/// part of the server's path.
fn is_resource_of(server: &Url, resource: &str) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discovery(hosts: &[&str]) -> Discovery {
        let named = NamedHosts::new(hosts.iter().copied().chain(["mcp.example.com"]));
        let (url, http) =
            (Url::parse("https://mcp.example.com/mcp").unwrap(), named.client().unwrap());
        let hosts = NamedHosts::new(hosts.iter().copied());
        Discovery { url, hosts, issuer: None, named, client: None, scopes: vec![], http }
    }

    #[test]
    fn tokens_are_asked_for_the_server_alone() {
        let server = Url::parse("https://a.test/mcp/x").unwrap();
        for resource in
            ["https://a.test/mcp/x", "https://a.test/mcp", "https://a.test/", "https://a.test"]
        {
            assert!(is_resource_of(&server, resource), "{resource}");
        }
        for resource in [
            "https://b.test/mcp/x",
            "https://a.test/mc",
            "https://a.test/mcp/y",
            "http://a.test/mcp",
            "mcp",
        ] {
            assert!(!is_resource_of(&server, resource), "{resource}");
        }
    }

    #[test]
    fn parameters_of_a_challenge_are_read_by_their_whole_names() {
        let header = r#"Bearer error="x", resource_metadata="https://a.test/m", max_scope="no", scope="a b""#;
        assert_eq!(parameter(header, "resource_metadata").as_deref(), Some("https://a.test/m"));
        assert_eq!(parameter(header, "scope").as_deref(), Some("a b"));
        assert_eq!(parameter("Bearer", "scope"), None);
    }

    #[test]
    fn authorization_servers_are_on_the_servers_host_or_public_with_https_or_listed() {
        let check = |hosts: &[&str], url: &str| {
            discovery(hosts).check(url).map(drop).map_err(|error| error.to_string())
        };
        let listed = ["id.example.com", "10.0.0.7"];
        for url in [
            "https://mcp.example.com./auth",
            "https://id.example.com/auth",
            "https://mcp.example.com:8443/",
        ] {
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
            (&[], "https://localhost.:8443/", "has a private address"),
            (&[], "https://id.localhost/", "has a private address"),
            (&listed, "https://other.example.com/", "is not in `login_hosts`"),
            (&listed, "http://10.0.0.7/", "is not https"),
            (&[], "https://u:p@id.example.com/", "is not a URL"),
            (&[], "javascript:alert(1)", "is not a URL"),
        ] {
            let error = check(hosts, url).unwrap_err();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }

    #[test]
    fn the_server_gets_the_codes_of_a_configured_client_only_if_it_is_listed() {
        let client =
            || ClientCredentials { id: "app".into(), secret: None, auth: ClientAuth::default() };
        for (hosts, client, issuer, may_be_used) in [
            (&["id.example.com"][..], Some(client()), None, false),
            (&["id.example.com", "mcp.example.com"], Some(client()), None, true),
            (&["id.example.com"], Some(client()), Some("https://mcp.example.com".to_owned()), true),
            (&["id.example.com"], None, None, true),
        ] {
            let discovery = Discovery { client, issuer, ..discovery(hosts) };
            assert_eq!(
                discovery.check_issuer("https://mcp.example.com").is_ok(),
                may_be_used,
                "{hosts:?}"
            );
        }
    }

    #[test]
    fn an_issuer_that_sends_people_to_another_authorization_server_is_refused() {
        let check =
            |hosts: &[&str], [issuer, page, token]: [&str; 3], registration: Option<&str>| {
                let metadata = serde_json::from_value(json!({
                    "issuer": issuer, "authorization_endpoint": page, "token_endpoint": token,
                    "registration_endpoint": registration,
                }));
                let checked = discovery(hosts)
                    .check_endpoints(&Url::parse(issuer).unwrap(), &metadata.unwrap());
                checked.map_err(|error| error.to_string())
            };
        let google = [
            "https://accounts.example.com",
            "https://accounts.example.com/auth",
            "https://oauth2.example.net/token",
        ];
        let cognito = [
            "https://idp.example.com/pool",
            "https://pool.example.net/authorize",
            "https://pool.example.net/token",
        ];
        check(&[], google, None).unwrap();
        check(&[], cognito, None).unwrap();
        check(
            &[],
            [
                "https://id.example.com",
                "https://mcp.example.com/auth",
                "https://id.example.com/token",
            ],
            None,
        )
        .unwrap();
        let listed = ["accounts.example.com", "oauth2.example.net"];
        assert!(
            check(&listed, google, None)
                .unwrap_err()
                .contains("is at another host, https://oauth2.example.net")
        );
        let honest = "https://honest.example.com/auth";
        let mixed = ["https://evil.example.com", honest, "https://evil.example.com/token"];
        assert!(
            check(&[], mixed, None)
                .unwrap_err()
                .contains("another one, https://honest.example.com")
        );
        let own = [
            "https://evil.example.com",
            "https://evil.example.com/auth",
            "https://evil.example.com/token",
        ];
        assert!(
            check(&[], own, Some(honest))
                .unwrap_err()
                .contains("another one, https://honest.example.com")
        );
    }
}
