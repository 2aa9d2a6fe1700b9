//! The capabilities of a script, derived from its replies: a feature is supported if a reply uses it.

use super::{
    questions::Questions,
    reply::{Op, Reply},
};
use crate::protocol::{
    AgentCapabilities,
    capabilities::{
        HumanInTheLoopCapabilities, IdentityCapabilities, ReasoningCapabilities, StateCapabilities, ToolsCapabilities,
    },
};

pub(super) fn declare(description: Option<String>, replies: &[Reply], questions: &Questions) -> AgentCapabilities {
    let has = |test: fn(&Op) -> bool| Some(replies.iter().flat_map(|reply| &reply.play).any(test));
    AgentCapabilities {
        identity: Some(IdentityCapabilities {
            r#type: Some("agui-server".to_owned()),
            description,
            ..IdentityCapabilities::default()
        }),
        tools: Some(ToolsCapabilities {
            supported: has(|op| matches!(op, Op::Calls { .. })),
            parallel_calls: has(|op| matches!(op, Op::Calls { calls, .. } if calls.len() > 1)),
            client_provided: Some(replies.iter().any(|reply| !reply.when.offers.is_empty())),
            items: None,
        }),
        state: Some(StateCapabilities {
            snapshots: has(|op| matches!(op, Op::State(_))),
            deltas: has(|op| matches!(op, Op::Patch(_))),
            ..StateCapabilities::default()
        }),
        reasoning: Some(ReasoningCapabilities {
            supported: has(|op| matches!(op, Op::Think { .. })),
            streaming: has(|op| matches!(op, Op::Think { .. })),
            encrypted: Some(false),
        }),
        human_in_the_loop: Some(HumanInTheLoopCapabilities {
            supported: Some(questions.any()),
            approvals: Some(questions.any_call()),
            interrupts: Some(questions.any()),
            approve_with_edits: Some(questions.any_editable()),
            ..HumanInTheLoopCapabilities::default()
        }),
        ..AgentCapabilities::default()
    }
}
