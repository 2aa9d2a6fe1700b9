//! The protocol version this server speaks, and what it makes of a client's.

/// The AG-UI version this server declares on `RUN_STARTED`.
pub const PROTOCOL_VERSION: &str = "1.0";

/// What to do about the version a client declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionSupport {
    /// The client speaks this version, an older one, or does not say.
    Spoken,
    /// A newer minor version, or a text that is no `MAJOR.MINOR`: serve it, and warn.
    Unfamiliar,
    /// A newer major version, which this server does not implement.
    UnknownMajor,
}

/// Compares a declared version with [`PROTOCOL_VERSION`], number by number (`1.10` is newer than `1.9`).
///
/// ```
/// use agui_server::protocol::{VersionSupport, judge_version};
/// assert_eq!(judge_version("1.0"), VersionSupport::Spoken);
/// assert_eq!(judge_version("1.10"), VersionSupport::Unfamiliar);
/// assert_eq!(judge_version("2.0"), VersionSupport::UnknownMajor);
/// ```
pub fn judge_version(declared: &str) -> VersionSupport {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let parts = declared.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    match parts {
        Some((major, _)) if major > 1 => VersionSupport::UnknownMajor,
        Some((1, minor)) if minor > 0 => VersionSupport::Unfamiliar,
        Some(_) => VersionSupport::Spoken,
        None => VersionSupport::Unfamiliar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_newer_major_is_refused() {
        for (declared, expected) in [
            ("1.0", VersionSupport::Spoken),
            ("0.9", VersionSupport::Spoken),
            ("1.1", VersionSupport::Unfamiliar),
            ("1.4294967296", VersionSupport::Unfamiliar),
            ("1.0.0", VersionSupport::Unfamiliar),
            ("1", VersionSupport::Unfamiliar),
            ("", VersionSupport::Unfamiliar),
            ("1.+1", VersionSupport::Unfamiliar),
            ("2.0", VersionSupport::UnknownMajor),
            ("99999999999.0", VersionSupport::UnknownMajor),
        ] {
            assert_eq!(judge_version(declared), expected, "{declared}");
        }
    }
}
