//! From the URL of a server to its authorization server, and this server as a client there.

use std::time::Duration;

use reqwest::{
    StatusCode, Url,
    header::{ACCEPT, WWW_AUTHENTICATE},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::timeout;

use super::{
    service::LoginServer,
    token_request::{ClientAuth, ClientCredentials},
};
use crate::{
    agent::LoginError,
    base::text::shortened,
    upstream::{body::read_whole, trust::is_trusted_url},
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_METADATA_BYTES: usize = 64 * 1024;
const MAX_AUTHORIZATION_SERVERS: usize = 4;
const MAX_ERROR_CHARS: usize = 200;

/// An authorization server, for one resource.
pub(super) struct AuthorizationServer {
    pub(super) metadata: IssuerMetadata,
    /// The resource that tokens are for (RFC 8707).
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
}

/// RFC 8414, and OpenID Connect Discovery.
#[derive(Deserialize)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(super) names_issuer: bool,
}

/// RFC 9728.
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

#[derive(Default)]
struct Challenge {
    resource_metadata: Option<String>,
    scope: Option<String>,
}

pub(super) async fn discover(server: &LoginServer) -> Result<AuthorizationServer, LoginError> {
    let challenge = challenge(server).await?;
    let resource = resource_metadata(server, challenge.resource_metadata.as_deref()).await?;
    let mut own = server.url.clone();
    own.set_fragment(None);
    let resource = match resource {
        Some(found) if !is_resource_of(&own, &found.resource) => {
            let other = shortened(&found.resource, MAX_ERROR_CHARS);
            return Err(LoginError::Failed(format!("the metadata of the server are those of {other}")));
        }
        Some(found) => found,
        // As before RFC 9728: the server is its own authorization server.
        None => ResourceMetadata {
            resource: own.to_string(),
            authorization_servers: vec![own.origin().ascii_serialization()],
            scopes_supported: Vec::new(),
        },
    };
    let mut failure = LoginError::Failed("the server names no authorization server".to_owned());
    for issuer in resource.authorization_servers.iter().take(MAX_AUTHORIZATION_SERVERS) {
        match metadata(server, issuer).await {
            Ok(metadata) => {
                let wanted = challenge.scope.iter().flat_map(|scope| scope.split(' ')).map(str::to_owned).collect();
                let choices = [server.scopes.clone(), wanted, resource.scopes_supported.clone()];
                let mut scopes = choices.into_iter().find(|scopes| !scopes.is_empty()).unwrap_or_default();
                // Without it, many give no refresh token.
                let offline = "offline_access".to_owned();
                if metadata.scopes_supported.contains(&offline) && !scopes.contains(&offline) {
                    scopes.push(offline);
                }
                return Ok(AuthorizationServer { metadata, resource: resource.resource, scopes });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns what a refusal of the server says about authorization.
async fn challenge(server: &LoginServer) -> Result<Challenge, LoginError> {
    let request = server.http.get(server.url.clone()).header(ACCEPT, "text/event-stream").send();
    let response = timeout(REQUEST_TIMEOUT, request).await.map_err(|_| silent(&server.url))?;
    let response = response.map_err(|error| unreachable(&server.url, &error))?;
    let header = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    Ok(match header {
        Some(header) if response.status() == StatusCode::UNAUTHORIZED => {
            Challenge { resource_metadata: parameter(header, "resource_metadata"), scope: parameter(header, "scope") }
        }
        _ => Challenge::default(),
    })
}

/// Returns a quoted parameter of a header.
fn parameter(header: &str, name: &str) -> Option<String> {
    let starts = header.match_indices(name).map(|(at, _)| at);
    let is_whole = |at: &usize| header[..*at].ends_with([' ', ',']);
    let value = starts.filter(is_whole).find_map(|at| header[at + name.len()..].strip_prefix("=\""))?;
    value.split('"').next().filter(|value| !value.is_empty()).map(str::to_owned)
}

async fn resource_metadata(server: &LoginServer, named: Option<&str>) -> Result<Option<ResourceMetadata>, LoginError> {
    if let Some(named) = named {
        return read(server, &server.check(named)?).await;
    }
    for url in well_known(&server.url, "oauth-protected-resource", false) {
        if let Some(found) = read(server, &url).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

async fn metadata(server: &LoginServer, issuer: &str) -> Result<IssuerMetadata, LoginError> {
    let url = server.check(issuer)?;
    let urls = well_known(&url, "oauth-authorization-server", true).into_iter();
    for url in urls.chain(well_known(&url, "openid-configuration", true)) {
        let Some(found) = read::<IssuerMetadata>(server, &url).await? else { continue };
        let problem = if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            "names another issuer in its metadata"
        } else if found
            .code_challenge_methods_supported
            .as_ref()
            .is_some_and(|methods| !methods.iter().any(|it| it == "S256"))
        {
            "does not know PKCE with S256"
        } else {
            for endpoint in [&found.authorization_endpoint, &found.token_endpoint] {
                server.check(endpoint)?;
            }
            return Ok(found);
        };
        return Err(LoginError::Failed(format!("the authorization server {issuer} {problem}")));
    }
    Err(LoginError::Failed(format!("the authorization server {issuer} has no metadata")))
}

/// Returns the URLs at which metadata may be. `is_exact`: those of a path are not at the root.
fn well_known(url: &Url, kind: &str, is_exact: bool) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/{kind}{path}")];
    if !path.is_empty() {
        paths.push(if is_exact { format!("{path}/.well-known/{kind}") } else { format!("/.well-known/{kind}") });
    }
    let at = |path: String| {
        let mut url = url.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths.into_iter().map(at).collect()
}

/// Returns whether tokens for a resource are for a server: it is the server, or a part of the server's path.
fn is_resource_of(server: &Url, resource: &str) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the client as which this server asks: the configured one, or one that it registers now (RFC 7591). Each login
/// registers one: authorization servers forget their clients, and do not say so.
pub(super) async fn client(
    server: &LoginServer,
    metadata: &IssuerMetadata,
    redirect_uri: &str,
) -> Result<ClientCredentials, LoginError> {
    if let Some(client) = &server.client {
        return Ok(client.clone());
    }
    let issuer = &metadata.issuer;
    let Some(endpoint) = &metadata.registration_endpoint else {
        let problem = format!("{issuer} registers no clients: set `login_client_id`");
        return Err(LoginError::Failed(problem));
    };
    let kind = if redirect_uri.starts_with("https:") || !is_trusted_url(redirect_uri) { "web" } else { "native" };
    let wanted = json!({
        "client_name": "agui-server",
        "application_type": kind,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method(metadata),
    });
    let endpoint = server.check(endpoint)?;
    let sent = timeout(REQUEST_TIMEOUT, server.http.post(endpoint.clone()).json(&wanted).send()).await;
    let response = sent.map_err(|_| silent(&endpoint))?.map_err(|error| unreachable(&endpoint, &error))?;
    let status = response.status();
    let body = read_whole(response, MAX_METADATA_BYTES).await.unwrap_or_default();
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        client_secret: Option<String>,
        token_endpoint_auth_method: Option<String>,
    }
    match serde_json::from_slice::<Registered>(&body) {
        Ok(client) if status.is_success() => Ok(ClientCredentials {
            id: client.client_id,
            secret: client.client_secret.filter(|secret| !secret.is_empty()),
            auth: match client.token_endpoint_auth_method.as_deref() {
                Some("client_secret_post") => ClientAuth::Post,
                _ => ClientAuth::Basic,
            },
        }),
        _ => {
            let reason = shortened(&String::from_utf8_lossy(&body).replace(char::is_control, " "), MAX_ERROR_CHARS);
            Err(LoginError::Failed(format!("{issuer} does not register this server: {status} {reason}")))
        }
    }
}

fn auth_method(metadata: &IssuerMetadata) -> &'static str {
    let known = &metadata.token_endpoint_auth_methods_supported;
    let has = |method: &str| known.iter().any(|known| known == method);
    if !known.is_empty() && !has("none") && has("client_secret_post") { "client_secret_post" } else { "none" }
}

/// Reads a JSON document; `None` if there is none at this URL.
async fn read<T: DeserializeOwned>(server: &LoginServer, url: &Url) -> Result<Option<T>, LoginError> {
    let reading = async {
        let response = server.http.get(url.clone()).header(ACCEPT, "application/json").send().await;
        let response = response.map_err(|error| unreachable(url, &error))?;
        if response.status() != StatusCode::OK {
            return Ok(None);
        }
        let body = read_whole(response, MAX_METADATA_BYTES).await;
        Ok(body.ok().and_then(|body| serde_json::from_slice(&body).ok()))
    };
    timeout(REQUEST_TIMEOUT, reading).await.map_err(|_| silent(url))?
}

fn silent(url: &Url) -> LoginError {
    LoginError::Failed(format!("{} does not answer", url.origin().ascii_serialization()))
}

fn unreachable(url: &Url, error: &reqwest::Error) -> LoginError {
    let cause = crate::base::text::error_chain(error);
    tracing::debug!(%url, cause, "a server for logins cannot be reached");
    LoginError::Failed(format!("{} cannot be reached", url.origin().ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_looked_for_at_the_places_of_the_standards() {
        let places = |url: &str, kind: &str, is_exact| -> Vec<_> {
            well_known(&Url::parse(url).unwrap(), kind, is_exact).iter().map(|url| url.path().to_owned()).collect()
        };
        let resource = "oauth-protected-resource";
        assert_eq!(
            places("https://a.test/mcp?x", resource, false),
            ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            places("https://a.test/t/", "openid-configuration", true),
            ["/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration"]
        );
        assert_eq!(places("https://a.test/", "openid-configuration", true), ["/.well-known/openid-configuration"]);
    }

    #[test]
    fn tokens_are_asked_for_the_server_alone() {
        let server = Url::parse("https://a.test/mcp/x").unwrap();
        for resource in ["https://a.test/mcp/x", "https://a.test/mcp", "https://a.test/", "https://a.test"] {
            assert!(is_resource_of(&server, resource), "{resource}");
        }
        for resource in
            ["https://b.test/mcp/x", "https://a.test/mc", "https://a.test/mcp/y", "http://a.test/mcp", "mcp"]
        {
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
}
