//! The names of the response headers of the Durable Streams protocol.

use axum::http::HeaderName;

/// The position after the response.
pub(crate) const STREAM_NEXT_OFFSET: HeaderName = HeaderName::from_static("stream-next-offset");
/// A number that the client adds to its next live request, so that no cache answers it for ever.
pub(crate) const STREAM_CURSOR: HeaderName = HeaderName::from_static("stream-cursor");
/// The response has everything that there is at this time.
pub(crate) const STREAM_UP_TO_DATE: HeaderName = HeaderName::from_static("stream-up-to-date");
/// The stream has ended, and nothing follows the response.
pub(crate) const STREAM_CLOSED: HeaderName = HeaderName::from_static("stream-closed");
