//! The capabilities of a script, derived from its lines: a feature is supported if a line uses it.

use super::{
    format::{ActionKind, ScriptLine},
    questions::{QuestionKind, Questions},
};
use agui_protocol::{
    AgentCapabilities, JsonObject,
    capabilities::{
        HumanInTheLoopCapabilities, IdentityCapabilities, ReasoningCapabilities, StateCapabilities,
        ToolsCapabilities,
    },
};

pub(super) fn declare(
    description: Option<String>,
    starters: Option<JsonObject>,
    lines: &[ScriptLine],
    questions: &Questions,
) -> AgentCapabilities {
    let actions = || lines.iter().flat_map(|line| &line.play).map(|action| &action.get_ref().0);
    let has = |test: fn(&ActionKind) -> bool| Some(actions().any(test));
    let asks = |test: fn(&QuestionKind) -> bool| Some(questions.values().any(test));
    AgentCapabilities {
        identity: Some(IdentityCapabilities {
            r#type: Some("agui-server".to_owned()),
            description,
            ..IdentityCapabilities::default()
        }),
        tools: Some(ToolsCapabilities {
            supported: has(|action| matches!(action, ActionKind::Calls { .. })),
            parallel_calls: has(
                |action| matches!(action, ActionKind::Calls { calls, .. } if calls.len() > 1),
            ),
            client_provided: Some(lines.iter().any(|line| line.when.offers.is_some())),
            items: None,
        }),
        state: Some(StateCapabilities {
            snapshots: has(|action| matches!(action, ActionKind::State { .. })),
            deltas: has(|action| matches!(action, ActionKind::Patch { .. })),
            ..StateCapabilities::default()
        }),
        reasoning: Some(ReasoningCapabilities {
            supported: has(|action| matches!(action, ActionKind::Think { .. })),
            streaming: has(|action| matches!(action, ActionKind::Think { .. })),
            encrypted: Some(false),
        }),
        human_in_the_loop: Some(HumanInTheLoopCapabilities {
            supported: Some(!questions.is_empty()),
            approvals: asks(|kind| kind.is_call()),
            interrupts: Some(!questions.is_empty()),
            approve_with_edits: asks(|kind| *kind == QuestionKind::Call { is_editable: true }),
            ..HumanInTheLoopCapabilities::default()
        }),
        custom: starters
            .map(|starters| JsonObject::from_iter([("starters".to_owned(), starters.into())])),
        ..AgentCapabilities::default()
    }
}
