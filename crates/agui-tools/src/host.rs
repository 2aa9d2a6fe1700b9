//! What the other crates of the workspace need of this one. Not a part of the interface: it changes without notice.

pub use crate::{
    approval::ConfiguredRule, call_digest::digest, caller_headers::CallerHeaders, secrets::Secrets,
    tool::object_schema,
};
pub use crate::{
    arguments::CallArguments,
    call_digest::{bound_call, is_bound_to},
    caller_headers::{CallerHeader, CallerValue},
    question::{CallReplies, KeptValue, PersonsReply},
    session::{ToolEvents, ToolSession},
};
