//! The request of a run, and interrupts with their answers.

use crate::http::openapi::schema::{
    Describe as _, Named, SchemaMembers as _, any, component, list_of, named, object, text, text_of, time,
};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        named(
            "RunAgentInput",
            object()
                .has("threadId", text())
                .has("runId", text())
                .has("messages", list_of(component("Message")))
                .may_have("protocolVersion", text().says("The version of AG-UI that the client speaks."))
                .may_have("parentRunId", text().says("The ended run that this one continues."))
                .may_have("state", any().says("Without it, the stored state."))
                .may_have("tools", list_of(component("Tool")).says("Tools that the client runs."))
                .may_have("context", list_of(component("Context")))
                .may_have(
                    "forwardedProps",
                    any().says("For the agent. `onDisconnect` decides whether the run goes on without its client."),
                )
                .may_have("resume", list_of(component("ResumeEntry")).says("Answers to the open interrupts.")),
        ),
        named(
            "ConnectInput",
            object()
                .may_have("runId", text())
                .may_have("protocolVersion", text())
                .says("The part of a `RunAgentInput` that is read: the id of the run in the events, and the client's version."),
        ),
        named(
            "Tool",
            object()
                .has("name", text())
                .has("description", text())
                .may_have("parameters", any().says("A JSON Schema of the arguments."))
                .may_have("metadata", object()),
        ),
        named("Context", object().has("description", text()).has("value", text())),
        named(
            "Interrupt",
            object()
                .has("id", text())
                .has("reason", text())
                .may_have("message", text())
                .may_have("toolCallId", text())
                .may_have("responseSchema", object().says("A JSON Schema of the answer."))
                .may_have("expiresAt", time())
                .may_have("metadata", object())
                .may_have("subagentRunId", text()),
        ),
        named(
            "ResumeEntry",
            object()
                .has("interruptId", text())
                .has("status", text_of(["resolved", "cancelled"]))
                .may_have("payload", any())
                .may_have("metadata", object()),
        ),
    ]
}
