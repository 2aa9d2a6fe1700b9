//! The place in a trace that a request names: `traceparent` and `tracestate` of W3C Trace Context
//! (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the ids.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with the data of tracing systems.
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of a `traceparent` of version 00.
const TRACEPARENT_BYTES: usize = 55;
/// The length of a `tracestate` that every participant has to pass on. A longer one is left out.
const MAX_TRACESTATE_BYTES: usize = 512;
const MAX_TRACESTATE_MEMBERS: usize = 32;
/// The flags that version 00 defines: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 0b11;

/// A span of a trace, as it is named to other programs.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) flags: u8,
    pub(super) state: String,
}

impl TraceContext {
    /// Reads the headers of a request. Returns `None` for an invalid or repeated `traceparent`. An invalid or long
    /// `tracestate` counts as absent.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let parent = values.next().filter(|_| values.next().is_none())?;
        let context = Self::from_traceparent(parent.to_str().ok()?.trim())?;
        Some(Self { state: read_state(headers).unwrap_or_default(), ..context })
    }

    /// Versions above 00 may have further parts, which are ignored.
    pub fn from_traceparent(parent: &str) -> Option<Self> {
        let mut parts = parent.get(..TRACEPARENT_BYTES)?.split('-');
        let version = hex(parts.next()?, 2)?;
        let (trace_id, span_id) =
            (hex(parts.next()?, 32)?, u64::try_from(hex(parts.next()?, 16)?).ok()?);
        let flags = u8::try_from(hex(parts.next()?, 2)?).ok()? & KNOWN_FLAGS;
        let rest = parent.get(TRACEPARENT_BYTES..)?;
        let has_valid_end = rest.is_empty() || (version > 0 && rest.starts_with('-'));
        let is_valid = version != 0xff
            && trace_id != 0
            && span_id != 0
            && has_valid_end
            && parts.next().is_none();
        is_valid.then(|| Self { trace_id, span_id, flags, state: String::new() })
    }

    /// The id of the trace, as 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The value of `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// The value of `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        (!self.state.is_empty()).then_some(self.state.as_str())
    }

    /// The headers that pass this place on to another server.
    pub(crate) fn to_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Ok(parent) = HeaderValue::from_str(&self.traceparent()) {
            headers.insert(TRACEPARENT, parent);
        }
        if let Some(Ok(state)) = self.tracestate().map(HeaderValue::from_str) {
            headers.insert(TRACESTATE, state);
        }
        headers
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceContext").field(&self.traceparent()).finish()
    }
}

/// Reads lower-case hexadecimal digits of an exact number.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex =
        text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Several headers are one list.
fn read_state(headers: &HeaderMap) -> Option<String> {
    let mut members = Vec::new();
    for value in headers.get_all(TRACESTATE) {
        let parts = value.to_str().ok()?.split(',').map(str::trim);
        members.extend(parts.filter(|member| !member.is_empty()));
    }
    let is_valid =
        members.len() <= MAX_TRACESTATE_MEMBERS && members.iter().all(|member| is_member(member));
    let state = members.join(",");
    (is_valid && state.len() <= MAX_TRACESTATE_BYTES).then_some(state)
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let is_key_byte = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
    };
    let begins_key =
        key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_value =
        !value.is_empty() && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=');
    begins_key && key.bytes().all(is_key_byte) && is_value
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(parents: &[&str], states: &[&str]) -> Option<TraceContext> {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
        }
        for state in states {
            headers.append(TRACESTATE, HeaderValue::from_str(state).unwrap());
        }
        TraceContext::from_headers(&headers)
    }

    #[test]
    fn a_valid_place_is_passed_on_as_it_is() {
        let context =
            read(&[PARENT], &["rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", "", "a@b=x y"]).unwrap();
        let headers = context.to_headers();
        assert_eq!(
            (&headers[TRACEPARENT], context.trace_id().as_str()),
            (&PARENT.parse().unwrap(), &PARENT[3..35])
        );
        assert_eq!(headers[TRACESTATE], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE,a@b=x y");
        assert!(!read(&[PARENT], &[]).unwrap().to_headers().contains_key(TRACESTATE));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let context =
            read(&["cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-follows"], &[])
                .unwrap();
        assert_eq!(
            context.traceparent(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03"
        );
    }

    #[test]
    fn an_invalid_or_repeated_parent_is_ignored() {
        for parent in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(read(&[parent], &["a=b"]), None, "{parent}");
        }
        assert_eq!(read(&[PARENT, PARENT], &[]), None);
        assert_eq!(read(&[], &["a=b"]), None);
    }

    #[test]
    fn an_invalid_or_long_state_is_left_out() {
        let many = ["a=b"; 33].join(",");
        let long = format!("a={}", "x".repeat(511));
        for state in ["a", "=b", "a=", "A=b", "-a=b", "a=b=c", "a=b,c d=e", &many, &long] {
            assert_eq!(read(&[PARENT], &[state]).unwrap().tracestate(), None, "{state}");
        }
        assert_eq!(read(&[PARENT], &[&long[..512]]).unwrap().tracestate(), Some(&long[..512]));
    }
}
