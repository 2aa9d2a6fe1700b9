//! The bytes of a file in the chunks of a database.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

use super::{
    StoreError, StoreResult, damage::DbRow, files::StoredFile, read_permits::ReadKind, rows,
};
use agui_base::text::hex;

/// The bytes of a chunk. Only the last one of a file is shorter.
const CHUNK_BYTES: usize = 256 * 1024;
/// Longer parts take the permits of whole threads, because they can take much memory.
const MAX_PAGE_BYTES: u64 = 1 << 20;

/// A chunk to write.
pub(super) struct Chunk {
    pub(super) number: i64,
    /// The SHA-256 of the bytes, in hex.
    pub(super) digest: String,
    pub(super) body: Bytes,
}

/// Returns the chunks of a file, in their order.
pub(super) fn chunks(bytes: &Bytes) -> impl Iterator<Item = Chunk> {
    let starts = (0..bytes.len()).step_by(CHUNK_BYTES);
    starts.zip(0..).map(|(start, number)| {
        let body = bytes.slice(start..bytes.len().min(start + CHUNK_BYTES));
        Chunk { number, digest: hex(&Sha256::digest(&body)), body }
    })
}

/// Returns the bytes of a row's chunk. Reports damaged bytes, and returns `None` for them.
pub(super) fn read_chunk(row: &impl DbRow) -> StoreResult<Option<&[u8]>> {
    let digest = rows::text(row, "digest")?;
    let checked = row.bytes("body")?.and_then(|body| match body {
        Some(body) if hex(&Sha256::digest(body)) == digest => Ok(Some(body)),
        _ => Err("not the bytes of this digest".to_owned()),
    });
    Ok(super::damage::readable(row, "body", checked))
}

/// A part of a file that is read chunk by chunk.
pub(super) struct FilePart {
    range: Range<usize>,
    next: i64,
    bytes: BytesMut,
}

impl FilePart {
    pub(super) fn new(file: &StoredFile, range: &Range<u64>) -> Self {
        let end = usize::try_from(range.end.min(file.bytes)).unwrap_or(usize::MAX);
        let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
        Self { range: start..end, next: (start / CHUNK_BYTES) as i64, bytes: BytesMut::new() }
    }

    pub(super) fn read_kind(&self) -> ReadKind {
        if self.range.len() as u64 > MAX_PAGE_BYTES { ReadKind::Thread } else { ReadKind::Page }
    }

    /// Returns the numbers of the first and the last chunk.
    pub(super) fn numbers(&self) -> (i64, i64) {
        (self.next, (self.range.end.saturating_sub(1) / CHUNK_BYTES) as i64)
    }

    /// Appends the next chunk.
    pub(super) fn push(&mut self, row: &impl DbRow) -> StoreResult<()> {
        let chunk = read_chunk(row)?
            .filter(|_| rows::number::<i64>(row, "number").is_ok_and(|number| number == self.next));
        let Some(chunk) = chunk else { return Err(self.damaged()) };
        let start = self.next as usize * CHUNK_BYTES;
        let [from, to] =
            [self.range.start, self.range.end].map(|at| at.saturating_sub(start).min(chunk.len()));
        self.bytes.extend_from_slice(&chunk[from..to]);
        self.next += 1;
        Ok(())
    }

    pub(super) fn into_bytes(self) -> StoreResult<Bytes> {
        if self.bytes.len() == self.range.len() {
            Ok(self.bytes.freeze())
        } else {
            Err(self.damaged())
        }
    }

    fn damaged(&self) -> StoreError {
        StoreError::Failed(
            format!(
                "chunk {} of a file is missing or damaged: see agui-server check --store",
                self.next
            )
            .into(),
        )
    }
}
