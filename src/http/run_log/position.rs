//! Positions in a log: the offsets of clients, and the cursors that keep caches from answering a live request for ever.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::http::error::ApiError;

/// The number of digits of `u64::MAX`, so that offsets sort as texts.
const DIGITS: usize = 20;
/// The interval of cursors and their first interval, 2024-10-09, as the protocol defines them.
const CURSOR_INTERVAL: Duration = Duration::from_secs(20);
const CURSOR_EPOCH: Duration = Duration::from_secs(1_728_432_000);
/// A cursor is advanced by at most an hour.
const MAX_CURSOR_STEP: u64 = 3600 / CURSOR_INTERVAL.as_secs();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offset {
    Start,
    /// After the event with this number.
    After(u64),
    /// After the last event.
    Now,
}

impl Offset {
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "-1" => Ok(Self::Start),
            "now" => Ok(Self::Now),
            _ => {
                let is_offset = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
                let number = is_offset.then(|| text.parse().ok()).flatten();
                let expected = "`-1`, `now`, or a `Stream-Next-Offset` of this log";
                number.map(Self::After).ok_or_else(|| ApiError::invalid_parameter("offset", expected))
            }
        }
    }
}

pub(super) fn offset_text(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

/// Returns the number of the current interval, or a larger number than the client's cursor.
pub(super) fn cursor(client: Option<&str>) -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH + CURSOR_EPOCH).unwrap_or_default();
    let current = since_epoch.as_secs() / CURSOR_INTERVAL.as_secs();
    match client.and_then(|cursor| cursor.parse::<u64>().ok()).filter(|cursor| *cursor >= current) {
        None => current,
        Some(cursor) => cursor.saturating_add(1 + u64::from(uuid::Uuid::new_v4().as_bytes()[0]) % MAX_CURSOR_STEP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_read_back_and_sorts_as_text() {
        let numbers = [0, 9, 10, u64::MAX];
        let texts = numbers.map(offset_text);
        assert!(texts.is_sorted());
        for (number, text) in numbers.into_iter().zip(&texts) {
            assert_eq!(Offset::parse(text).unwrap(), Offset::After(number));
        }
        for wrong in ["", "1", "-2", "+0000000000000000001", "99999999999999999999", "0000000000000000001 "] {
            assert!(Offset::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_cursor_never_goes_back() {
        let current = cursor(None);
        assert_eq!(cursor(Some("12")), current);
        assert_eq!(cursor(Some("x")), current);
        let next = cursor(Some(&current.to_string()));
        assert!(next > current && next <= current + MAX_CURSOR_STEP + 1);
        assert_eq!(cursor(Some(&u64::MAX.to_string())), u64::MAX);
    }
}
