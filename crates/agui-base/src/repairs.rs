//! Counts repairs of invalid data of others, for metrics. Each repair is also logged where it is
//! made. The counts are per process, because readers of JSON do not know their server.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::named_enum;

named_enum! {
    /// The sender of the invalid data.
    Partner {
        /// A client of this server.
        Page = "page",
        /// A model, or its provider.
        Model = "model",
        /// The endpoint of a remote agent.
        RemoteAgent = "remote_agent",
        /// An MCP server, or the author of a tool's schema.
        ToolServer = "tool_server",
    }
}

named_enum! {
    /// The kind of a repair.
    Repair {
        /// A surrogate half without its other half in the same string.
        Half = "half",
        /// `NaN` or `Infinity`, read as `null`.
        NotANumber = "not_a_number",
        /// A byte order mark before JSON.
        ByteOrderMark = "byte_order_mark",
        /// `null` where a list, an object or a text is meant.
        Null = "null",
        /// The form of a call's arguments.
        Arguments = "arguments",
        /// A parameter of a request that a provider refused.
        ParameterLeftOut = "parameter_left_out",
        /// A request that was sent again in a poorer form, because a provider refused it.
        PoorerForm = "poorer_form",
        /// An attachment that was not sent to the model.
        AttachmentSkipped = "attachment_skipped",
        /// A tool that has no form that the provider takes.
        ToolLeftOut = "tool_left_out",
        /// A call that a model wrote as text.
        WrittenCall = "written_call",
        /// An id that a remote agent used for a second message or call.
        Id = "id",
        /// The order of a remote agent's events, or one that is missing or repeated.
        Order = "order",
        /// A request that was sent again after an empty or unreadable answer.
        AskedAgain = "asked_again",
    }
}

static REPAIRS: Mutex<BTreeMap<(Partner, Repair), u64>> = Mutex::new(BTreeMap::new());

/// Counts a repair.
pub fn repaired(partner: Partner, repair: Repair) {
    *counts().entry((partner, repair)).or_default() += 1;
}

/// Returns the number of repairs since the start of the process.
pub fn repairs() -> BTreeMap<(Partner, Repair), u64> {
    counts().clone()
}

/// No code panics while it has the lock.
fn counts() -> MutexGuard<'static, BTreeMap<(Partner, Repair), u64>> {
    REPAIRS.lock().unwrap_or_else(PoisonError::into_inner)
}
