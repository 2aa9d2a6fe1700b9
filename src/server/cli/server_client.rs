//! Requests of commands to the routes of a server. The server may be hostile: the kept part of a
//! response is bounded, and errors have no control sequences.

use std::{error::Error, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{printable::excerpt, target::RunTarget};
use agui_base::{
    text::LINE_CHARS,
    upstream::body::{read_excerpt, read_whole},
};

/// The time limit of a response that is read whole.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest silence of a response that is read in pieces.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest response that is read whole.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// The part of a refusal that is read.
const MAX_REFUSAL_BYTES: usize = 16 * 1024;

impl RunTarget {
    /// Returns the value of a JSON response.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, Box<dyn Error>> {
        let request =
            self.authorized(self.client.get(self.route(segments)?)).query(query).timeout(TIMEOUT);
        read_json(send(request).await?).await
    }

    /// Stores a file and returns the server's answer; `None` if the server has no files.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        bytes: &[u8],
        media_type: &str,
        name: &str,
    ) -> Result<Option<T>, Box<dyn Error>> {
        let Ok(url) = self.route(&["files"]) else { return Ok(None) };
        let disposition =
            format!("attachment; filename*=UTF-8''{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        let request = self.authorized(self.client.post(url)).header(CONTENT_TYPE, media_type);
        let response =
            send(request.header(CONTENT_DISPOSITION, disposition).body(bytes.to_vec())).await?;
        match response.status() {
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Ok(None),
            _ => read_json(response).await.map(Some),
        }
    }

    pub(super) async fn post(&self, segments: &[&str]) -> Result<(), Box<dyn Error>> {
        let request = self.authorized(self.client.post(self.route(segments)?)).timeout(TIMEOUT);
        require_success(send(request).await?).await.map(drop)
    }

    /// Returns a response of any status, to be read with [`next_piece`].
    pub(super) async fn get(&self, segments: &[&str]) -> Result<Response, Box<dyn Error>> {
        let request = self.authorized(self.client.get(self.route(segments)?));
        timeout(IDLE_TIMEOUT, send(request)).await.map_err(|_| idle())?
    }

    /// Adds the key to a request.
    pub(super) fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        self.authorization
            .iter()
            .fold(request, |request, value| request.header(AUTHORIZATION, value))
    }
}

/// Returns the next piece of a response's body; `None` at its end.
pub(super) async fn next_piece(
    response: &mut Response,
) -> Result<Option<bytes::Bytes>, Box<dyn Error>> {
    let piece = timeout(IDLE_TIMEOUT, response.chunk()).await.map_err(|_| idle())?;
    Ok(piece.map_err(|error| format!("the response broke: {error}"))?)
}

/// Returns the value of a JSON response.
async fn read_json<T: DeserializeOwned>(response: Response) -> Result<T, Box<dyn Error>> {
    let unreadable = |error: &dyn Error| format!("the server's response cannot be read: {error}");
    let response = require_success(response).await?;
    let body = read_whole(response, MAX_BODY_BYTES).await.map_err(|error| unreadable(&error))?;
    Ok(serde_json::from_slice(&body).map_err(|error| unreadable(&error))?)
}

/// Refuses a response that is not a success, with the beginning of its body.
pub(super) async fn require_success(response: Response) -> Result<Response, Box<dyn Error>> {
    let status = response.status();
    if matches!(status, StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED) {
        return Ok(response);
    }
    let body = read_excerpt(response, MAX_REFUSAL_BYTES, IDLE_TIMEOUT).await;
    let text = excerpt(&String::from_utf8_lossy(&body), LINE_CHARS);
    Err(format!("the server answered {status}: {text}").into())
}

pub(super) async fn send(request: RequestBuilder) -> Result<Response, Box<dyn Error>> {
    Ok(request.send().await.map_err(|error| format!("the server cannot be reached: {error:?}"))?)
}

fn idle() -> String {
    format!("nothing came from the server for {} s", IDLE_TIMEOUT.as_secs())
}
