//! The protocol version of this server, and the check of a client's version.

/// The AG-UI version that this server speaks. `RUN_STARTED` declares it, except in a stream that is written in 1.0 for a
/// client that declares 1.0: by the specification's versioning page, a declaration names what the stream speaks.
pub const PROTOCOL_VERSION: &str = "1.1";
const MINOR: u32 = 1;

/// The result of [`classify_version`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionSupport {
    /// This version or an older one.
    Supported,
    /// A newer minor version, or a text that is not `MAJOR.MINOR`. Serve the client and log a warning.
    Unrecognized,
    /// A newer major version. Refuse the request.
    Unsupported,
}

/// Compares a client's version with [`PROTOCOL_VERSION`], number by number: `1.10` is newer than `1.9`.
pub fn classify_version(declared: &str) -> VersionSupport {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let parts =
        declared.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    match parts {
        Some((major, _)) if major > 1 => VersionSupport::Unsupported,
        Some((1, minor)) if minor > MINOR => VersionSupport::Unrecognized,
        Some(_) => VersionSupport::Supported,
        None => VersionSupport::Unrecognized,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_newer_major_version_is_unsupported() {
        for (declared, expected) in [
            ("1.0", VersionSupport::Supported),
            ("0.9", VersionSupport::Supported),
            ("1.1", VersionSupport::Supported),
            ("1.2", VersionSupport::Unrecognized),
            ("1.10", VersionSupport::Unrecognized),
            ("1.4294967296", VersionSupport::Unrecognized),
            ("1.0.0", VersionSupport::Unrecognized),
            ("1", VersionSupport::Unrecognized),
            ("", VersionSupport::Unrecognized),
            ("1.+1", VersionSupport::Unrecognized),
            ("2.0", VersionSupport::Unsupported),
            ("99999999999.0", VersionSupport::Unsupported),
        ] {
            assert_eq!(classify_version(declared), expected, "{declared}");
        }
    }
}
