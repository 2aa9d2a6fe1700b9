//! Requests to the token endpoint of an authorization server.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, RequestBuilder};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::authorization::{ClientAuth, ClientCredentials, TokenSource};
use agui_base::{text::short_line, upstream::body::read_whole};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
pub struct TokenResponse {
    pub access_token: String,
    #[serde(default)]
    token_type: String,
    #[serde(default, deserialize_with = "seconds")]
    pub expires_in: Option<f64>,
    pub refresh_token: Option<String>,
    #[serde(default, deserialize_with = "scopes")]
    pub scope: Option<String>,
}

/// Reads a number that some servers write as text. What is neither is absent.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()))
}

/// Reads scopes, a text that some servers write as a list.
fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(scopes) => Some(scopes),
        Value::Array(scopes) => {
            let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
            Some(scopes.join(" "))
        }
        _ => None,
    })
}

impl TokenResponse {
    pub fn lifetime(&self) -> Option<Duration> {
        self.expires_in.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// The reason for a missing token. The text has no secret of the client.
#[derive(Debug)]
pub struct TokenRefusal {
    /// True if the authorization server refuses the client's code or refresh token.
    pub(crate) is_invalid_grant: bool,
    pub text: String,
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
    error_description: Option<String>,
}

/// Asks for a token. `grant` has the parameters other than the client and the resource.
pub async fn ask_for_token(
    http: &Client,
    TokenSource { token_endpoint, client, resource, .. }: &TokenSource,
    grant: &[(&str, &str)],
) -> Result<TokenResponse, TokenRefusal> {
    let resource = resource.as_deref().map(|resource| ("resource", resource));
    let parameters: Vec<_> = grant.iter().copied().chain(resource).collect();
    let response =
        form(http, token_endpoint, client, &parameters).timeout(REQUEST_TIMEOUT).send().await;
    let refused = |text| TokenRefusal { is_invalid_grant: false, text };
    let response = response.map_err(|error| match error.is_timeout() {
        true => refused(format!("it does not answer within {} s", REQUEST_TIMEOUT.as_secs())),
        false => refused(error.without_url().to_string()),
    })?;
    let status = response.status();
    let body = read_whole(response, MAX_RESPONSE_BYTES)
        .await
        .map_err(|error| refused(error.to_string()))?;
    if !status.is_success() {
        let refusal = serde_json::from_slice::<ErrorResponse>(&body).ok();
        let is_invalid_grant =
            refusal.as_ref().is_some_and(|refusal| refusal.error == "invalid_grant");
        let text = refusal.map(|refusal| {
            format!("{}: {}", refusal.error, refusal.error_description.unwrap_or_default())
        });
        let mut text = text.unwrap_or_default().replace(char::is_control, " ");
        let secrets =
            grant.iter().filter(|(name, _)| *name != "grant_type").map(|(_, value)| *value);
        for secret in secrets.chain(client.secret.as_deref()).filter(|secret| secret.len() >= 8) {
            text = text.replace(secret, "[redacted]");
        }
        return Err(TokenRefusal {
            is_invalid_grant,
            text: format!("{status} {}", short_line(&text)),
        });
    }
    let token: TokenResponse = serde_json::from_slice(&body)
        .map_err(|_| refused("its response is not a token response".to_owned()))?;
    if !token.token_type.eq_ignore_ascii_case("bearer") || !is_bearer_token(&token.access_token) {
        return Err(refused("its token is not a bearer token".to_owned()));
    }
    Ok(token)
}

/// Returns a request with a form, in the name of a client.
pub(super) fn form(
    http: &Client,
    endpoint: &str,
    client: &ClientCredentials,
    parameters: &[(&str, &str)],
) -> RequestBuilder {
    let (request, mut body) = (http.post(endpoint), parameters.to_vec());
    let request = match (&client.secret, client.auth) {
        (Some(secret), ClientAuth::Basic) => {
            let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
            request.basic_auth(encoded(&client.id), Some(encoded(secret)))
        }
        (secret, _) => {
            body.push(("client_id", &client.id));
            body.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
            request
        }
    };
    request.form(&body)
}

/// Returns whether a text has the form of a bearer token (RFC 6750, section 2.1).
fn is_bearer_token(token: &str) -> bool {
    !token.is_empty()
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_and_scopes_are_read_in_the_forms_of_all_servers() {
        let read = |members: &str| {
            let text = format!(r#"{{"access_token":"a","token_type":"Bearer"{members}}}"#);
            let token: TokenResponse = serde_json::from_str(&text).unwrap();
            (token.lifetime().map(|time| time.as_secs()), token.scope)
        };
        let scope = |text: &str| Some(text.to_owned());
        for (members, expected) in [
            ("", (None, None)),
            (r#","expires_in":3600,"scope":"a b""#, (Some(3600), scope("a b"))),
            (r#","expires_in":"3600","scope":["a","b"]"#, (Some(3600), scope("a b"))),
            (r#","expires_in":3600.0,"scope":[]"#, (Some(3600), scope(""))),
            (r#","expires_in":null,"scope":null"#, (None, None)),
            (r#","expires_in":"soon","scope":7"#, (None, None)),
            (r#","expires_in":-1"#, (None, None)),
        ] {
            assert_eq!(read(members), expected, "{members}");
        }
    }
}
