//! Events and messages for the client of a request: with URLs in place of the names of files, which only stored messages have.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{App, Caller, accept::own_address::OwnAddress, client::ClientSigns};
use agui_agent::files::{FileUrls, UrlSigner, event_names_files, event_of_line};
use agui_protocol::{Event, Message, encode::Encoder};

/// The time that a request waits for the secret of the store, which only the first ones of a process need.
const SECRET_TIME: Duration = Duration::from_millis(250);

/// Makes the URLs of files for a client. They are seldom needed, so they are made on demand. It
/// holds no part of the store, which may be closed while a response is still open.
#[derive(Clone)]
pub(crate) struct ClientFiles {
    /// `None` while the store is not available.
    signer: Option<UrlSigner>,
    owner: Arc<str>,
    reached_at: OwnAddress,
}

impl ClientFiles {
    /// Returns `None` for a server that keeps no files.
    pub(crate) async fn for_caller(app: &App, caller: &Caller) -> Option<Self> {
        let files = app.threads.core.files.as_ref()?;
        let signer = timeout(SECRET_TIME, files.signer()).await.ok().and_then(Result::ok);
        if signer.is_none() {
            tracing::warn!("the URLs of files cannot be signed now: the store does not answer");
        }
        Some(Self { signer, owner: caller.owner(), reached_at: caller.reached_at.clone() })
    }

    pub(crate) fn urls(&self) -> FileUrls {
        FileUrls::new(self.signer, self.owner.clone(), &self.reached_at.url())
    }

    fn presented(&self, event: &Event) -> Option<Event> {
        event_names_files(event).then(|| self.owned(event.clone()))
    }

    fn owned(&self, mut event: Event) -> Event {
        self.urls().present_event(&mut event);
        event
    }
}

/// Writes the events of one run for one client.
pub(crate) struct ClientEncoder {
    pub(crate) encoder: Encoder,
    files: Option<ClientFiles>,
}

impl ClientEncoder {
    /// Returns the encoder for the client that a request shows.
    pub(crate) async fn for_client(app: &App, caller: &Caller, signs: &ClientSigns<'_>) -> Self {
        let encoder = app.clients.encoder(signs, &app.options.without_subagents);
        Self::new(app, caller, encoder).await
    }

    pub(crate) async fn new(app: &App, caller: &Caller, encoder: Encoder) -> Self {
        Self { encoder, files: ClientFiles::for_caller(app, caller).await }
    }

    pub(crate) fn media_type(&self) -> &'static str {
        self.encoder.media_type()
    }

    /// Replaces the names of files in messages by their URLs.
    pub(crate) fn present(&self, messages: &mut [Message]) {
        if let Some(files) = &self.files {
            files.urls().present(messages);
        }
    }

    /// Appends an event.
    pub(crate) fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self.files.as_ref().and_then(|files| files.presented(event)) {
            Some(presented) => self.encoder.event(&presented, out),
            None => self.encoder.event(event, out),
        }
    }

    /// Appends an event of a run's log, which is one line of JSON, after its number. An event that
    /// the client cannot read leaves no number.
    pub(crate) fn line(&mut self, json: &str, number: Option<u64>, out: &mut Vec<u8>) {
        let before = out.len();
        if let Some(number) = number {
            self.encoder.number(number, out);
        }
        let numbered = out.len();
        match self.files.as_ref().and_then(|files| Some(files.owned(event_of_line(json)?))) {
            Some(presented) => self.encoder.event(&presented, out),
            None => self.encoder.line(json, out),
        }
        if out.len() == numbered {
            out.truncate(before);
        }
    }
}
