//! Events and messages for the client of a request: with URLs in place of the names of files, which only stored messages have.

use super::{App, Caller};
use crate::{
    auth::owner_of,
    files::{FileUrls, Files, UrlSigner, event_names_files, event_of_line},
    protocol::{Event, encode::Encoder},
};

/// Makes the URLs of files for a client. They are seldom needed, so nothing is made before.
#[derive(Clone)]
pub(crate) struct ClientFiles {
    files: Files,
    /// `None` while the store is not available.
    signer: Option<UrlSigner>,
    caller: Caller,
}

impl ClientFiles {
    /// Returns `None` for a server that keeps no files.
    pub(crate) async fn of(app: &App, caller: &Caller) -> Option<Self> {
        let files = app.threads().and_then(|threads| threads.files())?;
        let signer = files.signer().await;
        let signer = signer.inspect_err(|error| tracing::warn!(?error, "the URLs of files cannot be signed now")).ok();
        Some(Self { files: files.clone(), signer, caller: caller.clone() })
    }

    pub(crate) fn urls(&self) -> FileUrls {
        let owner = owner_of(self.caller.principal().as_ref());
        FileUrls::new(&self.files, self.signer, owner, || self.caller.reached_at().url())
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
    pub(crate) async fn new(app: &App, caller: &Caller, encoder: Encoder) -> Self {
        Self { encoder, files: ClientFiles::of(app, caller).await }
    }

    pub(crate) fn media_type(&self) -> &'static str {
        self.encoder.media_type()
    }

    /// Appends an event.
    pub(crate) fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self.files.as_ref().and_then(|files| files.presented(event)) {
            Some(presented) => self.encoder.event(&presented, out),
            None => self.encoder.event(event, out),
        }
    }

    /// Appends an event of a run's log, which is one line of JSON.
    pub(crate) fn line(&mut self, json: &str, out: &mut Vec<u8>) {
        match self.files.as_ref().and_then(|files| Some(files.owned(event_of_line(json)?))) {
            Some(presented) => self.encoder.event(&presented, out),
            None => self.encoder.line(json, out),
        }
    }
}
