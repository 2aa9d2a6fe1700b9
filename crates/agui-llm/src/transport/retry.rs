//! The waits before a request is sent again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use http::HeaderMap;
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

/// The longest wait. If a provider asks for a longer one, the client gets the error.
const MAX_WAIT: Duration = Duration::from_secs(30);
pub(super) const END_OF_BODY_TIMEOUT: Duration = Duration::from_millis(50);
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    Never,
    Backoff,
    After(Duration),
}

impl Retry {
    /// Returns the wait before the request is sent again; `None` if it is not.
    pub(super) fn wait(self, retries: u32) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::Backoff => Some(backoff(retries)),
            Self::After(wait) => (wait <= MAX_WAIT).then_some(wait),
        }
    }
}

/// Returns the wait before a retry. A random part of up to a half is subtracted, so that runs which
/// failed together do not retry together.
fn backoff(retries: u32) -> Duration {
    let whole = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(retries)).min(MAX_BACKOFF);
    // Each new hasher has random keys, so no library for random numbers is needed.
    let random = (RandomState::new().hash_one(retries) % 1000) as f64 / 1000.0;
    whole.mul_f64(0.5 + random / 2.0)
}

/// Returns the wait that a response asks for: in milliseconds, in seconds, by a date, or, at
/// Google, in the body as a `google.rpc.RetryInfo` with a `retryDelay` such as `34.4s`:
/// <https://ai.google.dev/gemini-api/docs/rate-limits>.
pub(super) fn requested_wait(headers: &HeaderMap, body: &[u8]) -> Retry {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str, unit: f64| {
        let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0)?;
        // A number that exceeds the longest duration is too long in any case.
        Some(Duration::try_from_secs_f64(number * unit).unwrap_or(Duration::MAX))
    };
    let in_body = || {
        let body: Value = serde_json::from_slice(body).ok()?;
        // Some errors of the API are in a list.
        let details = body.get(0).unwrap_or(&body).pointer("/error/details")?.as_array()?;
        let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
        seconds(delay.strip_suffix('s')?, 1.0)
    };
    let wait = text("retry-after-ms")
        .and_then(|text| seconds(text, 0.001))
        .or_else(|| text("retry-after").and_then(|text| seconds(text, 1.0).or_else(|| until(text))))
        .or_else(in_body);
    wait.map_or(Retry::Backoff, Retry::After)
}

fn until(date: &str) -> Option<Duration> {
    let at = rfc2822::parse(date).ok()?.timestamp();
    // A time in the past means now.
    Some(Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn the_wait_is_read_in_all_forms_of_the_header() {
        let asked = |pairs: &[_]| requested_wait(&headers(pairs), b"");
        assert_eq!(asked(&[]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "2")]), Retry::After(Duration::from_secs(2)));
        assert_eq!(asked(&[("retry-after", "0.5")]), Retry::After(Duration::from_millis(500)));
        let both = [("retry-after", "2"), ("retry-after-ms", "15")];
        assert_eq!(asked(&both), Retry::After(Duration::from_millis(15)));
        assert_eq!(asked(&[("retry-after", "1e300")]), Retry::After(Duration::MAX));
        assert_eq!(asked(&[("retry-after", "-1")]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "NaN")]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "soon")]), Retry::Backoff);
        assert_eq!(
            asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]),
            Retry::After(Duration::ZERO)
        );
        let Retry::After(wait) = asked(&[("retry-after", "Fri, 06 Nov 2099 08:49:37 GMT")]) else {
            panic!()
        };
        assert!(wait > MAX_WAIT);
    }

    #[test]
    fn the_wait_is_read_in_the_body_unless_a_header_has_it() {
        let body = |delay: &str| {
            let info = format!(
                r#"{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}"#
            );
            format!(r#"{{"error":{{"code":429,"details":[{{"@type":"x"}},{info}]}}}}"#)
        };
        let asked = |body: &str| requested_wait(&HeaderMap::new(), body.as_bytes());
        assert_eq!(asked(&body("34.4s")), Retry::After(Duration::from_millis(34_400)));
        assert_eq!(asked(&format!("[{}]", body("1s"))), Retry::After(Duration::from_secs(1)));
        assert_eq!(asked(&body("1e300s")), Retry::After(Duration::MAX));
        for body in ["", "[]", "{}", &body("soon"), &body("-1s"), &body("1")] {
            assert_eq!(asked(body), Retry::Backoff, "{body}");
        }
        let wait = requested_wait(&headers(&[("retry-after", "2")]), body("34.4s").as_bytes());
        assert_eq!(wait, Retry::After(Duration::from_secs(2)));
    }

    #[test]
    fn waits_grow_to_a_limit_and_are_random() {
        for retries in [0, 1, 2, 5, 40, u32::MAX] {
            let whole =
                FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(retries)).min(MAX_BACKOFF);
            let wait = backoff(retries);
            assert!(wait >= whole / 2 && wait <= whole, "{retries}: {wait:?}");
        }
        let waits: Vec<_> = (0..20).map(|_| backoff(3)).collect();
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }
}
