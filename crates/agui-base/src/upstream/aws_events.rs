//! Reads the events of AWS, `application/vnd.amazon.eventstream`
//! (<https://smithy.io/2.0/aws/amazon-eventstream.html>), within the limits of [`events`](super::events).
//!
//! A frame has its length, the length of its headers, a checksum of both, the headers, the payload, and a checksum of all. A
//! frame is only waited for after the first checksum and the limit were checked, so memory is bounded by what has come.

use std::sync::Arc;

use async_stream::try_stream;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Buf as _, Bytes, BytesMut};
use flate2::Crc;
use futures::StreamExt as _;
use reqwest::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{
    body::pieces,
    events::{LargeEvent, ServerEvent, ServerEvents, StreamError, StreamLimits},
};
use crate::deadline::deadline;

const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;

/// The statuses of exceptions; 500 for others: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html>.
const EXCEPTIONS: &[(&str, u64)] = &[
    ("internalServerException", 500),
    ("modelTimeoutException", 408),
    ("serviceUnavailableException", 503),
    ("throttlingException", 429),
    ("validationException", 400),
];

/// Reads the events of a model on Bedrock. A chunk is the event that it contains. An exception is an event with the name
/// `error`, in the form of Anthropic's errors, with the status as its code.
pub fn aws_events(response: Response, limits: StreamLimits, owner: &Arc<str>) -> ServerEvents {
    let (mut pieces, mut large) = (pieces(response), LargeEvent::new(owner));
    Box::pin(try_stream! {
        let mut buffer = BytesMut::new();
        loop {
            while let Some(frame) = next_frame(&mut buffer, limits.max_event_bytes)? {
                if let Some(event) = frame.event()? {
                    yield event;
                }
            }
            let next = timeout_at(deadline(Instant::now(), limits.idle_timeout), pieces.next()).await;
            match next.map_err(|_| StreamError::Silent(limits.idle_timeout))? {
                Some(piece) => {
                    buffer.extend_from_slice(&piece.map_err(StreamError::Broken)?);
                    large.has_bytes(buffer.len()).await?;
                }
                None if buffer.is_empty() => break,
                None => Err::<(), _>(StreamError::Broken("the stream ended within a frame".into()))?,
            }
        }
    })
}

struct Frame {
    headers: Vec<(String, String)>,
    payload: Bytes,
}

#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

/// Takes a whole frame from the beginning of a buffer.
fn next_frame(buffer: &mut BytesMut, max_bytes: usize) -> Result<Option<Frame>, StreamError> {
    let Some(prelude) = buffer.get(..PRELUDE_BYTES) else { return Ok(None) };
    check_sum(prelude)?;
    let mut numbers = prelude;
    let (length, headers_length) = (numbers.get_u32() as usize, numbers.get_u32() as usize);
    let rest = length
        .checked_sub(PRELUDE_BYTES + CHECKSUM_BYTES)
        .and_then(|rest| rest.checked_sub(headers_length));
    if rest.is_none() {
        return Err(StreamError::Malformed("the lengths of a frame do not fit"));
    }
    if length > max_bytes {
        return Err(StreamError::TooLong(max_bytes));
    }
    if buffer.len() < length {
        return Ok(None);
    }
    let frame = buffer.split_to(length).freeze();
    check_sum(&frame)?;
    let headers = frame.slice(PRELUDE_BYTES..PRELUDE_BYTES + headers_length);
    let headers = read_headers(headers)
        .ok_or(StreamError::Malformed("the headers of a frame are cut off"))?;
    Ok(Some(Frame {
        headers,
        payload: frame.slice(PRELUDE_BYTES + headers_length..length - CHECKSUM_BYTES),
    }))
}

/// Fails unless the last bytes are the checksum of those before them.
fn check_sum(bytes: &[u8]) -> Result<(), StreamError> {
    let (checked, mut sum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    let mut crc = Crc::new();
    crc.update(checked);
    if crc.sum() == sum.get_u32() {
        Ok(())
    } else {
        Err(StreamError::Malformed("the checksum of a frame is wrong"))
    }
}

/// Returns the headers that are texts.
fn read_headers(mut bytes: Bytes) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while bytes.has_remaining() {
        let name_length = bytes.get_u8().into();
        let name = take(&mut bytes, name_length)?;
        let kind = bytes.try_get_u8().ok()?;
        let length = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => bytes.try_get_u16().ok()?.into(),
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, length)?;
        if kind == 7 {
            headers.push((
                String::from_utf8(name.into()).ok()?,
                String::from_utf8(value.into()).ok()?,
            ));
        }
    }
    Some(headers)
}

fn take(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (bytes.len() >= length).then(|| bytes.split_to(length))
}

