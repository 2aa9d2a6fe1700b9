//! Counts what others sent that was invalid and was read all the same, for metrics. Each repair is also logged where it is
//! made. The counts are those of the process, because readers of JSON do not know the server that they read for.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Whoever sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Partner {
    Page,
    /// A model, or its provider.
    Model,
    RemoteAgent,
    ToolServer,
}

/// What was repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Repair {
    /// A surrogate half that is not in one string with the other one.
    Half,
    /// `NaN` or `Infinity`, read as `null`.
    NotANumber,
    ByteOrderMark,
    /// `null` where a list, an object or a text is meant.
    Null,
    /// The form of a call's arguments.
    Arguments,
    /// A parameter of a request, or earlier thinking, that a provider refused.
    ParameterLeftOut,
    AttachmentSkipped,
    /// A tool that has no form that the provider takes.
    ToolLeftOut,
    /// A call that a model wrote as text.
    WrittenCall,
    /// A request that was sent again after an empty or unreadable answer.
    AskedAgain,
}

impl Partner {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Model => "model",
            Self::RemoteAgent => "remote_agent",
            Self::ToolServer => "tool_server",
        }
    }
}

impl Repair {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Half => "half",
            Self::NotANumber => "not_a_number",
            Self::ByteOrderMark => "byte_order_mark",
            Self::Null => "null",
            Self::Arguments => "arguments",
            Self::ParameterLeftOut => "parameter_left_out",
            Self::AttachmentSkipped => "attachment_skipped",
            Self::ToolLeftOut => "tool_left_out",
            Self::WrittenCall => "written_call",
            Self::AskedAgain => "asked_again",
        }
    }
}

static REPAIRS: Mutex<BTreeMap<(Partner, Repair), u64>> = Mutex::new(BTreeMap::new());

/// Counts a repair.
pub(crate) fn repaired(partner: Partner, repair: Repair) {
    *REPAIRS.lock().entry((partner, repair)).or_default() += 1;
}

/// Returns the number of repairs since the start of the process.
pub(crate) fn repairs() -> BTreeMap<(Partner, Repair), u64> {
    REPAIRS.lock().clone()
}
