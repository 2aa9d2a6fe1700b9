//! The request to run an agent, with the tools and the context that the application provides.

use serde_json::Value;

use super::{
    JsonObject, Message, Messages, Metadata, ResumeEntry, RunId, ThreadId, wire_struct::wire_struct,
};

/// The member of `forwardedProps` that turns thinking on or off for one run.
pub const DEEP_THINKING: &str = "enableDeepThinking";

wire_struct! {
    decoded
    /// A request to run an agent. Read it from untrusted bytes with [`decode`](super::decode::decode).
    #[derive(Default)]
    #[schema(description = "A request to run an agent.")]
    RunAgentInput {
        /// The conversation that the run belongs to.
        thread_id: ThreadId,
        /// Identifies the run.
        run_id: RunId,
        /// The conversation so far, in order.
        #[schema(value_type = Vec<Message>)]
        messages: Messages,
    } open {
        /// The state that the run starts from, any JSON.
        state,
        /// Data that the application passes to the agent, any JSON.
        forwarded_props,
    } optional {
        /// The protocol version of the client; absent from clients older than the field.
        protocol_version: String,
        /// The run that this one continues or was spawned by.
        parent_run_id: RunId,
    } defaulted {
        /// Tools that the application itself executes when an agent calls them.
        #[serde(default)]
        tools: Vec<ToolDefinition>,
        /// Information for the model beside the conversation.
        #[serde(default)]
        context: Vec<Context>,
        /// Replies to the interrupts that ended the previous run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        resume: Vec<ResumeEntry>,
    }
}

impl RunAgentInput {
    /// Returns the state that the run starts from, by default the empty object.
    pub fn state_or_empty(&self) -> Value {
        self.state.clone().unwrap_or_else(|| Value::Object(JsonObject::new()))
    }

    /// Returns the text of the last user message.
    pub fn last_user_text(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::User(user) => Some(user.content.text()),
            _ => None,
        })
    }

    /// Returns the application's tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns `enableDeepThinking` of `forwardedProps`, if it is a boolean.
    pub fn deep_thinking(&self) -> Option<bool> {
        self.forwarded_prop(DEEP_THINKING)?.as_bool()
    }

    /// Returns a member of `forwardedProps`, if that is an object.
    pub fn forwarded_prop(&self, name: &str) -> Option<&Value> {
        self.forwarded_props.as_ref()?.get(name)
    }
}

wire_struct! {
    decoded
    /// A tool that an agent may call.
    #[schema(as = Tool)]
    ToolDefinition {
        /// The name in calls.
        name: String,
    } lenient {
        /// Tells the model when to use the tool.
        description: String,
    } open {
        /// JSON Schema of the arguments; absent for a tool without arguments.
        parameters,
    } optional {
        /// Further data, open by key.
        metadata: Metadata,
    }
}

wire_struct! {
    decoded
    /// One piece of information for the model.
    #[derive(Eq)]
    Context {
        /// Describes the value.
        description: String,
        /// The information itself.
        value: String,
    }
}
