//! Reads request bodies, with limits on size, time and pieces, and within the [budget](agui_base::memory_budget) of all bodies.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    http::{header, request::Parts},
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use super::middleware::Caller;
use crate::http::{error::ApiError, response_budget::CountedBytes, state::App};
use agui_agent::host::owner_of;
use agui_base::{
    deadline::deadline,
    memory_budget::{MemoryBudget, SMALL_BYTES},
};
use agui_protocol::decode::decode_members;

/// A client that is still sending gets the response in place of a broken connection if up to this much is read and
/// discarded, within this time, and without a pause.
const MAX_DISCARDED_BYTES: usize = 64 * 1024 * 1024;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
const DISCARD_PAUSE: Duration = Duration::from_secs(1);
/// The least average rate of a body after `body_timeout`.
const MIN_BYTES_PER_SECOND: u64 = 16 * 1024;
/// Each piece, such as a chunk, costs about a microsecond, whatever its size. Above this number of pieces, they must
/// have an average of [`MIN_PIECE_BYTES`].
const FREE_PIECES: usize = 16 * 1024;
const MIN_PIECE_BYTES: usize = 64;

/// Reads a body of at most `max_body_bytes`. Its memory counts towards the budget until the last clone is dropped.
pub(crate) async fn read(app: &App, head: &Parts, body: Body) -> Result<Bytes, ApiError> {
    read_at_most(app, head, &owner_in(head), body, app.options.max_body_bytes).await
}

/// Reads the export of a thread, which may be larger than other bodies.
pub(crate) async fn read_export(app: &App, head: &Parts, body: Body) -> Result<Bytes, ApiError> {
    let budget = &app.import_budget;
    read_into(budget, app.options.body_timeout, head, &owner_in(head), body, budget.largest).await
}

/// Reads the body of a route that needs only a few members: at most 64 KiB.
pub(crate) async fn read_small(app: &App, request: Request) -> Result<Bytes, ApiError> {
    let (head, body) = request.into_parts();
    read_at_most(app, &head, &owner_in(&head), body, app.options.max_body_bytes.min(SMALL_BYTES))
        .await
}

fn owner_in(head: &Parts) -> Arc<str> {
    owner_of(head.extensions.get::<Caller>().and_then(|caller| caller.principal.as_ref()))
}

/// Decodes a body that a request may leave out.
pub(crate) fn decode_optional<T: Default + DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() { Ok(T::default()) } else { Ok(decode_members(body)?) }
}

/// Reads a body of at most `max_bytes`. It has `body_timeout`, and more time for what has arrived: a client that makes progress is
/// not cut, and one that sends nothing more does not keep its memory.
pub(crate) async fn read_at_most(
    app: &App,
    head: &Parts,
    owner: &Arc<str>,
    body: Body,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    read_into(&app.body_budget, app.options.body_timeout, head, owner, body, max_bytes).await
}

async fn read_into(
    budget: &MemoryBudget,
    body_timeout: Duration,
    head: &Parts,
    owner: &Arc<str>,
    body: Body,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    let patience = (Instant::now(), body_timeout);
    let mut reader = Reader { body, pieces: 0, bytes: 0, max_bytes, patience };
    let error = match collect(&mut reader, budget, owner).await {
        Ok(body) => return Ok(body),
        Err(error) => error,
    };
    // A client that waits for `100 Continue` sends nothing that would have to be discarded.
    let waits = reader.pieces == 0 && head.headers.contains_key(header::EXPECT);
    if !waits && matches!(error, ApiError::BodyTooLarge(_) | ApiError::TooManyBodyBytes) {
        let _ = timeout(DISCARD_TIMEOUT, reader.discard()).await;
    }
    Err(error)
}

