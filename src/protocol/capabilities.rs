//! What an agent says about itself before a run.
//!
//! Every group and every field is optional: absent means *not declared*, not *not supported*.

use serde::{Deserialize, Serialize};

use super::{JsonObject, Tool};

/// One struct of optional fields a group; the whole of AG-UI's `AgentCapabilities`.
macro_rules! declarations {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// What an agent says about itself.
    AgentCapabilities {
        /// Who it is.
        identity: Identity,
        /// Which transports serve it.
        transport: Transport,
        /// What it does with tools.
        tools: Tools,
        /// What its output looks like.
        output: Output,
        /// What it does with state.
        state: StateCapabilities,
        /// How it works with other agents.
        multi_agent: MultiAgent,
        /// Whether it shows what it thinks.
        reasoning: Reasoning,
        /// Which media it takes and makes.
        multimodal: Multimodal,
        /// What it executes, and its limits.
        execution: Execution,
        /// How people take part.
        human_in_the_loop: HumanInTheLoop,
        /// Anything the other groups do not cover, open by key.
        custom: JsonObject,
    }

    /// Who an agent is.
    Identity {
        /// A name for people.
        name: String,
        /// The framework or platform behind it.
        r#type: String,
        /// What it does.
        description: String,
        /// Its version.
        version: String,
        /// Who maintains it.
        provider: String,
        /// Where its documentation is.
        documentation_url: String,
        /// Anything more, open by key.
        metadata: JsonObject,
    }

    /// Which transports serve an agent.
    Transport {
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

    /// What an agent does with tools.
    Tools {
        /// Whether it calls tools at all.
        supported: bool,
        /// The tools it brings along.
        items: Vec<Tool>,
        /// Whether it calls several at once.
        parallel_calls: bool,
        /// Whether it uses the tools an application offers.
        client_provided: bool,
    }

    /// What an agent's output looks like.
    Output {
        /// Whether it can answer in a given JSON Schema.
        structured_output: bool,
        /// The MIME types it produces.
        supported_mime_types: Vec<String>,
    }

    /// What an agent does with state.
    StateCapabilities {
        /// Whether it sends snapshots.
        snapshots: bool,
        /// Whether it sends deltas.
        deltas: bool,
        /// Whether it remembers across threads.
        memory: bool,
        /// Whether state survives between the runs of a thread.
        persistent_state: bool,
    }

    /// How an agent works with other agents.
    MultiAgent {
        /// Whether it does at all.
        supported: bool,
        /// Whether it delegates.
        delegation: bool,
        /// Whether it hands conversations over.
        handoffs: bool,
        /// The subagents it may invoke.
        subagents: Vec<SubagentInfo>,
    }

    /// Whether an agent shows what it thinks.
    Reasoning {
        /// Whether reasoning is visible.
        supported: bool,
        /// Whether it arrives piece by piece.
        streaming: bool,
        /// Whether it is encrypted.
        encrypted: bool,
    }

    /// Which media an agent takes and makes.
    Multimodal {
        /// What it accepts.
        input: MultimodalInput,
        /// What it produces.
        output: MultimodalOutput,
    }

    /// The media an agent accepts.
    MultimodalInput {
        /// Images.
        image: bool,
        /// Sound.
        audio: bool,
        /// Video.
        video: bool,
        /// PDF documents.
        pdf: bool,
        /// Any other file.
        file: bool,
    }

    /// The media an agent produces.
    MultimodalOutput {
        /// Images.
        image: bool,
        /// Sound.
        audio: bool,
    }

    /// What an agent executes, and its limits.
    Execution {
        /// Whether it runs code.
        code_execution: bool,
        /// Whether that code runs in a sandbox.
        sandboxed: bool,
        /// The most rounds of a run.
        max_iterations: u64,
        /// The longest a run may take, in milliseconds.
        max_execution_time: u64,
    }

    /// How people take part in a run.
    HumanInTheLoop {
        /// Whether they can at all.
        supported: bool,
        /// Whether it asks for approval.
        approvals: bool,
        /// Whether its plan can be changed while it runs.
        interventions: bool,
        /// Whether it takes feedback.
        feedback: bool,
        /// Whether it ends runs with interrupts and takes the answers.
        interrupts: bool,
        /// Whether an approval may carry edited arguments.
        approve_with_edits: bool,
    }
}

/// A subagent that an agent may invoke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
