//! Agents: the [`Agent`] trait, [`agent_fn`] for agents written as an async function, and the types
//! that both get.
//!
//! An agent turns one [`RunAgentInput`](crate::protocol::RunAgentInput) into a stream of events. It does not write the run's
//! frame: the server sends `RUN_STARTED` before it polls the agent, and the terminal event after the agent's last one.

#[doc(inline)]
pub use agui_agent::{
    A2ui, A2uiAgent, ActivityHandle, Agent, AgentError, AgentFn, AgentResult, AppRequest,
    Continuation, Emitter, EventStream, IntoAgent, Principal, RunContext, TextWriter,
    ToolCallHandle, agent_fn, emit, event_stream, events,
};

/// The built-in agents without a model. Agents with a model are in [`llm`](crate::llm).
pub mod builtin {
    #[doc(inline)]
    pub use agui_agent::ThreadIds;
    #[doc(inline)]
    pub use agui_agents::Echo;
    #[cfg(feature = "upstream")]
    #[doc(inline)]
    pub use agui_agents::{Remote, RemoteOptions};
}
