//! Answers by `Idempotency-Key`: a request that comes again with its key gets the first one's
//! answer, also while that is being made.
//!
//! A request with a key has a task that makes its answer, and every response follows that answer.
//! So the run does not end with its client, which may come again.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use async_stream::stream;
use axum::{
    Json,
    body::Body,
    http::HeaderMap,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::{
    answer::{AnswerEnd, CompletionReader, read_answer},
    chunks::{AnswerHead, ChunkWriter},
    error::FailedRun,
};
use crate::http::{
    ApiError, ApiResult,
    sse_response::{break_at_expiry, broken, respond, with_timeout},
};
use agui_agent::Principal;
use agui_base::permits::{Permit, Permits};
use agui_protocol::{Event, encode::SSE_MEDIA_TYPE};

/// The time for which a key holds after its answer was complete.
const KEY_LIFETIME: Duration = Duration::from_secs(600);
/// The keys of all owners, and those of one. The oldest key of an owner makes room for its newest.
const MAX_KEYS: usize = 1024;
const MAX_KEYS_OF_OWNER: usize = 256;
/// The largest answer that is kept, in bytes: 64 MiB for all keys together.
const MAX_KEPT_BYTES: usize = 64 * 1024;
const MAX_KEY_BYTES: usize = 255;
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

type OwnedKey = (Arc<str>, String);

/// The answers of all owners by their keys.
pub(super) struct KeyedAnswers {
    entries: Mutex<HashMap<OwnedKey, KeyEntry>>,
    permits: Arc<Permits>,
}

struct KeyEntry {
    /// The digest of the request's body.
    digest: [u8; 32],
    /// `None` while the answer is being made.
    expires: Option<Instant>,
    /// `None` for an answer that was too large.
    answer: Option<Arc<KeyedAnswer>>,
    _permit: Permit,
}

/// An answer that several responses can follow.
pub(super) struct KeyedAnswer {
    pub(super) head: AnswerHead,
    said: watch::Sender<SaidText>,
}

#[derive(Default)]
struct SaidText {
    text: String,
    end: Option<AnswerEnd>,
}

/// The answer for a key.
pub(super) enum KeyUse {
    /// The key is new: the caller makes the answer.
    New(Arc<KeyedAnswer>),
    /// The request has come before.
    Known(Arc<KeyedAnswer>),
}

/// Returns the key of a request.
pub(super) fn key_of(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
    let expected = "1 to 255 visible ASCII characters";
    let refusal = || ApiError::InvalidParameter { name: "Idempotency-Key", expected };
    key.map(|key| Some(key.to_owned())).ok_or_else(refusal)
}

impl KeyedAnswers {
    pub(super) fn new() -> Self {
        let permits = Permits::new(MAX_KEYS, Some(MAX_KEYS_OF_OWNER));
        Self { entries: Mutex::default(), permits }
    }

    /// Returns the answer for a key. `head` is that of a new one.
    pub(super) fn enter(
        &self,
        key: &OwnedKey,
        digest: [u8; 32],
        head: AnswerHead,
    ) -> ApiResult<KeyUse> {
        let mut entries = self.entries.lock();
        let now = Instant::now();
        entries.retain(|_, entry| entry.expires.is_none_or(|expires| expires > now));
        match entries.get(key) {
            Some(entry) if entry.digest != digest => return Err(ApiError::IdempotencyKeyReused),
            Some(KeyEntry { answer: Some(answer), .. }) => {
                return Ok(KeyUse::Known(answer.clone()));
            }
            Some(_) => return Err(ApiError::AnswerNotKept),
            None => {}
        }
        let owner = &key.0;
        let permit = self.permits.try_take(owner, 1).or_else(|_| {
            let of_owner = entries.iter().filter(|(key, _)| key.0 == *owner);
            let ended = of_owner.filter_map(|(key, entry)| Some((entry.expires?, key.clone())));
            let (_, oldest) = ended.min().ok_or(ApiError::TooManyIdempotencyKeys)?;
            entries.remove(&oldest);
            self.permits.try_take(owner, 1).map_err(|_| ApiError::TooManyIdempotencyKeys)
        })?;
        let (said, _) = watch::channel(SaidText::default());
        let answer = Arc::new(KeyedAnswer { head, said });
        let entry =
            KeyEntry { digest, expires: None, answer: Some(answer.clone()), _permit: permit };
        entries.insert(key.clone(), entry);
        Ok(KeyUse::New(answer))
    }

    /// Forgets a key whose run has not begun.
    pub(super) fn forget(&self, key: &OwnedKey) {
        self.entries.lock().remove(key);
    }

    /// Begins the lifetime of a key, whose answer is complete.
    fn complete(&self, key: &OwnedKey, bytes: usize) {
        if let Some(entry) = self.entries.lock().get_mut(key) {
            entry.expires = Some(Instant::now() + KEY_LIFETIME);
            entry.answer.take_if(|_| bytes > MAX_KEPT_BYTES);
        }
    }

    /// Makes an answer of the events of its run.
    pub(super) async fn make(
        &self,
        key: &OwnedKey,
        answer: &KeyedAnswer,
        reader: CompletionReader,
        events: impl Stream<Item = io::Result<Option<Event>>>,
    ) {
        let mut bytes = 0;
        let end = read_answer(reader, events, |text| {
            bytes += text.len();
            answer.said.send_modify(|said| said.text.push_str(text));
        })
        .await;
        if let AnswerEnd::Finished(finished) = &end {
            bytes += finished.text.as_ref().map_or(0, String::len);
            bytes += finished.calls.iter().map(|call| call.function.arguments.len()).sum::<usize>();
        }
        self.complete(key, bytes);
        answer.said.send_modify(|said| said.end = Some(end));
    }
}

impl KeyedAnswer {
    /// Responds with the whole answer, when it is complete.
    pub(super) async fn document(&self) -> Response {
        let mut said = self.said.subscribe();
        let said = said.wait_for(|said| said.end.is_some()).await.ok();
        match said.as_ref().and_then(|said| Some((&said.text, said.end.as_ref()?))) {
            Some((text, end)) => respond_whole(&self.head, text, end),
            None => (&FailedRun::without_end()).into_response(),
        }
    }

    /// Responds with the chunks of the answer, from the first one on.
    pub(super) fn stream(
        self: Arc<Self>,
        includes_usage: bool,
        keep_alive: Option<Duration>,
        caller: Option<&Principal>,
    ) -> Response {
        let mut said = self.said.subscribe();
        let chunks = stream! {
            let mut writer = ChunkWriter::new(self.head.clone(), includes_usage);
            let (mut out, mut sent) = (Vec::new(), 0);
            writer.begin(&mut out);
            loop {
                let is_ended = {
                    let said = said.borrow_and_update();
                    let more = &said.text[sent..];
                    if !more.is_empty() {
                        writer.text(more, &mut out);
                    }
                    sent = said.text.len();
                    if let Some(end) = &said.end {
                        writer.end(end, &mut out);
                    }
                    said.end.is_some()
                };
                if !out.is_empty() {
                    yield Ok(Bytes::from(std::mem::take(&mut out)));
                }
                if is_ended {
                    break;
                }
                match with_timeout(keep_alive, said.changed()).await {
                    None => yield Ok(Bytes::from_static(KEEP_ALIVE)),
                    Some(Ok(())) => {}
                    Some(Err(_)) => {
                        yield Err(broken());
                        break;
                    }
                }
            }
        };
        respond(SSE_MEDIA_TYPE, Body::from_stream(break_at_expiry(caller, chunks)))
    }
}

/// Responds with a whole answer.
pub(super) fn respond_whole(head: &AnswerHead, text: &str, end: &AnswerEnd) -> Response {
    match end {
        AnswerEnd::Finished(finished) => Json(head.document(text, finished)).into_response(),
        AnswerEnd::Failed(failed) => failed.into_response(),
    }
}

#[cfg(test)]
mod tests;
