//! The section `[files]`.

use serde::Deserialize;
use smart_default::SmartDefault;

use agui_base::units;

/// Limits of stored files: the section `[files]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FileOptions {
    /// The largest file, in bytes. A larger upload is refused with 413.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(20 * 1024 * 1024)]
    pub max_file_bytes: u64,
    /// The bytes of all files of one principal; each file counts with 2,048 bytes more, for its
    /// rows. An upload that would exceed them is refused with 413. They count for `max_bytes` of
    /// `[retention]` as well.
    #[serde(rename = "max_bytes_per_principal", with = "units::OptionalNumber")]
    #[default(Some(4 << 30))]
    pub owner_bytes: Option<u64>,
    /// The number of files of one principal. One more is refused with 413.
    #[serde(rename = "max_files_per_principal", with = "units::OptionalNumber")]
    #[default(Some(100_000))]
    pub owner_files: Option<u64>,
    /// The bytes of all files together, counted in the same way. An upload that would exceed them
    /// is refused with 507. They count for `max_bytes_total` of `[retention]` as well. A store in
    /// memory has room for 1 GiB.
    #[serde(rename = "max_bytes_total", with = "units::OptionalNumber")]
    #[default(Some(64 << 30))]
    pub bytes: Option<u64>,
    /// The number of all files together. One more is refused with 507.
    #[serde(rename = "max_files_total", with = "units::OptionalNumber")]
    #[default(Some(5_000_000))]
    pub files: Option<u64>,
    /// The time after which a file is deleted that no thread uses.
    #[serde(rename = "unused_hours", with = "units::OptionalHours")]
    #[default(Some(24 * 3_600_000))]
    pub unused_age: Option<u64>,
    /// The time for which the URL of a file is valid, in days.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(7)]
    pub url_days: u32,
    /// The object store that gets the bytes of new files in place of the database
    /// (docs/files.md#object-stores): `s3://BUCKET/PATH`, `gs://…`, `az://…`, or a folder,
    /// `file:///PATH`. In the image, or with the feature `object-store`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^(s3|gs|az|file)://.")))]
    pub url: Option<String>,
    /// The server's own URL, which the server sets: `[server] public_url`. With it, agents at other servers get URLs of files in
    /// place of data.
    #[doc(hidden)]
    #[serde(skip)]
    pub public_url: Option<String>,
}
