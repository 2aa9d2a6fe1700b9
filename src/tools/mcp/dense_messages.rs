//! Messages of an MCP server that are small as text and huge in memory.
//!
//! The protocol library tries each type of a result in turn, and takes 100 and more bytes for `{}`: a result of 14 MB
//! took 1.6 GB, and its connection's thread for seconds. So the values of a message are counted before it is parsed.

use std::borrow::Cow;

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde::{Deserialize, de::IgnoredAny};
use tokio::io::{
    self, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};

/// The largest message that is read, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The largest number of JSON values in a message.
const MAX_VALUES: usize = 100_000;
const PIPE_BYTES: usize = 64 << 10;

/// The answer to a request, of which the result is not read.
#[derive(Deserialize)]
struct Answer {
    id: RequestId,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// Returns what is read in place of a message: the message itself, or if it has more than [`MAX_VALUES`] an error that
/// answers the same request. `None` if it answers none.
pub(super) fn bounded(message: &[u8]) -> Option<Cow<'_, [u8]>> {
    if message.len() <= MAX_VALUES || has_few_values(message) {
        return Some(Cow::Borrowed(message));
    }
    tracing::warn!(
        bytes = message.len(),
        "a message of an MCP server has more than {MAX_VALUES} values and is not read"
    );
    let Ok(Answer { id, method: None }) = serde_json::from_slice(message) else { return None };
    let error = ErrorData::internal_error(format!("its answer has more than {MAX_VALUES} JSON values"), None);
    serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id))).ok().map(Cow::Owned)
}

/// Counts the message and what comes after each `[`, `{` and `,` outside of texts: an empty array counts as two.
fn has_few_values(message: &[u8]) -> bool {
    let (mut values, mut in_text, mut bytes) = (1, false, message.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_text => _ = bytes.next(),
            b'"' => in_text = !in_text,
            b'[' | b'{' | b',' if !in_text => {
                values += 1;
                if values > MAX_VALUES {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

/// Returns the lines of a process's stdout, each a message, without those that are too large.
pub(super) fn bounded_lines(stdout: impl AsyncRead + Unpin + Send + 'static) -> DuplexStream {
    let (read, write) = io::duplex(PIPE_BYTES);
    tokio::spawn(pass_on(BufReader::new(stdout), write));
    read
}

/// Ends when the process closes its stdout, or the connection is dropped.
async fn pass_on(mut stdout: BufReader<impl AsyncRead + Unpin>, mut connection: DuplexStream) -> io::Result<()> {
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        line.clear();
        let mut piece = (&mut stdout).take(MAX_MESSAGE_BYTES as u64);
        let length = tokio::select! {
            read = piece.read_until(b'\n', &mut line) => read?,
            // Nothing is written to it: this waits until it is dropped.
            _ = connection.read_u8() => return Ok(()),
        };
        if length == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n");
        if is_whole
            && !is_rest
            && let Some(message) = bounded(&line)
        {
            connection.write_all(&message).await?;
            if !message.ends_with(b"\n") {
                connection.write_all(b"\n").await?;
            }
        }
        is_rest = !is_whole;
    }
}
