//! Requests to a provider over HTTP, with limits on silence and memory, retries, and errors without secrets. There is
//! no background task: dropping the stream ends the request and closes its connection.

mod changing_key;
mod clouds;
mod decode;
mod exchange;
mod failure;
pub(crate) mod json;
mod key_command;
mod playback;
mod provider_client;
mod retry;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt;
use http::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout};

pub(crate) use decode::{
    AnswerEvents, DecodeFault, DecodeStep, Decoder, call_start, check_error, check_open_blocks,
};
pub use playback::RecordedExchanges;
pub use provider_client::{CloudCredentials, ProviderClient, SetupError};
pub(crate) use provider_client::{KeyPlace, is_in_domain};

use self::{
    changing_key::{ChangingKey, RequestKey},
    exchange::RecordedExchange,
    failure::{AttemptError, ProviderErrors},
};
use crate::{CallTrace, ModelEvent, ModelOptions, ModelStream, SkippedAttachment};
use agui_base::{
    lenient_json::{lenient, report},
    repairs::Partner,
    text::essence,
    upstream::{
        ClientOptions,
        aws_events::aws_events,
        body::{read_excerpt, read_whole},
        body_form::{BodyForm, body_form},
        client,
        events::{ServerEvent, ServerEvents, StreamLimits, provider_events},
    },
};
use agui_protocol::JsonObject;

/// A request to a provider.
#[derive(Debug, Default)]
pub(crate) struct ProviderRequest {
    pub(crate) json: Value,
    /// The attachments that the request cannot contain. They are reported before the answer.
    pub(crate) skipped: Vec<SkippedAttachment>,
    /// The number of the answer's first block.
    pub(crate) first_block: usize,
    /// `None` for the transport's URL.
    pub(crate) url: Option<Url>,
    /// Headers of this request alone.
    pub(crate) headers: HeaderMap,
}

/// The default of `max_event_bytes`. The largest file by default has 20 MiB, and 27 MiB in base64.
const MAX_EVENT_BYTES: usize = 32 << 20;
const MAX_ERROR_BYTES: usize = 16 << 10;
/// The time limit on the body of an error. Its status is already known.
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of a response with the status 200.
enum SentResponse {
    Stream(ServerEvents),
    Whole(String),
}

pub(crate) struct Transport {
    client: Client,
    pub(crate) url: Url,
    headers: HeaderMap,
    /// `None` if `headers` has the key.
    key: Option<ChangingKey>,
    errors: ProviderErrors,
    /// The names of the members that the configuration adds.
    fixed: Arc<[String]>,
    idle_timeout: Duration,
    max_retries: u32,
    max_event_bytes: usize,
    exchanges: Option<Arc<RecordedExchanges>>,
}

