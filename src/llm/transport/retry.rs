//! How long one waits before a request is sent again.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use jiff::fmt::rfc2822;

/// The longest wait. A provider that asks for more gets no second request: whoever waits for the answer would rather
/// know.
pub(super) const LONGEST: Duration = Duration::from_secs(30);
/// How long the end of a body may take that has nothing more to say.
pub(super) const LINGER: Duration = Duration::from_millis(50);
/// The first wait, where the provider names none.
const FIRST: Duration = Duration::from_millis(500);
/// The longest of those.
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);

/// Whether a failed request is worth another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    Never,
    /// After a wait that grows.
    Backoff,
    /// When the provider says.
    After(Duration),
}

/// The wait before retry `retries + 1`: twice the one before, and between a half and the whole of it by chance, so
/// that runs which failed together do not return together.
pub(super) fn backoff(retries: u32) -> Duration {
    let whole = FIRST.saturating_mul(2_u32.saturating_pow(retries)).min(LONGEST_BACKOFF);
    // A new hasher has new keys each time: chance enough, without a library for it.
    let chance = (RandomState::new().hash_one(retries) % 1000) as f64 / 1000.0;
    whole.mul_f64(0.5 + chance / 2.0)
}

/// What the provider asks for: milliseconds, seconds or a date.
pub(super) fn asked(headers: &HeaderMap) -> Retry {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str, unit: f64| {
        let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0)?;
        // A number that is no duration is longer than any.
        Some(Duration::try_from_secs_f64(number * unit).unwrap_or(Duration::MAX))
    };
    let asked = text("retry-after-ms")
        .and_then(|text| seconds(text, 0.001))
        .or_else(|| text("retry-after").and_then(|text| seconds(text, 1.0).or_else(|| until(text))));
    asked.map_or(Retry::Backoff, Retry::After)
}

fn until(date: &str) -> Option<Duration> {
    let at: SystemTime = rfc2822::parse(date).ok()?.timestamp().into();
    // What has passed already is now.
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_wait_is_what_the_provider_asks_for_in_any_of_its_forms() {
        let asked = |pairs: &[_]| asked(&headers(pairs));
        assert_eq!(asked(&[]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "2")]), Retry::After(Duration::from_secs(2)));
        assert_eq!(asked(&[("retry-after", "0.5")]), Retry::After(Duration::from_millis(500)));
        let both = [("retry-after", "2"), ("retry-after-ms", "15")];
        assert_eq!(asked(&both), Retry::After(Duration::from_millis(15)));
        assert_eq!(asked(&[("retry-after", "1e300")]), Retry::After(Duration::MAX));
        assert_eq!(asked(&[("retry-after", "-1")]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "NaN")]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "soon")]), Retry::Backoff);
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), Retry::After(Duration::ZERO));
        let Retry::After(wait) = asked(&[("retry-after", "Fri, 06 Nov 2099 08:49:37 GMT")]) else { panic!() };
        assert!(wait > LONGEST);
    }

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        for retries in [0, 1, 2, 5, 40, u32::MAX] {
            let whole = FIRST.saturating_mul(2_u32.saturating_pow(retries)).min(LONGEST_BACKOFF);
            let wait = backoff(retries);
            assert!(wait >= whole / 2 && wait <= whole, "{retries}: {wait:?}");
        }
        let waits: Vec<_> = (0..20).map(|_| backoff(3)).collect();
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }
}
