//! Reads the metadata that servers publish for logins.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url, header::ACCEPT};
use serde::{Deserialize, de::DeserializeOwned};

use agui_agent::host::LoginError;
use agui_base::{text::error_chain, upstream::body::read_whole};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_METADATA_BYTES: usize = 64 * 1024;

/// Metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(super) names_issuer: bool,
}

/// Metadata of a protected resource (RFC 9728).
#[derive(Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
}

/// Returns the URLs at which metadata may be. If `is_exact`, a URL with a path has none at the
/// root.
pub(super) fn well_known(url: &Url, kind: &str, is_exact: bool) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/{kind}{path}")];
    if !path.is_empty() {
        paths.push(if is_exact {
            format!("{path}/.well-known/{kind}")
        } else {
            format!("/.well-known/{kind}")
        });
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

/// Reads the first of the URLs that has a JSON document.
pub(super) async fn read_first<T: DeserializeOwned>(
    http: &Client,
    urls: Vec<Url>,
) -> Result<Option<T>, LoginError> {
    for url in urls {
        if let Ok(found) = read(http.get(url).header(ACCEPT, "application/json")).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Reads a JSON document. The inner error is the status and the body of another response.
pub(super) async fn read<T: DeserializeOwned>(
    request: RequestBuilder,
) -> Result<Result<T, String>, LoginError> {
    let response = send(request).await?;
    let status = response.status();
    let body = read_whole(response, MAX_METADATA_BYTES).await.unwrap_or_default();
    let document = serde_json::from_slice(&body).ok().filter(|_| status.is_success());
    Ok(document.ok_or_else(|| format!("{status} {}", String::from_utf8_lossy(&body))))
}

/// Sends a request to a server for logins.
pub(super) async fn send(request: RequestBuilder) -> Result<reqwest::Response, LoginError> {
    request.timeout(REQUEST_TIMEOUT).send().await.map_err(|error| {
        let server = error.url().map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        let problem = if error.is_timeout() { "does not answer" } else { "cannot be reached" };
        tracing::debug!(cause = error_chain(&error), "a server for logins {problem}");
        LoginError::Failed(format!("{server} {problem}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_looked_for_at_the_places_of_the_standards() {
        let places = |url: &str, kind: &str, is_exact| -> Vec<_> {
            well_known(&Url::parse(url).unwrap(), kind, is_exact)
                .iter()
                .map(|url| url.path().to_owned())
                .collect()
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
        assert_eq!(
            places("https://a.test/", "openid-configuration", true),
            ["/.well-known/openid-configuration"]
        );
    }
}