/// The URL and the headers may contain secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl Transport {
    /// `url` is the base URL of `options.client`. The headers of `options.client` replace those in
    /// `headers` and those with the key, which stand at `places`.
    pub(crate) fn new(
        options: &ModelOptions,
        url: Url,
        mut headers: HeaderMap,
        mut places: Vec<KeyPlace>,
    ) -> Result<Arc<Self>, SetupError> {
        let settings = &options.client;
        headers.extend(settings.headers(&places)?);
        places.retain(|(name, _)| !headers.contains_key(name));
        let client = client(&ClientOptions { connect_timeout: settings.connect_timeout });
        Ok(Arc::new(Self {
            client: client.map_err(SetupError::Tls)?,
            errors: ProviderErrors::new(&url, settings.secrets(&url)),
            key: ChangingKey::new(options, &url, places)?,
            url,
            headers,
            fixed: member_names(&options.extra_body),
            idle_timeout: settings.idle_timeout,
            max_retries: settings.max_retries,
            max_event_bytes: settings.max_event_bytes.unwrap_or(MAX_EVENT_BYTES),
            exchanges: options.exchanges.clone(),
        }))
    }

    pub(crate) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Sends a request. Each attempt has a new decoder. `trace` gets the retries and the provider's
    /// id of the request; its trace context is sent with the request.
    pub(crate) fn stream<D: Decoder>(
        self: &Arc<Self>,
        request: &ProviderRequest,
        trace: CallTrace,
        decoder: impl Fn() -> D + Send + 'static,
    ) -> ModelStream {
        let ProviderRequest { json, skipped, url, headers: more, first_block } = request;
        let url = url.clone().unwrap_or_else(|| self.url.clone());
        let (transport, body) = (self.clone(), Bytes::from(json.to_string()));
        let (skipped, more) = (skipped.clone(), more.clone());
        let first_block = *first_block;
        Box::pin(async_stream::stream! {
            for attachment in skipped {
                yield Ok(ModelEvent::Skipped(attachment));
            }
            let mut retries = 0;
            loop {
                let mut output = AnswerEvents::starting_with(first_block);
                let request_id = OnceLock::new();
                let mut answer = Box::pin(transport.attempt(url.clone(), body.clone(), more.clone(), &request_id, &trace));
                let mut decoder = decoder();
                let failure = loop {
                    let step = match answer.next().await {
                        Some(Ok(event)) => transport.decode(&mut decoder, &event, &mut output),
                        // A stop reason completes an answer, even if the connection broke after it.
                        Some(Err(_)) | None if decoder.finish(&mut output) => {
                            output.join_halves(false);
                            Ok(DecodeStep::Complete)
                        }
                        Some(Err(failure)) => Err(failure),
                        None => Err(transport.errors.interrupted("the stream ended before the answer did")),
                    };
                    if matches!(step, Ok(DecodeStep::Complete)) {
                        // Reading to the end of the body lets the connection serve the agent's next
                        // request without a handshake. The end has nearly always arrived already.
                        let _ = timeout(retry::END_OF_BODY_TIMEOUT, answer.next()).await;
                    }
                    while let Some(event) = output.events.pop_front() {
                        yield Ok(event);
                    }
                    match step {
                        Ok(DecodeStep::More) => {}
                        Ok(DecodeStep::Complete) => return,
                        Err(failure) => break failure,
                    }
                };
                drop(answer);
                if let Some(reason) = failure.stop.clone() {
                    let error = failure.into_error(request_id.get().map(String::as_str), &body, &transport.fixed);
                    tracing::warn!(?error, "a model provider broke off an answer");
                    output.break_off(reason);
                    while let Some(event) = output.events.pop_front() {
                        yield Ok(event);
                    }
                    return;
                }
                let may_retry = !output.has_answer && retries < transport.max_retries;
                let wait = failure.retry.wait(retries).filter(|_| may_retry);
                let error = failure.into_error(request_id.get().map(String::as_str), &body, &transport.fixed);
                let Some(wait) = wait else {
                    yield Err(error);
                    return;
                };
                retries += 1;
                trace.count_retry();
                tracing::warn!(?error, retries, ?wait, "a model provider failed; trying again");
                tokio::time::sleep(wait).await;
            }
        })
    }

    fn attempt<'a>(
        &'a self,
        url: Url,
        body: Bytes,
        more: HeaderMap,
        request_id: &'a OnceLock<String>,
        trace: &'a CallTrace,
    ) -> impl futures::Stream<Item = Result<ServerEvent, AttemptError>> + Send + use<'a> {
        async_stream::stream! {
            if let Some(exchanges) = &self.exchanges {
                match exchanges.answer(&body) {
                    Some(answer) => {
                        for event in answer {
                            yield Ok(event);
                        }
                    }
                    None => yield Err(self.errors.not_recorded()),
                }
                return;
            }
            let mut exchange = RecordedExchange::start(trace.recording(), &self.errors.scrubber, &url, &body);
            let request = |key| self.request(url.clone(), body.clone(), &more, key).headers(trace.headers());
            let sent = match &self.key {
                None => self.send(request(HeaderMap::new()), request_id, trace.owner()).await,
                Some(changing) => {
                    let signed = |key: &RequestKey| {
                        key.secrets().for_each(|secret| self.errors.scrubber.learn(secret));
                        let headers = changing.headers(key, &url, &body);
                        headers.map(&request).map_err(|error| self.errors.no_key(&error))
                    };
                    self.send_with_key(changing, signed, request_id, trace.owner()).await
                }
            };
            if let Some(id) = request_id.get() {
                trace.set_request_id(id);
            }
            match sent {
                Ok(SentResponse::Whole(body)) => {
                    let event = ServerEvent { name: None, id: None, data: body, is_cut_off: false };
                    exchange.event(&event);
                    let no_answer = self.errors.no_events("JSON", event.data.as_bytes());
                    yield Ok(event);
                    // Not reached if the event completes the answer.
                    yield Err(no_answer);
                }
                Ok(SentResponse::Stream(mut events)) => {
                    while let Some(event) = events.next().await {
                        let event = event.map_err(|fault| self.errors.body_failed(fault));
                        match &event {
                            Ok(event) => exchange.event(event),
                            Err(failure) => exchange.failed(failure),
                        }
                        yield event;
                    }
                }
                Err(failure) => {
                    exchange.failed(&failure);
                    yield Err(failure);
                }
            }
        }
    }

    /// Sends a request. A key that the provider refuses is renewed once.
    async fn send_with_key(
        &self,
        changing: &ChangingKey,
        signed: impl Fn(&RequestKey) -> Result<RequestBuilder, AttemptError>,
        request_id: &OnceLock<String>,
        owner: &Arc<str>,
    ) -> Result<SentResponse, AttemptError> {
        let asked_at = Instant::now();
        let key = changing.current().await.map_err(|error| self.errors.no_key(&error))?;
        let sent = self.send(signed(&key)?, request_id, owner).await;
        match &sent {
            Err(failure) if failure.is_unauthorized() => {
                match changing.after_refusal(&key, asked_at).await {
                    Some(other) => self.send(signed(&other)?, request_id, owner).await,
                    None => sent,
                }
            }
            _ => sent,
        }
    }

    /// Sends a request. Fails unless the response is a stream of events, or JSON, which some
    /// servers send instead. `request_id` gets the provider's id of the request.
    async fn send(
        &self,
        request: RequestBuilder,
        request_id: &OnceLock<String>,
        owner: &Arc<str>,
    ) -> Result<SentResponse, AttemptError> {
        let again = request.try_clone();
        let mut sent = timeout(self.idle_timeout, request.send()).await;
        // The server closed a connection of the pool, as llama.cpp does after each stream, although
        // it announces a keep-alive of 5 s.
        if let (Ok(Err(error)), Some(again)) = (&sent, again)
            && !error.is_connect()
        {
            sent = timeout(self.idle_timeout, again.send()).await;
        }
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.errors.unreachable(error)),
            Err(_) => return Err(self.errors.silent(self.idle_timeout)),
        };
        if let Some(id) = self.errors.request_id(response.headers()) {
            let _ = request_id.set(id);
        }
        let status = response.status();
        if status != StatusCode::OK {
            let headers = response.headers().clone();
            let body = read_excerpt(response, MAX_ERROR_BYTES, ERROR_TIMEOUT).await;
            let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let wait = retry::requested_wait(&headers, &body);
            return Err(self.errors.refused(status, kind.unwrap_or_default(), wait, &body));
        }
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let limits =
            StreamLimits { max_event_bytes: self.max_event_bytes, idle_timeout: self.idle_timeout };
        if essence(&content_type) == "application/vnd.amazon.eventstream" {
            return Ok(SentResponse::Stream(aws_events(response, limits, owner)));
        }
        let (form, response) = match timeout(self.idle_timeout, body_form(response)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(self.errors.interrupted(&error.to_string())),
            Err(_) => return Err(self.errors.silent(self.idle_timeout)),
        };
        match form {
            BodyForm::Events => Ok(SentResponse::Stream(provider_events(response, limits, owner))),
            BodyForm::Json => {
                match timeout(self.idle_timeout, read_whole(response, self.max_event_bytes)).await {
                    Ok(Ok(body)) => {
                        Ok(SentResponse::Whole(String::from_utf8_lossy(&body).into_owned()))
                    }
                    Ok(Err(error)) => Err(self.errors.interrupted(&error.to_string())),
                    Err(_) => Err(self.errors.silent(self.idle_timeout)),
                }
            }
            BodyForm::Other => {
                let body = read_excerpt(response, MAX_ERROR_BYTES, ERROR_TIMEOUT).await;
                Err(self.errors.no_events(&content_type, &body))
            }
        }
    }

    fn request(&self, url: Url, body: Bytes, more: &HeaderMap, key: HeaderMap) -> RequestBuilder {
        let mut headers = self.headers.clone();
        headers.extend(key);
        headers.extend(more.clone());
        self.client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .headers(headers)
            .body(body)
    }

    fn decode<D: Decoder>(
        &self,
        decoder: &mut D,
        event: &ServerEvent,
        output: &mut AnswerEvents,
    ) -> Result<DecodeStep, AttemptError> {
        let name = event.name.as_deref();
        let mut step = decoder.event(name, &event.data, output);
        let mut has_halves = false;
        // A decoder does not change if it cannot parse an event.
        if matches!(step, Err(DecodeFault::Malformed(_)))
            && let Some(lenient) = lenient(&event.data)
        {
            report(lenient.repair, Partner::Model);
            has_halves = lenient.has_halves;
            step = decoder.event(name, &lenient.text, output);
        }
        if matches!(step, Ok(DecodeStep::Complete)) && !decoder.finish(output) {
            return Err(self.errors.interrupted("the answer ended too early"));
        }
        output.join_halves(has_halves);
        match step {
            Ok(step) => Ok(step),
            // The event is invalid because it was cut off.
            Err(DecodeFault::Malformed(_)) if event.is_cut_off => {
                Err(self.errors.interrupted("the stream ended within an event"))
            }
            Err(fault) => Err(self.errors.answer_failed(fault, output.has_answer)),
        }
    }
}

/// Returns the names of members and of the members of their objects.
fn member_names(members: &JsonObject) -> Arc<[String]> {
    let inner = members.values().filter_map(Value::as_object).flat_map(JsonObject::keys);
    members.keys().chain(inner).cloned().collect()
}
