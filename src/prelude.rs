//! The names that most agents, tools and servers need: `use agui_server::prelude::*;`

pub use async_trait::async_trait;

#[cfg(feature = "llm")]
pub use crate::tools::{Tool, ToolContext, ToolError, tool_fn};
pub use crate::{
    Server,
    agent::{Agent, AgentError, Emitter, Principal, RunContext, agent_fn},
    protocol::{Event, Interrupt, Message, RunAgentInput},
};
