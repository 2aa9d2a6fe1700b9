//! Sends a run to the endpoint, and checks the head of the response.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::timeout;

use super::{
    left_out::{LeftOut, RefusedParts},
    mender::restore_ids,
    on_interrupt,
    options::{RemoteOptions, SEND_MESSAGE, header_name},
    withdrawn,
};
use agui_agent::{AgentError, RunContext, ThreadIds};
use agui_base::{
    InvalidOption, RunErrorCode, upstream,
    upstream::{
        ClientOptions,
        body::read_excerpt,
        body_form::{BodyForm, body_form},
        events::{ServerEvents, StreamError, StreamLimits, events},
        scrub::Scrubber,
    },
};
use agui_protocol::{Message, RunAgentInput, host::PROTOCOL_VERSION, is_absent};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const MAX_EXCERPT_BYTES: usize = 1024;
const EXCERPT_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Endpoint {
    client: Client,
    pub(super) url: Url,
    headers: HeaderMap,
    pass: Vec<HeaderName>,
    watch: StreamLimits,
    /// The time limit until the head of the response, connecting included.
    head_timeout: Duration,
    pub(super) is_resumable: bool,
    pub(super) thread_ids: ThreadIds,
    pub(super) passes_raw: bool,
    refused: RefusedParts,
}

impl Endpoint {
    pub(super) fn new(options: &RemoteOptions) -> Result<Self, InvalidOption> {
        options.check()?;
        let mut headers = HeaderMap::new();
        for (name, value) in &options.resolved_headers()? {
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                let problem =
                    format!("the value of {name:?} has characters that a header cannot have");
                InvalidOption::new("headers", problem)
            })?;
            value.set_sensitive(true);
            headers.append(header_name("headers", name)?, value);
        }
        headers.insert(ACCEPT, EVENT_STREAM);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self {
            client: upstream::client(&ClientOptions { connect_timeout: options.connect_timeout })
                .map_err(|error| {
                InvalidOption::whole(format!("the HTTP client cannot be created: {error}"))
            })?,
            url: options.parsed_url()?,
            headers,
            pass: options
                .pass_headers
                .iter()
                .map(|name| header_name("headers", name))
                .collect::<Result<_, _>>()?,
            watch: StreamLimits {
                max_event_bytes: options.max_event_bytes,
                idle_timeout: options.idle_timeout,
            },
            head_timeout: options.connect_timeout.saturating_add(options.idle_timeout),
            is_resumable: options.resumable,
            thread_ids: options.thread_ids,
            passes_raw: options.raw_events,
            refused: RefusedParts::default(),
        })
    }

    /// Sends a run. If the endpoint refuses the request, sends it again without what the endpoint may not know.
    pub(super) async fn send(
        &self,
        input: RunAgentInput,
        cx: &RunContext,
    ) -> Result<ServerEvents, AgentError> {
        let headers = self.request_headers(cx);
        let learned = self.refused.get(&cx.owner());
        let mut left_out = learned;
        loop {
            let body = serde_json::to_vec(&outgoing(input.clone(), left_out, self.url.as_str()))?;
            let response = self.post(self.url.clone(), body, headers.clone()).await?;
            match require_event_stream(response, &headers, self.watch.idle_timeout).await {
                Ok(response) => {
                    if left_out != learned {
                        self.refused.set(cx.owner(), left_out);
                    }
                    return Ok(events(response, self.watch, &cx.owner()));
                }
                Err(Unusable { error, refusal }) => {
                    let poorer = refusal.and_then(|refusal| left_out.after(&refusal, &input));
                    left_out = poorer.ok_or(error)?;
                }
            }
        }
    }

    /// Requests the events of a run after one of them. Returns `None` if the endpoint does not have the run.
    pub(super) async fn resume(
        &self,
        input: RunAgentInput,
        cx: &RunContext,
        after: u64,
    ) -> Result<Option<ServerEvents>, AgentError> {
        let left_out = self.refused.get(&cx.owner());
        let body = serde_json::to_vec(&outgoing(input, left_out, self.url.as_str()))?;
        let mut headers = self.request_headers(cx);
        headers.insert(LAST_EVENT_ID, HeaderValue::from(after));
        let response = self.post(self.url.clone(), body, headers.clone()).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::NO_CONTENT => Ok(Some(stream::empty().boxed())),
            _ => Ok(Some(events(
                require_event_stream(response, &headers, self.watch.idle_timeout)
                    .await
                    .map_err(|unusable| unusable.error)?,
                self.watch,
                &cx.owner(),
            ))),
        }
    }

    /// Cancels a run that the endpoint would continue.
    pub(super) async fn cancel(&self, run: &RunAgentInput, cx: &RunContext) {
        let mut url = self.url.clone();
        // `RemoteOptions::check` has found the end of the path.
        let base = url.path().strip_suffix(SEND_MESSAGE).unwrap_or_default();
        let base = base.rsplit_once("/agents/").map_or(base, |(base, _)| base).to_owned();
        url.set_path(&base);
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["threads", &run.thread_id, "runs", &run.run_id, "cancel"]);
        }
        match self.post(url, Vec::new(), self.request_headers(cx)).await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                tracing::warn!(status = %response.status(), "the remote agent's run was not cancelled")
            }
            Err(error) => tracing::warn!(?error, "the remote agent's run was not cancelled"),
        }
    }

    fn request_headers(&self, cx: &RunContext) -> HeaderMap {
        let mut headers = self.headers.clone();
        for name in &self.pass {
            for value in cx.header_values(name.as_str()) {
                // This cannot fail: the text was a header's value.
                if let Ok(mut value) = HeaderValue::from_str(value) {
                    value.set_sensitive(true);
                    headers.append(name, value);
                }
            }
        }
        cx.trace().add_to(&mut headers);
        headers
    }

    async fn post(
        &self,
        url: Url,
        body: Vec<u8>,
        headers: HeaderMap,
    ) -> Result<Response, AgentError> {
        let sending = self.client.post(url).headers(headers).body(body).send();
        let sent = timeout(self.head_timeout, sending).await.map_err(|_| timed_out())?;
        sent.map_err(|error| {
            let unreachable = AgentError::new(
                RunErrorCode::RemoteUnreachable,
                "the remote agent cannot be reached",
            );
            unreachable.caused_by(error.without_url())
        })
    }
}

