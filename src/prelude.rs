//! The names that most agents, tools and servers need: `use agui_server::prelude::*;`

pub use async_trait::async_trait;

pub use crate::{Server, auth::Authenticator};
pub use agui_agent::{Agent, AgentError, AgentResult, Emitter, Principal, RunContext, agent_fn};
#[cfg(feature = "llm")]
pub use agui_llm::{LlmAgent, Model};
pub use agui_protocol::{Event, Interrupt, Message, ResumeStatus, RunAgentInput};
pub use agui_store::Store;
#[cfg(feature = "llm")]
pub use agui_tools::{ApprovalRule, Tool, ToolContext, ToolError, tool_fn};
