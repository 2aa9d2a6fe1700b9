//! Records a request to a provider and its answer in the recording of the run, without known secrets.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use reqwest::Url;

use super::failure::AttemptError;
use agui_base::upstream::{events::ServerEvent, scrub::Scrubber};
use agui_observe::{
    recording::{ExchangeError, ProviderExchange, ProviderReply},
    recordings::LiveRecording,
};

/// The largest recorded request, in bytes. For a larger one, only the answer is recorded.
const MAX_REQUEST_BYTES: usize = 2 * 1024 * 1024;
/// The largest recorded part of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// A running exchange. It is recorded when it is dropped.
pub(super) struct RecordedExchange(Option<ExchangeParts>);

struct ExchangeParts {
    recording: LiveRecording,
    scrubber: Arc<Scrubber>,
    begun: Instant,
    body: Bytes,
    answer_bytes: usize,
    exchange: ProviderExchange,
}

impl RecordedExchange {
    /// Begins an exchange. It is recorded only if the recording of the run includes exchanges.
    pub(super) fn start(
        recording: Option<&LiveRecording>,
        scrubber: &Arc<Scrubber>,
        url: &Url,
        body: &Bytes,
    ) -> Self {
        let Some(recording) = recording.filter(|recording| recording.has_exchanges()) else {
            return Self(None);
        };
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        // The other parts of a URL can have keys.
        let url = format!("{}{port}{}", url.host_str().unwrap_or_default(), url.path());
        Self(Some(ExchangeParts {
            recording: recording.clone(),
            scrubber: scrubber.clone(),
            begun: Instant::now(),
            body: if body.len() <= MAX_REQUEST_BYTES { body.clone() } else { Bytes::new() },
            answer_bytes: 0,
            exchange: ProviderExchange {
                url,
                request: None,
                events: Vec::new(),
                cut: false,
                error: None,
            },
        }))
    }

    pub(super) fn event(&mut self, event: &ServerEvent) {
        let Some(parts) = &mut self.0 else { return };
        parts.answer_bytes += event.data.len();
        if parts.answer_bytes > MAX_ANSWER_BYTES {
            parts.exchange.cut = true;
            return;
        }
        let ms = u64::try_from(parts.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        parts.exchange.events.push(ProviderReply {
            ms,
            name: event.name.clone(),
            data: event.data.clone(),
        });
    }

    pub(super) fn failed(&mut self, failure: &AttemptError) {
        let Some(parts) = &mut self.0 else { return };
        let (code, message) = (failure.error.code().to_owned(), failure.error.message().to_owned());
        parts.exchange.error = Some(ExchangeError { code, message });
    }
}

impl Drop for RecordedExchange {
    fn drop(&mut self) {
        let Some(ExchangeParts { recording, scrubber, begun, body, answer_bytes, mut exchange }) =
            self.0.take()
        else {
            return;
        };
        // Secrets are looked for on the writer's thread, because that takes milliseconds for a long conversation.
        recording.exchange(begun, body.len() + answer_bytes, move || {
            let text = String::from_utf8_lossy(&body);
            exchange.request = serde_json::from_str(&scrubber.scrub_known(&text)).ok();
            exchange.url = scrubber.scrub_known(&exchange.url);
            for event in &mut exchange.events {
                event.data = scrubber.scrub_known(&event.data);
            }
            exchange
        });
    }
}
