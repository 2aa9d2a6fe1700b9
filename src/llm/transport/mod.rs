//! How a model is asked over HTTP: what all providers have in common.
//!
//! One POST, answered by a stream of server-sent events. [`Transport`] owns everything about it that has nothing to
//! do with the provider's JSON: limits on silence and on memory, retries, and errors in which there is nothing
//! secret. What the events mean is up to a [`Decoder`].
//!
//! Nothing runs beside the stream: whoever drops it drops the request, and with it the connection.

mod connection;
mod decode;
mod failure;
mod head;
mod retry;
mod scrub;

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::HeaderMap;
use reqwest::{Client, Url};

pub use connection::{Connection, SetupError};
pub(in crate::llm) use decode::{Decoder, Fault, Kind, Output, Step};

use self::{
    failure::{Failure, Peer},
    retry::Retry,
};
use crate::{
    llm::ModelStream,
    upstream::{
        ClientOptions, client,
        events::{ServerEvent, Watch, events},
    },
};

/// Asks one endpoint of one provider.
pub(in crate::llm) struct Transport {
    client: Client,
    url: Url,
    headers: HeaderMap,
    peer: Peer,
    options: Connection,
}

impl Transport {
    /// A transport to `url`, which was made from the connection's base URL. `headers` authenticate, and come before
    /// those of the connection, which may replace them.
    ///
    /// # Errors
    /// When a header cannot be sent or TLS cannot be set up.
    pub(in crate::llm) fn new(options: Connection, url: Url, mut headers: HeaderMap) -> Result<Self, SetupError> {
        headers.extend(options.header_map()?);
        let client = client(&ClientOptions { connect_timeout: options.connect_timeout }).map_err(SetupError::Tls)?;
        let peer = Peer::new(&url, options.secrets(&url));
        Ok(Self { client, url, headers, peer, options })
    }

    /// What is sent as this header with each request.
    pub(in crate::llm) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Sends `body`, JSON, and has the answer decoded by what `decoder` makes: a new one for each attempt. `more`
    /// are headers of this request alone.
    pub(in crate::llm) fn stream<D: Decoder>(
        self: Arc<Self>,
        body: Bytes,
        more: HeaderMap,
        decoder: impl Fn() -> D + Send + 'static,
    ) -> ModelStream {
        Box::pin(async_stream::stream! {
            let mut retries = 0;
            loop {
                let mut output = Output::default();
                let mut answer = Box::pin(self.attempt(body.clone(), more.clone()));
                let mut decoder = decoder();
                let failure = loop {
                    let step = match answer.next().await {
                        Some(Ok(event)) => self.decode(&mut decoder, &event, &mut output),
                        // An answer that has said how it ended is whole, whatever became of the connection.
                        Some(Err(_)) | None if decoder.finish(&mut output) => Ok(Step::Complete),
                        Some(Err(failure)) => Err(failure),
                        None => Err(self.peer.interrupted("the stream ended before the answer did")),
                    };
                    if matches!(step, Ok(Step::Complete)) {
                        // The end of the body is nearly always there already. Once it was read, the connection can
                        // serve the next request, which saves an agent the handshake at each of its turns.
                        let _ = tokio::time::timeout(retry::LINGER, answer.next()).await;
                    }
                    while let Some(event) = output.events.pop_front() {
                        yield Ok(event);
                    }
                    match step {
                        Ok(Step::More) => {}
                        Ok(Step::Complete) => return,
                        Err(failure) => break failure,
                    }
                };
                drop(answer);
                let wait = match failure.retry {
                    _ if output.spoken || retries >= self.options.max_retries => None,
                    Retry::Never => None,
                    Retry::Backoff => Some(retry::backoff(retries)),
                    Retry::After(wait) => (wait <= retry::LONGEST).then_some(wait),
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

    /// One attempt: the events of the answer, the last of which may be a failure.
    fn attempt(
        &self,
        body: Bytes,
        more: HeaderMap,
    ) -> impl futures::Stream<Item = Result<ServerEvent, Failure>> + Send + use<'_> {
        async_stream::stream! {
            match self.head(body, more).await {
                Ok(response) => {
                    let watch = Watch {
                        max_event_bytes: self.options.max_event_bytes,
                        idle: self.options.idle_timeout,
                    };
                    let mut events = events(response, watch);
                    while let Some(event) = events.next().await {
                        yield event.map_err(|fault| self.peer.body_failed(fault));
                    }
                }
                Err(failure) => yield Err(failure),
            }
        }
    }

    fn decode<D: Decoder>(&self, decoder: &mut D, event: &ServerEvent, output: &mut Output) -> Result<Step, Failure> {
        let step = decoder.event(event.name.as_deref(), &event.data, output);
        match step {
            Ok(Step::Complete) if !decoder.finish(output) => Err(self.peer.interrupted("the answer ended too early")),
            Ok(step) => Ok(step),
            // What breaks off in the middle of an event was no malformed event.
            Err(Fault::Malformed(_)) if event.last => Err(self.peer.interrupted("the stream ended within an event")),
            Err(fault) => Err(self.peer.answer_failed(fault, output.spoken)),
        }
    }
}
