//! Sends a request and judges the head of the answer.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::Response;

use super::{Transport, failure::Failure, retry};

/// How much of an answer that is an error is read.
const LONGEST_ERROR: usize = 16 << 10;
/// How long that may take. The status has been said: what is missing is only the reason.
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

impl Transport {
    /// Sends the request. What it returns is a stream of events by its own account.
    pub(super) async fn head(&self, body: Bytes, more: HeaderMap) -> Result<Response, Failure> {
        let mut headers = self.headers.clone();
        headers.extend(more);
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .headers(headers)
            .body(body)
            .send();
        let idle = self.options.idle_timeout;
        let response = match tokio::time::timeout(idle, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.peer.unreachable(error)),
            Err(_) => return Err(self.peer.silent(idle)),
        };
        let status = response.status();
        if status != StatusCode::OK {
            let asked = retry::asked(response.headers());
            return Err(self.peer.refused(status, asked, &start_of(response).await));
        }
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("text/event-stream") {
            let content_type = content_type.to_owned();
            return Err(self.peer.no_events(&content_type, &start_of(response).await));
        }
        Ok(response)
    }
}

/// The first bytes of a body, as far as they come.
async fn start_of(mut response: Response) -> Vec<u8> {
    let mut start = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            start.extend_from_slice(&chunk[..chunk.len().min(LONGEST_ERROR - start.len())]);
            if start.len() == LONGEST_ERROR {
                break;
            }
        }
    };
    // What has come until then will do.
    let _ = tokio::time::timeout(ERROR_TIMEOUT, reading).await;
    start
}
