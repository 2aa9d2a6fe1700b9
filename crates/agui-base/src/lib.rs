//! Code that every crate of agui-server needs: text, JSON of others, units of options. Features add
//! permits and traces (`runtime`), HTTP to others (`upstream`), and JSON Schema with bounds
//! (`json-schema`). Uses no other crate of the workspace.
//!
//! Not a part of the interface of agui-server: it changes without notice.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so a comment at
// each panic says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

#[doc(hidden)]
pub mod base64_text;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod complete_on_drop;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod deadline;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod grant_order;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod hmac;
#[doc(hidden)]
pub mod host_names;
mod invalid_option;
#[doc(hidden)]
pub mod json_values;
#[doc(hidden)]
pub mod lenient_json;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod memory_budget;
mod named_enum;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod permits;
#[doc(hidden)]
pub mod private_file;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod refusal;
#[doc(hidden)]
pub mod repairs;
mod run_error_code;
#[cfg(feature = "json-schema")]
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod text;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod time_text;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod units;
#[cfg(feature = "upstream")]
#[doc(hidden)]
pub mod upstream;

pub use invalid_option::InvalidOption;
#[doc(hidden)]
pub use run_error_code::RunErrorCode;

/// The name of the server in traces, and to other servers.
#[doc(hidden)]
pub const SERVER_NAME: &str = "agui-server";