/// Returns the input in a form that all versions accept: before 1.0, `state` and `forwardedProps` were required. The
/// version is this server's and not the client's, because this server reads the response. Activities are for the user
/// interface, and the protocol forbids sending them to an agent.
fn outgoing(mut input: RunAgentInput, left_out: LeftOut, url: &str) -> RunAgentInput {
    input.protocol_version = Some(PROTOCOL_VERSION.to_owned());
    let is_activity = |message: &Message| matches!(message, Message::Activity(_));
    if input.messages.iter().any(is_activity) {
        input.messages.to_mut().retain(|message| !is_activity(message));
    }
    withdrawn::leave_out(&mut input.messages, &withdrawn::mark_of(url, &input.thread_id));
    restore_ids(&mut input.messages);
    on_interrupt::answer(&mut input, url);
    left_out.apply(&mut input);
    for member in [&mut input.state, &mut input.forwarded_props] {
        if is_absent(member) {
            *member = Some(json!({}));
        }
    }
    input
}

/// A response without events.
struct Unusable {
    error: AgentError,
    /// The words of an endpoint that refuses the request as invalid.
    refusal: Option<String>,
}

/// Returns the response if it is an event stream. An error quotes the body without secret headers,
/// which the body may repeat.
async fn require_event_stream(
    response: Response,
    sent: &HeaderMap,
    idle_timeout: Duration,
) -> Result<Response, Unusable> {
    let status = response.status();
    if status != StatusCode::OK {
        let server = |does: &str| format!("the remote agent's server {does} ({status})");
        let (code, message) = if status.is_server_error() {
            (RunErrorCode::RemoteFailed, server("failed"))
        } else if status.is_redirection() {
            (RunErrorCode::RemoteRejected, server("redirects the request, which is not followed"))
        } else if status.is_client_error() {
            (RunErrorCode::RemoteRejected, server("refused the request"))
        } else {
            (
                RunErrorCode::RemoteProtocol,
                format!("the remote agent answered with {status} in place of a stream"),
            )
        };
        let body = read_excerpt(response, MAX_EXCERPT_BYTES, EXCERPT_TIMEOUT).await;
        let secrets = sent
            .values()
            .filter(|value| value.is_sensitive())
            .filter_map(|value| value.to_str().ok());
        let secrets = secrets.flat_map(str::split_whitespace).map(str::to_owned).collect();
        let body = Scrubber::new(secrets, "").scrub(&String::from_utf8_lossy(&body));
        let error =
            AgentError::new(code, message).caused_by(format!("its response begins with {body:?}"));
        let is_invalid =
            [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY].contains(&status);
        return Err(Unusable { error, refusal: is_invalid.then_some(body) });
    }
    let header = |name| response.headers().get(name).cloned();
    let (content_type, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
    let is_uncompressed = encoding.as_ref().is_none_or(|encoding| encoding == "identity");
    let unusable = |problem: &'static str| AgentError::new(RunErrorCode::RemoteProtocol, problem);
    let not_events = "the remote agent's response is not an uncompressed event stream";
    let error = match timeout(idle_timeout, body_form(response)).await {
        Ok(Ok((BodyForm::Events, response))) if is_uncompressed => return Ok(response),
        Ok(Ok(_)) => unusable(not_events).caused_by(format!("{content_type:?} {encoding:?}")),
        Ok(Err(error)) => incomplete().caused_by(error),
        Err(_) => timed_out(),
    };
    Err(Unusable { error, refusal: None })
}

pub(super) fn incomplete() -> AgentError {
    AgentError::new(
        RunErrorCode::RemoteIncomplete,
        "the remote agent's stream stopped before its run ended",
    )
}

pub(super) fn timed_out() -> AgentError {
    AgentError::new(RunErrorCode::RemoteTimeout, "the remote agent did not answer in time")
}

pub(super) fn malformed_event(problem: String) -> AgentError {
    AgentError::new(
        RunErrorCode::RemoteProtocol,
        format!("the remote agent broke the protocol: {problem}"),
    )
}

/// Returns the error of a stream that breaks at an event, counted from 1.
pub(super) fn broken_stream(fault: StreamError, number: u64) -> AgentError {
    match fault {
        StreamError::Broken(_) => incomplete().caused_by(fault),
        StreamError::Silent(_) => timed_out().caused_by(fault),
        _ => malformed_event(format!("event {number}: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_has_the_members_that_older_servers_require() {
        let sent = serde_json::to_value(outgoing(
            RunAgentInput::new("t", "r", vec![]),
            LeftOut::default(),
            "http://h/",
        ))
        .unwrap();
        let (list, object) = (json!([]), json!({}));
        let expected = json!({
            "threadId": "t", "runId": "r", "protocolVersion": "1.1", "state": object, "messages": list,
            "tools": list, "context": list, "forwardedProps": object,
        });
        assert_eq!(sent, expected);
        let mut input = RunAgentInput::new("t", "r", vec![]);
        input.state = Some(json!({ "a": null }));
        assert_eq!(
            outgoing(input, LeftOut::default(), "http://h/").state,
            Some(json!({ "a": null }))
        );
    }

    #[tokio::test]
    async fn a_response_that_repeats_a_secret_header_shows_it_in_no_log() {
        let mut sent = HeaderMap::from_iter([(ACCEPT, EVENT_STREAM)]);
        let mut secret = HeaderValue::from_static("Bearer plainwordsfortests");
        secret.set_sensitive(true);
        sent.insert("authorization", secret);
        let response =
            http::Response::builder().status(403).body("no entry with plainwordsfortests").unwrap();
        let error = require_event_stream(response.into(), &sent, Duration::from_secs(1))
            .await
            .err()
            .unwrap()
            .error;
        let log = format!("{error:?}");
        assert!(log.contains("no entry with [secret]") && !log.contains("plainwords"), "{log}");
    }

    #[test]
    fn an_invalid_header_value_is_refused_without_showing_it() {
        let mut options = RemoteOptions::new("http://h/");
        options.headers = vec![("Authorization".to_owned(), "s3cret\n".into())];
        let error = Endpoint::new(&options).err().unwrap().to_string();
        assert_eq!(
            error,
            "headers: the value of \"Authorization\" has characters that a header cannot have"
        );
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