async fn collect(
    reader: &mut Reader,
    budget: &MemoryBudget,
    owner: &Arc<str>,
) -> Result<Bytes, ApiError> {
    let declared = usize::try_from(reader.body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > reader.max_bytes {
        return Err(ApiError::BodyTooLarge(reader.max_bytes));
    }
    let Some(first) = reader.next().await? else { return Ok(Bytes::new()) };
    // A small body is one piece. It is not copied, and it is decoded before anything else is awaited.
    if reader.body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = Growing::new(budget, owner, declared);
    whole.push(&first, reader.max_bytes).await?;
    drop(first);
    while let Some(piece) = reader.next().await? {
        whole.push(&piece, reader.max_bytes).await?;
    }
    Ok(Bytes::from_owner(whole.buffer))
}

struct Reader {
    body: Body,
    pieces: usize,
    bytes: usize,
    max_bytes: usize,
    /// The beginning, and the time that the body has beside that for its bytes.
    patience: (Instant, Duration),
}

impl Reader {
    /// Returns `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        while let Some(frame) = timeout_at(self.deadline(), self.body.frame())
            .await
            .map_err(|_| ApiError::BodyTimeout)?
        {
            let frame = frame.map_err(|_| ApiError::BodyIncomplete)?;
            // Trailers are ignored.
            let Ok(piece) = frame.into_data() else { continue };
            self.count(piece.len())?;
            if self.bytes > self.max_bytes {
                return Err(ApiError::BodyTooLarge(self.max_bytes));
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    fn deadline(&self) -> Instant {
        let (begin, time) = self.patience;
        let for_bytes = Duration::from_millis(self.bytes as u64 * 1000 / MIN_BYTES_PER_SECOND);
        deadline(begin, time.saturating_add(for_bytes))
    }

    fn count(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.pieces += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.pieces <= FREE_PIECES + self.bytes / MIN_PIECE_BYTES {
            Ok(())
        } else {
            Err(ApiError::BodyInTinyPieces(MIN_PIECE_BYTES))
        }
    }

    async fn discard(&mut self) {
        let end = self.bytes.saturating_add(MAX_DISCARDED_BYTES);
        while self.bytes < end {
            let Ok(Some(Ok(frame))) = timeout(DISCARD_PAUSE, self.body.frame()).await else {
                break;
            };
            if self.count(frame.data_ref().map_or(0, Bytes::len)).is_err() {
                break;
            }
        }
    }
}

/// A body of more than one piece.
struct Growing<'a> {
    budget: &'a MemoryBudget,
    owner: &'a Arc<str>,
    declared: usize,
    /// The size that there are permits for.
    capacity: usize,
    buffer: CountedBytes,
}

impl<'a> Growing<'a> {
    fn new(budget: &'a MemoryBudget, owner: &'a Arc<str>, declared: usize) -> Self {
        Self { budget, owner, declared, capacity: 0, buffer: CountedBytes::default() }
    }

    async fn push(&mut self, piece: &[u8], max_bytes: usize) -> Result<(), ApiError> {
        let needed = self.buffer.bytes.len() + piece.len();
        while needed > self.capacity {
            self.grow(needed, max_bytes).await?;
        }
        self.buffer.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// A large body of a declared size takes all its memory at once, so that bodies do not wait for each other with half of
    /// what they need.
    async fn grow(&mut self, needed: usize, max_bytes: usize) -> Result<(), ApiError> {
        let capacity = match (self.capacity, self.declared) {
            (0, 0) => SMALL_BYTES,
            (0, declared) => declared.min(SMALL_BYTES),
            (_, 0) => needed.max(2 * self.capacity).min(max_bytes),
            (_, declared) => declared.max(needed),
        };
        let more = capacity - self.capacity;
        let permit = match self.capacity {
            0 => self.budget.small(self.owner, more).await,
            _ => self.budget.large(self.owner, more).await,
        };
        self.buffer.permits.push(permit.map_err(|_| ApiError::TooManyBodyBytes)?);
        self.buffer.bytes.reserve_exact(capacity - self.buffer.bytes.len());
        self.capacity = capacity;
        Ok(())
    }
}
