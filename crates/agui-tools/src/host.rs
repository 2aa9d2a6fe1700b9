//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::{
    approval::ConfiguredRule, call_digest::digest, caller_headers::CallerHeaders, secrets::Secrets,
    tool::object_schema,
};
pub use crate::{
    arguments::CallArguments,
    call_digest::{bound_call, is_bound_to},
    caller_headers::{CallerHeader, CallerValue},
    question::{CallReplies, KeptValue, UserReply},
    session::{ToolEvents, ToolSession},
};
