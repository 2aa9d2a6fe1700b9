//! Requests to a provider over HTTP, with limits on silence and memory, retries, and errors without secrets. There is
//! no background task: dropping the stream ends the request and closes its connection.

mod connection;
mod decode;
mod failure;
mod head;
mod retry;
mod scrub;

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{
    HeaderMap,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::{Client, Url};

pub use connection::{Connection, SetupError};
pub(in crate::llm) use decode::{AnswerEvents, DecodeError, DecodeStep, Decoder, FailureKind};

use self::{
    failure::{AttemptError, ProviderErrors},
    retry::Retry,
};
use crate::{
    llm::ModelStream,
    upstream::{
        ClientOptions, client,
        events::{ServerEvent, StreamLimits, events},
    },
};

pub(in crate::llm) struct Transport {
    client: Client,
    url: Url,
    headers: HeaderMap,
    errors: ProviderErrors,
    options: Connection,
}

impl Transport {
    /// `url` was made from the connection's base URL. The connection's headers replace those in `headers`.
    pub(in crate::llm) fn new(options: Connection, url: Url, mut headers: HeaderMap) -> Result<Self, SetupError> {
        headers.extend(options.header_map()?);
        let client = client(&ClientOptions { connect_timeout: options.connect_timeout }).map_err(SetupError::Tls)?;
        let errors = ProviderErrors::new(&url, options.secrets(&url));
        Ok(Self { client, url, headers, errors, options })
    }

    pub(in crate::llm) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Sends `body`, which is JSON. Each attempt has a new decoder. `more` are headers of this request alone.
    pub(in crate::llm) fn stream<D: Decoder>(
        self: Arc<Self>,
        body: Bytes,
        more: HeaderMap,
        decoder: impl Fn() -> D + Send + 'static,
    ) -> ModelStream {
        Box::pin(async_stream::stream! {
            let mut retries = 0;
            loop {
                let mut output = AnswerEvents::default();
                let mut answer = Box::pin(self.attempt(body.clone(), more.clone()));
                let mut decoder = decoder();
                let failure = loop {
                    let step = match answer.next().await {
                        Some(Ok(event)) => self.decode(&mut decoder, &event, &mut output),
                        // A stop reason completes an answer, even if the connection broke after it.
                        Some(Err(_)) | None if decoder.finish(&mut output) => Ok(DecodeStep::Complete),
                        Some(Err(failure)) => Err(failure),
                        None => Err(self.errors.interrupted("the stream ended before the answer did")),
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
                    _ if output.has_answer || retries >= self.options.max_retries => None,
                    Retry::Never => None,
                    Retry::Backoff => Some(retry::backoff(retries)),
                    Retry::After(wait) => (wait <= retry::MAX_WAIT).then_some(wait),
                };
                let Some(wait) = wait else {
                    yield Err(failure.error);
                    return;
                };
                retries += 1;
                tracing::warn!(error = ?failure.error, retries, ?wait, "a model provider failed; trying again");
                tokio::time::sleep(wait).await;
            }
        })
    }

    fn attempt(
        &self,
        body: Bytes,
        more: HeaderMap,
    ) -> impl futures::Stream<Item = Result<ServerEvent, AttemptError>> + Send + use<'_> {
        async_stream::stream! {
            let mut headers = self.headers.clone();
            headers.extend(more);
            let request = self
                .client
                .post(self.url.clone())
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "text/event-stream")
                .headers(headers)
                .body(body);
            match head::send(request, self.options.idle_timeout, &self.errors).await {
                Ok(response) => {
                    let limits = StreamLimits {
                        max_event_bytes: self.options.max_event_bytes,
                        idle_timeout: self.options.idle_timeout,
                    };
                    let mut events = events(response, limits);
                    while let Some(event) = events.next().await {
                        yield event.map_err(|fault| self.errors.body_failed(fault));
                    }
                }
                Err(failure) => yield Err(failure),
            }
        }
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
            Err(DecodeError::Malformed(_)) if event.is_cut_off => {
                Err(self.errors.interrupted("the stream ended within an event"))
            }
            Err(fault) => Err(self.errors.answer_failed(fault, output.has_answer)),
        }
    }
}
