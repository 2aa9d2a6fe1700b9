//! The names that most agents, tools and servers need: `use agui_server::prelude::*;`

pub use async_trait::async_trait;

pub use crate::{
    Server,
    agent::{Agent, AgentError, AgentResult, Emitter, Principal, RunContext, agent_fn},
    auth::Authenticator,
    protocol::{Event, Interrupt, Message, ResumeStatus, RunAgentInput},
    store::Store,
};
#[cfg(feature = "llm")]
pub use crate::{
    llm::{LlmAgent, Model},
    tools::{ApprovalRule, Tool, ToolContext, ToolError, tool_fn},
};
