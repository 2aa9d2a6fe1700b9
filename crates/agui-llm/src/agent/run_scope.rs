//! [`RunScope`]: the values that the steps of a run share.

use super::{catalog::ToolCatalog, settings::Settings};
use agui_agent::RunContext;
use agui_protocol::RunAgentInput;
use agui_tools::host::ToolSession;

/// The values that do not change in a run.
pub(super) struct RunScope<'r> {
    pub(super) settings: &'r Settings,
    pub(super) input: &'r RunAgentInput,
    pub(super) cx: &'r RunContext,
    pub(super) catalog: &'r ToolCatalog,
    pub(super) session: &'r ToolSession,
}
