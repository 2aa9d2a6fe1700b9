//! Requests to a provider over HTTP, with limits on silence and memory, retries, and errors without secrets. There is
//! no background task: dropping the stream ends the request and closes its connection.

mod connection;
mod context;
mod decode;
mod exchange;
mod failure;
mod head;
pub(in crate::llm) mod json;
mod replay;
mod retry;
mod scrub;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::StreamExt;
use http::{
    HeaderMap,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

pub(in crate::llm) use connection::is_of_domain;
pub use connection::{Connection, SetupError};
pub(in crate::llm) use decode::{AnswerEvents, DecodeFault, DecodeStep, Decoder, FailureKind, call_start};
pub(crate) use replay::RecordedApi;
pub(crate) use replay::RecordedExchanges;

use self::{
    exchange::RecordedExchange,
    failure::{AttemptError, ProviderErrors},
    retry::Retry,
};
use crate::{
    llm::{CallTrace, ModelEvent, ModelStream, SkippedAttachment},
    upstream::{
        ClientOptions, client,
        events::{ServerEvent, StreamLimits, provider_events},
    },
};

/// A request to a provider.
#[derive(Debug, Default)]
pub(in crate::llm) struct ProviderRequest {
    pub(in crate::llm) json: Value,
    /// The attachments that the request cannot contain. They are reported before the answer.
    pub(in crate::llm) skipped: Vec<SkippedAttachment>,
    /// `None` if all requests have the transport's.
    pub(in crate::llm) url: Option<Url>,
    /// Headers of this request alone.
    pub(in crate::llm) headers: HeaderMap,
}

/// The largest event of a provider whose API sets no other default.
const MAX_EVENT_BYTES: usize = 1 << 20;

pub(in crate::llm) struct Transport {
    client: Client,
    url: Url,
    headers: HeaderMap,
    errors: ProviderErrors,
    options: Connection,
    exchanges: Option<RecordedExchanges>,
}

impl Transport {
    /// `url` was made from the connection's base URL. The connection's headers replace those in `headers`.
    pub(in crate::llm) fn new(
        options: Connection,
        exchanges: Option<RecordedExchanges>,
        url: Url,
        mut headers: HeaderMap,
    ) -> Result<Self, SetupError> {
        headers.extend(options.header_map()?);
        let client = client(&ClientOptions { connect_timeout: options.connect_timeout }).map_err(SetupError::Tls)?;
        let errors = ProviderErrors::new(&url, options.secrets(&url));
        Ok(Self { client, url, headers, errors, options, exchanges })
    }

    pub(in crate::llm) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Sends a request. Each attempt has a new decoder. `trace` gets the retries and the provider's id of the request, and
    /// has the place in a trace that is passed on.
    pub(in crate::llm) fn stream<D: Decoder>(
        self: &Arc<Self>,
        request: &ProviderRequest,
        trace: CallTrace,
        decoder: impl Fn() -> D + Send + 'static,
    ) -> ModelStream {
        let ProviderRequest { json, skipped, url, headers: more } = request;
        let (transport, body) = (self.clone(), Bytes::from(json.to_string()));
        let (skipped, url, more) = (skipped.clone(), url.clone(), more.clone());
        Box::pin(async_stream::stream! {
            let url = url.unwrap_or_else(|| transport.url.clone());
            for attachment in skipped {
                yield Ok(ModelEvent::Skipped(attachment));
            }
            let mut retries = 0;
            loop {
                let mut output = AnswerEvents::default();
                let request_id = OnceLock::new();
                let mut answer = Box::pin(transport.attempt(url.clone(), body.clone(), more.clone(), &request_id, &trace));
                let mut decoder = decoder();
                let failure = loop {
                    let step = match answer.next().await {
                        Some(Ok(event)) => transport.decode(&mut decoder, &event, &mut output),
                        // A stop reason completes an answer, even if the connection broke after it.
                        Some(Err(_)) | None if decoder.finish(&mut output) => Ok(DecodeStep::Complete),
                        Some(Err(failure)) => Err(failure),
                        None => Err(transport.errors.interrupted("the stream ended before the answer did")),
                    };
                    if matches!(step, Ok(DecodeStep::Complete)) {
                        // After the end of the body is read, the connection can serve the agent's next request
                        // without a handshake. The end is nearly always there already.
                        let _ = tokio::time::timeout(retry::END_OF_BODY_TIMEOUT, answer.next()).await;
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
                let wait = match failure.retry {
                    _ if output.has_answer || retries >= transport.options.max_retries => None,
                    Retry::Never => None,
                    Retry::Backoff => Some(retry::backoff(retries)),
                    Retry::After(wait) => (wait <= retry::MAX_WAIT).then_some(wait),
                };
                let error = failure.into_error(request_id.get().map(String::as_str));
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
            let request = self.request(url, body, more).headers(trace.headers());
            let sent = head::send(request, self.options.idle_timeout, &self.errors, request_id).await;
            if let Some(id) = request_id.get() {
                trace.set_request_id(id);
            }
            match sent {
                Ok(response) => {
                    let limits = StreamLimits {
                        max_event_bytes: self.options.max_event_bytes.unwrap_or(MAX_EVENT_BYTES),
                        idle_timeout: self.options.idle_timeout,
                    };
                    let mut events = provider_events(response, limits);
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

    fn request(&self, url: Url, body: Bytes, more: HeaderMap) -> RequestBuilder {
        let mut headers = self.headers.clone();
        headers.extend(more);
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
        let step = decoder.event(event.name.as_deref(), &event.data, output);
        match step {
            Ok(DecodeStep::Complete) if !decoder.finish(output) => {
                Err(self.errors.interrupted("the answer ended too early"))
            }
            Ok(step) => Ok(step),
            // The provider did not write the event like this.
            Err(DecodeFault::Malformed(_)) if event.is_cut_off => {
                Err(self.errors.interrupted("the stream ended within an event"))
            }
            Err(fault) => Err(self.errors.answer_failed(fault, output.has_answer)),
        }
    }
}
