//! The features that an agent declares before a run. An absent field means *not declared*, not *not supported*.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{JsonObject, ToolDefinition};

macro_rules! declarations {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
            #[serde(rename_all = "camelCase", default)]
            pub struct $name {
                $(
                    $(#[$field_doc])*
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub $field: Option<$type>,
                )*
            }
        )*
    };
}

declarations! {
    /// The features of an agent. The groups have the names of the AG-UI schema.
    AgentCapabilities {
        /// Name, version and maintainer.
        identity: IdentityCapabilities,
        /// Transports that serve the agent.
        transport: TransportCapabilities,
        /// Use of tools.
        tools: ToolsCapabilities,
        /// Form of the output.
        output: OutputCapabilities,
        /// Use of state.
        state: StateCapabilities,
        /// Cooperation with other agents.
        multi_agent: MultiAgentCapabilities,
        /// Visible reasoning.
        reasoning: ReasoningCapabilities,
        /// Accepted and produced media.
        multimodal: MultimodalCapabilities,
        /// Code execution and limits.
        execution: ExecutionCapabilities,
        /// Participation of people.
        human_in_the_loop: HumanInTheLoopCapabilities,
        /// Further data, open by key.
        #[schema(value_type = Option<Object>)]
        custom: JsonObject,
    }

    /// Name, version and maintainer of an agent.
    IdentityCapabilities {
        /// A name for people.
        name: String,
        /// The framework or platform behind it.
        r#type: String,
        /// The purpose.
        description: String,
        /// The version.
        version: String,
        /// The maintainer.
        provider: String,
        /// The URL of the documentation.
        documentation_url: String,
        /// Further data, open by key.
        #[schema(value_type = Option<Object>)]
        metadata: JsonObject,
    }

    /// Transports that serve an agent.
    TransportCapabilities {
        /// Server-Sent Events.
        streaming: bool,
        /// WebSocket.
        websocket: bool,
        /// Protobuf over HTTP.
        http_binary: bool,
        /// Updates after a run has finished.
        push_notifications: bool,
        /// Resuming a broken stream by sequence number.
        resumable: bool,
    }

    /// An agent's use of tools.
    ToolsCapabilities {
        /// It calls tools.
        supported: bool,
        /// The agent's own tools.
        items: Vec<ToolDefinition>,
        /// It calls several tools at once.
        parallel_calls: bool,
        /// It calls the application's tools.
        client_provided: bool,
    }

    /// Form of an agent's output.
    OutputCapabilities {
        /// It can answer in the form of a JSON Schema.
        structured_output: bool,
        /// The MIME types that it produces.
        supported_mime_types: Vec<String>,
    }

    /// An agent's use of state.
    StateCapabilities {
        /// It sends snapshots.
        snapshots: bool,
        /// It sends deltas.
        deltas: bool,
        /// It has a memory across threads.
        memory: bool,
        /// State is kept between the runs of a thread.
        persistent_state: bool,
    }

    /// Cooperation of an agent with other agents.
    MultiAgentCapabilities {
        /// It works with other agents.
        supported: bool,
        /// It delegates tasks.
        delegation: bool,
        /// It hands conversations over.
        handoffs: bool,
        /// The subagents that it may invoke.
        subagents: Vec<SubagentInfo>,
    }

    /// Visible reasoning of an agent.
    ReasoningCapabilities {
        /// Reasoning is visible.
        supported: bool,
        /// Reasoning is streamed.
        streaming: bool,
        /// Reasoning is encrypted.
        encrypted: bool,
    }

    /// Media that an agent accepts and produces.
    MultimodalCapabilities {
        /// Accepted media.
        input: MultimodalInputCapabilities,
        /// Produced media.
        output: MultimodalOutputCapabilities,
    }

    /// Media that an agent accepts.
    MultimodalInputCapabilities {
        /// Images.
        image: bool,
        /// Audio.
        audio: bool,
        /// Video.
        video: bool,
        /// PDF documents.
        pdf: bool,
        /// Other files.
        file: bool,
    }

    /// Media that an agent produces.
    MultimodalOutputCapabilities {
        /// Images.
        image: bool,
        /// Audio.
        audio: bool,
    }

    /// Code execution and limits of an agent.
    ExecutionCapabilities {
        /// It runs code.
        code_execution: bool,
        /// Code runs in a sandbox.
        sandboxed: bool,
        /// Maximum number of iterations of a run.
        max_iterations: u64,
        /// Maximum duration of a run, in milliseconds.
        max_execution_time: u64,
    }

    /// Participation of people in a run.
    HumanInTheLoopCapabilities {
        /// People can take part.
        supported: bool,
        /// It asks for approvals.
        approvals: bool,
        /// Its plan can be changed during a run.
        interventions: bool,
        /// It accepts feedback.
        feedback: bool,
        /// It raises interrupts and accepts answers to them.
        interrupts: bool,
        /// An approval may change the arguments.
        approve_with_edits: bool,
    }
}

/// A subagent that an agent may invoke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubagentInfo {
    /// The name.
    pub name: String,
    /// The purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