impl Frame {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// Returns `None` for events that are not from a model.
    fn event(&self) -> Result<Option<ServerEvent>, StreamError> {
        let (name, data) = match (self.header(":message-type"), self.header(":event-type")) {
            ("event", "chunk") => {
                let chunk: Option<Chunk> = serde_json::from_slice(&self.payload).ok();
                let bytes = chunk.and_then(|chunk| STANDARD.decode(chunk.bytes).ok());
                let bytes =
                    bytes.ok_or(StreamError::Malformed("a chunk has no bytes in base64"))?;
                (None, String::from_utf8(bytes).map_err(|_| StreamError::NotUtf8)?)
            }
            ("event", _) => return Ok(None),
            ("exception", _) => (Some("error".to_owned()), self.exception().to_string()),
            ("error", _) => {
                let error = json!({"type": self.header(":error-code"), "code": 500, "message": self.header(":error-message")});
                (Some("error".to_owned()), json!({"type": "error", "error": error}).to_string())
            }
            _ => return Err(StreamError::Malformed("a frame has no known type")),
        };
        Ok(Some(ServerEvent { name, id: None, data, is_cut_off: false }))
    }

    fn exception(&self) -> Value {
        let kind = self.header(":exception-type");
        let payload: Value = serde_json::from_slice(&self.payload).unwrap_or_default();
        let known = EXCEPTIONS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(kind))
            .map(|(_, status)| *status);
        let status = payload["originalStatusCode"].as_u64().or(known).unwrap_or(500);
        json!({"type": "error", "error": {"type": kind, "code": status, "message": payload["message"]}})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by other code in Python, and read by `botocore.eventstream`: a chunk with headers of all types, and an exception.
    const CHUNK: &str = "AAAAtwAAAG8ayHekAWEAAWIBAWMCAQFkAwABAWUEAAAAAQFmBQAAAAAAAAAAAWcGAAF4AWgIAAAAAAAAAAABaQkAAAAAAAAAAAAAAAAAAAAADTptZXNzYWdlLXR5cGUHAAVldmVudAs6ZXZlbnQtdHlwZQcABWNodW5reyJieXRlcyI6ICJleUowZVhCbElqb2ljR2x1WnlJc0lzT3BJam94ZlE9PSIsICJwIjogImFiIn0w8AEd";
    const EXCEPTION: &str = "AAAAYgAAAEDwDLrUDTptZXNzYWdlLXR5cGUHAAlleGNlcHRpb24POmV4Y2VwdGlvbi10eXBlBwATdGhyb3R0bGluZ0V4Y2VwdGlvbnsibWVzc2FnZSI6InNsb3cifVSnc9M=";

    fn frames() -> Vec<u8> {
        [CHUNK, EXCEPTION].iter().flat_map(|frame| STANDARD.decode(frame).unwrap()).collect()
    }

    /// Reads bytes that come in pieces of a length, with a limit of 500 bytes.
    fn read(bytes: &[u8], length: usize) -> Result<Vec<ServerEvent>, String> {
        let (mut buffer, mut events) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(length) {
            buffer.extend_from_slice(piece);
            while let Some(frame) =
                next_frame(&mut buffer, 500).map_err(|error| error.to_string())?
            {
                events.extend(frame.event().map_err(|error| error.to_string())?);
            }
        }
        if buffer.is_empty() { Ok(events) } else { Err("cut".to_owned()) }
    }

    #[test]
    fn frames_are_read_wherever_they_are_cut() {
        let error = r#"{"type":"error","error":{"type":"throttlingException","code":429,"message":"slow"}}"#;
        let event = |name: Option<&str>, data: &str| {
            let name = name.map(str::to_owned);
            ServerEvent { name, id: None, data: data.to_owned(), is_cut_off: false }
        };
        let expected = [event(None, r#"{"type":"ping","é":1}"#), event(Some("error"), error)];
        for length in [1, 2, 7, 12, 100, 1000] {
            assert_eq!(read(&frames(), length).as_deref(), Ok(&expected[..]), "{length}");
        }
    }

    #[test]
    fn a_frame_with_any_changed_or_missing_byte_is_an_error() {
        let frames = frames();
        for at in 0..frames.len() {
            let mut changed = frames.clone();
            changed[at] ^= 0x10;
            assert!(read(&changed, 50).is_err(), "{at}");
            let is_between = at == 0 || at == STANDARD.decode(CHUNK).unwrap().len();
            assert_eq!(read(&frames[..at], 50).is_ok(), is_between, "{at}");
        }
    }

    #[test]
    fn a_frame_is_refused_by_its_length_before_it_has_come() {
        for (length, headers, problem) in [
            (u32::MAX, 0, "one event has more than 500 bytes"),
            (501, 0, "one event has more than 500 bytes"),
            (15, 0, "the lengths of a frame do not fit"),
            (100, 85, "the lengths of a frame do not fit"),
            (100, u32::MAX, "the lengths of a frame do not fit"),
        ] {
            let mut prelude = [u32::to_be_bytes(length), u32::to_be_bytes(headers)].concat();
            let mut crc = Crc::new();
            crc.update(&prelude);
            prelude.extend(crc.sum().to_be_bytes());
            assert_eq!(read(&prelude, 12), Err(problem.to_owned()), "{length} {headers}");
        }
    }

    proptest! {
        #[test]
        fn any_headers_are_read_without_a_panic(bytes in prop::collection::vec(prop_oneof![0_u8..10, any::<u8>()], 0..40)) {
            let _ = read_headers(bytes.into());
        }
    }
}
