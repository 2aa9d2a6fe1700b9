//! The request to another AG-UI endpoint, and the head of its answer.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::timeout;

use super::{RemoteError, RemoteOptions, silent};
use crate::{
    agent::{AgentError, Forwarded},
    protocol::{PROTOCOL_VERSION, RunAgentInput, is_absent},
    upstream::{
        self, ClientOptions,
        events::{ServerEvents, Watch, events},
    },
};

/// The media type of a stream.
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// How much of a refusal is logged, and how long it may take to come.
const EXCERPT: usize = 1024;
const EXCERPT_TIMEOUT: Duration = Duration::from_secs(2);

/// An endpoint, ready to be asked.
pub(super) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    pass: Vec<HeaderName>,
    watch: Watch,
    /// How long the head of an answer may take, connecting included.
    head_timeout: Duration,
}

impl Endpoint {
    pub(super) fn new(options: &RemoteOptions) -> Result<Self, RemoteError> {
        let url = Url::parse(&options.url).map_err(|error| RemoteError::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(RemoteError::Url("neither http nor https".to_owned()));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let fault = || RemoteError::Header(name.clone());
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| fault())?;
            value.set_sensitive(true);
            headers.append(HeaderName::try_from(name).map_err(|_| fault())?, value);
        }
        headers.insert(ACCEPT, STREAM);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let named = |name: &String| HeaderName::try_from(name).map_err(|_| RemoteError::Header(name.clone()));
        Ok(Self {
            client: upstream::client(&ClientOptions { connect_timeout: options.connect_timeout })?,
            url,
            headers,
            pass: options.pass_headers.iter().map(named).collect::<Result<_, _>>()?,
            watch: Watch { max_event_bytes: options.max_event_bytes, idle: options.idle_timeout },
            head_timeout: options.connect_timeout.saturating_add(options.idle_timeout),
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a run, and answers with the stream that came back.
    pub(super) async fn ask(&self, input: RunAgentInput, forwarded: &Forwarded) -> Result<ServerEvents, AgentError> {
        let body = serde_json::to_vec(&outgoing(input))?;
        let mut headers = self.headers.clone();
        for name in &self.pass {
            for value in forwarded.values(name.as_str()) {
                // It was a header's value before it was a text.
                if let Ok(mut value) = HeaderValue::from_str(value) {
                    value.set_sensitive(true);
                    headers.append(name, value);
                }
            }
        }
        let sending = self.client.post(self.url.clone()).headers(headers).body(body).send();
        let response = match timeout(self.head_timeout, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(AgentError::new("remote_unreachable", "the remote agent cannot be reached")
                    .caused_by(error.without_url()));
            }
            Err(_) => return Err(silent()),
        };
        let response = judged(response).await?;
        Ok(events(response, self.watch))
    }
}

/// The input, as a server of any age reads it: those before 1.0 insist on `state` and `forwardedProps`, and absent
/// means empty in both. The version is ours, for it is we who read the answer.
fn outgoing(mut input: RunAgentInput) -> RunAgentInput {
    input.protocol_version = Some(PROTOCOL_VERSION.to_owned());
    for member in [&mut input.state, &mut input.forwarded_props] {
        if is_absent(member) {
            *member = Some(json!({}));
        }
    }
    input
}

/// The answer, if it is a stream.
async fn judged(response: Response) -> Result<Response, AgentError> {
    let status = response.status();
    if status != StatusCode::OK {
        let (code, message) = if status.is_server_error() {
            ("remote_failed", format!("the remote agent's server failed ({status})"))
        } else if status.is_redirection() {
            ("remote_rejected", format!("the remote agent is somewhere else, where nobody follows ({status})"))
        } else if status.is_client_error() {
            ("remote_rejected", format!("the remote agent's server refused the request ({status})"))
        } else {
            ("remote_protocol", format!("the remote agent answered with {status} in place of a stream"))
        };
        let body = excerpt(response).await;
        return Err(AgentError::new(code, message).caused_by(format!("it said {body:?}")));
    }
    let headers = response.headers();
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = essence.split(';').next().unwrap_or_default().trim();
    let plain = headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    if !essence.eq_ignore_ascii_case("text/event-stream") || !plain {
        let cause = format!("{:?} {:?}", headers.get(CONTENT_TYPE), headers.get(CONTENT_ENCODING));
        return Err(AgentError::new("remote_protocol", "the remote agent's answer is no event stream").caused_by(cause));
    }
    Ok(response)
}

/// The beginning of a body, for the log.
async fn excerpt(response: Response) -> String {
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    let reading = async {
        while bytes.len() < EXCERPT
            && let Some(Ok(piece)) = body.next().await
        {
            bytes.extend_from_slice(&piece[..piece.len().min(EXCERPT - bytes.len())]);
        }
    };
    let _ = timeout(EXCERPT_TIMEOUT, reading).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_one_that_servers_of_any_age_read() {
        let sent = serde_json::to_value(outgoing(RunAgentInput::new("t", "r", vec![]))).unwrap();
        let (list, object) = (json!([]), json!({}));
        let expected = json!({
            "threadId": "t", "runId": "r", "protocolVersion": "1.0", "state": object, "messages": list,
            "tools": list, "context": list, "forwardedProps": object,
        });
        assert_eq!(sent, expected);
        let mut input = RunAgentInput::new("t", "r", vec![]);
        input.state = Some(json!({ "a": null }));
        assert_eq!(outgoing(input).state, Some(json!({ "a": null })));
    }

    #[test]
    fn what_is_no_address_or_header_is_refused_without_showing_values() {
        assert!(matches!(Endpoint::new(&RemoteOptions::new("nowhere")), Err(RemoteError::Url(_))));
        assert!(matches!(Endpoint::new(&RemoteOptions::new("ftp://h/")), Err(RemoteError::Url(_))));
        let mut options = RemoteOptions::new("http://h/");
        options.headers = vec![("Authorization".to_owned(), "s3cret\n".into())];
        let error = Endpoint::new(&options).err().unwrap();
        assert_eq!(error.to_string(), "the header \"Authorization\" has a name or a value that no header can have");
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
