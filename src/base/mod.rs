//! Small rules that every room uses, such as the units of options. Uses no other room.

pub(crate) mod base64_text;
pub(crate) mod complete_on_drop;
pub(crate) mod hmac;
pub(crate) mod host;
mod invalid_option;
pub(crate) mod json_values;
pub(crate) mod lenient_json;
pub(crate) mod memory_budget;
mod named_enum;
pub(crate) mod permits;
pub(crate) mod private_file;
pub(crate) mod refusal;
pub(crate) mod repairs;
mod run_error_code;
pub(crate) mod text;
pub(crate) mod time_text;
pub(crate) mod trace;
pub(crate) mod turns;
pub(crate) mod units;

pub use invalid_option::InvalidOption;
pub(crate) use run_error_code::RunErrorCode;
