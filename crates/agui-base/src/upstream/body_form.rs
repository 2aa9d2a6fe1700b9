//! Recognizes streams of events and JSON by their first bytes, because servers give good streams other types or none.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, Response};

use super::body::{BodyError, pieces};
use crate::text::essence;

/// The fields with which a line of an event stream begins. A comment begins with a colon.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
/// The largest white space before a body.
const MAX_BLANK_BYTES: usize = 64 * 1024;

/// The form of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyForm {
    /// Server-sent events.
    Events,
    /// JSON by its type, or what begins like an object or a list.
    Json,
    /// Neither.
    Other,
}

/// Returns the form of a body, and the response with the whole of it. Waits for the first bytes, unless the response has
/// the type of event streams.
///
/// # Errors
/// If the connection breaks before the first bytes.
pub async fn body_form(response: Response) -> Result<(BodyForm, Response), BodyError> {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = essence(content_type.unwrap_or_default());
    if content_type == "text/event-stream" {
        return Ok((BodyForm::Events, response));
    }
    let other = if content_type == "application/json" { BodyForm::Json } else { BodyForm::Other };
    let (status, mut headers) = (response.status(), response.headers().clone());
    // The pieces are not compressed any more.
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    let (mut rest, mut start) = (pieces(response), BytesMut::new());
    let form = loop {
        if let Some(form) = form_of(&start) {
            break if form == BodyForm::Other { other } else { form };
        }
        match rest.next().await.transpose()? {
            Some(piece) => start.extend_from_slice(&piece),
            None => break other,
        }
    };
    let whole = stream::iter([Ok::<Bytes, BodyError>(start.freeze())]).chain(rest);
    let mut whole = http::Response::new(Body::wrap_stream(whole));
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok((form, whole.into()))
}

/// Returns the form of a body that begins with these bytes; `None` if more are needed.
fn form_of(start: &[u8]) -> Option<BodyForm> {
    let text = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    let is_undecided = |field: &[u8]| field.starts_with(text) && text.len() < field.len();
    match text {
        [b'{' | b'[', ..] => Some(BodyForm::Json),
        _ if FIELDS.iter().any(|field| text.starts_with(field)) => Some(BodyForm::Events),
        _ if b"\xEF\xBB\xBF".starts_with(text) && start.len() <= MAX_BLANK_BYTES => None,
        _ if FIELDS.iter().any(|field| is_undecided(field)) && start.len() <= MAX_BLANK_BYTES => {
            None
        }
        _ => Some(BodyForm::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::body::read_whole;

    #[test]
    fn the_first_bytes_tell_the_form() {
        for (start, form) in [
            ("data: {}", Some(BodyForm::Events)),
            ("\u{feff}\n\r\nevent: x", Some(BodyForm::Events)),
            (": comment", Some(BodyForm::Events)),
            ("id:1", Some(BodyForm::Events)),
            (" {\"a\"", Some(BodyForm::Json)),
            ("<html>", Some(BodyForm::Other)),
            ("database", Some(BodyForm::Other)),
            ("null", Some(BodyForm::Other)),
            ("", None),
            (" \n", None),
            ("\u{feff}", None),
            ("dat", None),
            ("retry", None),
        ] {
            assert_eq!(form_of(start.as_bytes()), form, "{start:?}");
        }
        assert_eq!(form_of(b"\xEF\xBB"), None);
        assert_eq!(form_of(&[b' '; MAX_BLANK_BYTES + 1]), Some(BodyForm::Other));
    }

    #[tokio::test]
    async fn a_body_in_single_bytes_stays_whole() {
        for (text, expected) in [
            ("\n\ndata: {}\n\n", BodyForm::Events),
            ("{\"a\":1}", BodyForm::Json),
            ("no", BodyForm::Other),
            ("", BodyForm::Other),
        ] {
            let bytes: Vec<_> =
                text.bytes().map(|byte| Ok::<_, BodyError>(Bytes::from(vec![byte]))).collect();
            let response = http::Response::new(Body::wrap_stream(stream::iter(bytes)));
            let (form, response) = body_form(response.into()).await.unwrap();
            assert_eq!(form, expected, "{text:?}");
            assert_eq!(read_whole(response, 100).await.unwrap(), text.as_bytes());
        }
    }
}
