//! Requests for credentials.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use tokio::time::timeout;

use agui_base::{
    text::error_chain,
    upstream::{ClientError, ClientOptions, body::read_whole, client, direct_client},
};

/// The time limit of a server for metadata, which is on the same machine or next to it.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 64 << 10;

pub(super) struct CredentialsClient {
    proxied: Client,
    direct: Client,
}

impl CredentialsClient {
    pub(super) fn new() -> Result<Self, ClientError> {
        let direct = ClientOptions { connect_timeout: METADATA_TIMEOUT };
        Ok(Self { proxied: client(&ClientOptions::default())?, direct: direct_client(&direct)? })
    }

    /// Asks a server for metadata.
    pub(super) async fn metadata(
        &self,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Vec<u8>, String> {
        let request = self.direct.request(method, url);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        read(request, METADATA_TIMEOUT)
            .await
            .map_err(|problem| format!("the server for metadata {problem}"))
    }

    /// Sends a form to a server for tokens.
    pub(super) async fn form(&self, url: &str, form: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        read(self.proxied.post(url).form(form), TOKEN_TIMEOUT)
            .await
            .map_err(|problem| format!("the server for tokens {problem}"))
    }
}

async fn read(request: RequestBuilder, limit: Duration) -> Result<Vec<u8>, String> {
    let response = async {
        // The URL may contain a secret.
        let unreachable = |error: reqwest::Error| {
            format!("cannot be reached: {}", error_chain(&error.without_url()))
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body =
            read_whole(response, MAX_RESPONSE_BYTES).await.map_err(|error| error.to_string())?;
        if status.is_success() {
            Ok(body)
        } else {
            Err(format!("answered {status}{}", error_code(&body)))
        }
    };
    timeout(limit, response).await.unwrap_or_else(|_| Err(format!("did not answer in {limit:?}")))
}

/// Returns the code of an error in the form of OAuth or of AWS, in brackets. The texts beside it may repeat a secret.
fn error_code(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let is_code = |code: &&str| {
        (1..=60).contains(&code.len()) && code.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
    };
    let code = ["\"error\"", "\"code\"", "<Code>"].iter().find_map(|place| {
        let after = text.split_once(place)?.1;
        after
            .split(|c: char| "\":<> \t\r\n".contains(c))
            .find(|part| !part.is_empty())
            .filter(is_code)
    });
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_code_and_none_of_its_words() {
        for (body, code) in [
            (
                r#"{"error": "invalid_grant", "error_description": "1//secret is revoked"}"#,
                " (invalid_grant)",
            ),
            (
                "<Error><Type>Sender</Type><Code>ExpiredTokenException</Code></Error>",
                " (ExpiredTokenException)",
            ),
            (r#"{"code":"AccessDenied"}"#, " (AccessDenied)"),
            (r#"{"error": {"message": "secret"}}"#, ""),
            (r#"{"error": "secret-1"}"#, ""),
            ("secret", ""),
        ] {
            assert_eq!(error_code(body.as_bytes()), code, "{body}");
        }
    }
}
