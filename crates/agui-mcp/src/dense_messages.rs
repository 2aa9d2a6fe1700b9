//! Messages of an MCP server that are small as text and huge in memory, and those that are not valid JSON.
//!
//! The protocol library tries each type of a result in turn, and takes 100 and more bytes for `{}`: a result of 14 MB
//! took 1.6 GB, and its session's thread for seconds. So the values of a message are counted before
//! it is parsed. The library parses strictly, so halves of surrogate pairs, `NaN` and byte order
//! marks are removed before.

use std::sync::Arc;

use async_stream::try_stream;
use bytes::Bytes;
use futures::stream::BoxStream;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize as _;
use tokio::io::{self, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio_util::io::StreamReader;

use super::message_form::{MessageHead, mended};
use agui_base::{
    json_values::count_values, lenient_json::repaired_text, repairs::Partner, text::short_line,
};

/// The largest message that is read, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The largest number of JSON values in a message.
const MAX_VALUES: usize = 100_000;

/// Returns a message as valid JSON if it has at most [`MAX_VALUES`], and otherwise a line with an
/// error for the same request; `None` if it answers no request.
pub(super) fn bounded(message: Vec<u8>) -> Option<Vec<u8>> {
    let repaired =
        str::from_utf8(&message).ok().and_then(|text| repaired_text(text, Partner::ToolServer));
    let message = repaired.map_or(message, String::into_bytes);
    if message.len() <= MAX_VALUES || count_values(&message) <= MAX_VALUES {
        return Some(mended(message));
    }
    tracing::warn!(
        bytes = message.len(),
        "a message of an MCP server has more than {MAX_VALUES} values and is not read"
    );
    let Ok(MessageHead { id, method: None, .. }) = serde_json::from_slice(&message) else {
        return None;
    };
    let id = RequestId::deserialize(id).ok()?;
    let error = ErrorData::internal_error(
        format!("its answer has more than {MAX_VALUES} JSON values"),
        None,
    );
    let mut line = serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id))).ok()?;
    line.push(b'\n');
    Some(line)
}

/// Returns the lines of a process's stdout, each a message, without those that are too large.
pub(super) fn bounded_lines(
    server: Arc<str>,
    stdout: impl AsyncRead + Unpin + Send + 'static,
) -> impl AsyncRead + Unpin + Send + 'static {
    StreamReader::new(Box::pin(try_stream! {
        let mut stdout = BufReader::new(stdout);
        let (mut is_rest, mut has_logged) = (false, false);
        loop {
            let mut line = Vec::new();
            if (&mut stdout).take(MAX_MESSAGE_BYTES as u64).read_until(b'\n', &mut line).await? == 0 {
                break;
            }
            let is_whole = line.ends_with(b"\n");
            let text = line.trim_ascii();
            if !is_rest && !has_logged && !text.is_empty() && !text.starts_with(b"{") && !text.starts_with(b"[") {
                has_logged = true;
                tracing::warn!(
                    server = &*server,
                    line = short_line(&String::from_utf8_lossy(text)),
                    "an MCP server writes on stdout what is no message: let it log to stderr"
                );
            }
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
        format!("{{\"jsonrpc\":\"2.0\",{members},\"x\":[{}1]}}", "1,".repeat(MAX_VALUES))
            .into_bytes()
    }

    #[test]
    fn only_values_outside_of_texts_count() {
        let text = format!("\"{}\"", "[{,\\\"".repeat(MAX_VALUES)).into_bytes();
        assert_eq!(bounded(text.clone()), Some(text));
    }

    #[test]
    fn what_is_not_valid_json_is_repaired_and_the_rest_is_not_changed() {
        for (written, read) in [
            (
                "{\"a\":\"cut \\ud83d\",\"b\":[NaN,-Infinity]}\n",
                "{\"a\":\"cut \u{fffd}\",\"b\":[null,null]}\n",
            ),
            ("\u{feff}{}\n", "{}\n"),
            (
                "{\"a\":\"\\ud83d\\ude00 NaN \\\\ud83d\"}\n",
                "{\"a\":\"\\ud83d\\ude00 NaN \\\\ud83d\"}\n",
            ),
        ] {
            assert_eq!(String::from_utf8(bounded(written.into()).unwrap()).unwrap(), read);
        }
    }

    #[test]
    fn an_answer_becomes_an_error_and_what_answers_nothing_is_dropped() {
        let line = String::from_utf8(bounded(dense("\"id\":7,\"result\":{}")).unwrap()).unwrap();
        assert!(
            line.contains("\"id\":7")
                && line.contains("more than 100000 JSON values")
                && line.ends_with("}\n")
        );
        assert_eq!(bounded(dense("\"id\":7,\"method\":\"elicitation/create\"")), None);
        assert_eq!(bounded(dense("\"method\":\"notifications/progress\"")), None);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_read() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        let stdout = std::io::Cursor::new(format!("first\n{long}\nsecond\nunfinished"));
        let mut read = String::new();
        bounded_lines("s".into(), stdout).read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "first\nsecond\n");
    }
}
