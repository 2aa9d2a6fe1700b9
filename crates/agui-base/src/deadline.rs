//! The end of a time that an operator, an application or a file has chosen.

use std::time::Duration;

use tokio::time::Instant;

/// Stands for a time that ends later than an [`Instant`] can say, such as `Duration::MAX`.
pub const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the end of a time that begins at `from`. `from + time` panics if the time is too
/// long for an [`Instant`]; this returns an instant in 30 years.
pub fn deadline(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).or_else(|| from.checked_add(FAR_FUTURE)).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_too_long_for_a_deadline() {
        let now = Instant::now();
        assert_eq!(deadline(now, Duration::from_secs(5)), now + Duration::from_secs(5));
        for longest in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
            assert_eq!(deadline(now, longest), now + FAR_FUTURE);
        }
    }
}
