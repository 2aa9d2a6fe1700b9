//! Messages of an MCP server that are small as text and huge in memory.
//!
//! The protocol library tries each type of a result in turn, and takes 100 and more bytes for `{}`: a result of 14 MB
//! took 1.6 GB, and its connection's thread for seconds. So the values of a message are counted before it is parsed.

use async_stream::try_stream;
use bytes::Bytes;
use futures::stream::BoxStream;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde::{Deserialize, de::IgnoredAny};
use tokio::io::{self, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio_util::io::StreamReader;

use crate::base::json_values::count_values;

/// The largest message that is read, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The largest number of JSON values in a message.
const MAX_VALUES: usize = 100_000;

/// The response to a request, of which the result is not read.
#[derive(Deserialize)]
struct ResponseHead {
    id: RequestId,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// Returns a message if it has at most [`MAX_VALUES`], and if not a line with an error for the same request.
/// `None` if it is for none.
pub(super) fn bounded(message: Vec<u8>) -> Option<Vec<u8>> {
    if message.len() <= MAX_VALUES || count_values(&message) <= MAX_VALUES {
        return Some(message);
    }
    tracing::warn!(
        bytes = message.len(),
        "a message of an MCP server has more than {MAX_VALUES} values and is not read"
    );
    let Ok(ResponseHead { id, method: None }) = serde_json::from_slice(&message) else { return None };
    let error = ErrorData::internal_error(format!("its answer has more than {MAX_VALUES} JSON values"), None);
    let mut line = serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id))).ok()?;
    line.push(b'\n');
    Some(line)
}

/// Returns the lines of a process's stdout, each a message, without those that are too large.
pub(super) fn bounded_lines(
    stdout: impl AsyncRead + Unpin + Send + 'static,
) -> impl AsyncRead + Unpin + Send + 'static {
    StreamReader::new(Box::pin(try_stream! {
        let mut stdout = BufReader::new(stdout);
        let mut is_rest = false;
        loop {
            let mut line = Vec::new();
            if (&mut stdout).take(MAX_MESSAGE_BYTES as u64).read_until(b'\n', &mut line).await? == 0 {
                break;
            }
            let is_whole = line.ends_with(b"\n");
            if is_whole && !is_rest && let Some(line) = bounded(line) {
                yield Bytes::from(line);
            }
            is_rest = !is_whole;
        }
    }) as BoxStream<'static, io::Result<Bytes>>)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(members: &str) -> Vec<u8> {
        format!("{{\"jsonrpc\":\"2.0\",{members},\"x\":[{}1]}}", "1,".repeat(MAX_VALUES)).into_bytes()
    }

    #[test]
    fn only_values_outside_of_texts_count() {
        let text = format!("\"{}\"", "[{,\\\"".repeat(MAX_VALUES)).into_bytes();
        assert_eq!(bounded(text.clone()), Some(text));
    }

    #[test]
    fn an_answer_becomes_an_error_and_what_answers_nothing_is_dropped() {
        let line = String::from_utf8(bounded(dense("\"id\":7,\"result\":{}")).unwrap()).unwrap();
        assert!(line.contains("\"id\":7") && line.contains("more than 100000 JSON values") && line.ends_with("}\n"));
        assert_eq!(bounded(dense("\"id\":7,\"method\":\"elicitation/create\"")), None);
        assert_eq!(bounded(dense("\"method\":\"notifications/progress\"")), None);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_read() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        let stdout = std::io::Cursor::new(format!("first\n{long}\nsecond\nunfinished"));
        let mut read = String::new();
        bounded_lines(stdout).read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "first\nsecond\n");
    }
}
