//! The names that this server adds to AG-UI: of custom events, of activities, and of keys of metadata.
//!
//! AG-UI reserves names without a prefix, so each name of ours has the prefix `agui-server.`, and
//! is declared only here. `just accept` writes the table of `docs/protocol.md`. Names of front ends,
//! such as `mcp-apps`, are declared where they are used.

/// Declares a constant for each name, from its meaning, the name without its prefix, and what carries the name.
macro_rules! own_names {
    ($($(#[doc = $meaning:literal])* $constant:ident = $name:literal, $carrier:literal;)*) => {
        $(
            $(#[doc = $meaning])*
            pub const $constant: &str = concat!("agui-server.", $name);
        )*

        /// The rows of the table in the documentation: name, carrier, meaning.
        pub const ROWS: &[[&str; 3]] = &[$([$constant, $carrier, concat!($($meaning),*)]),*];
    };
}

own_names! {
    /// A model's [answer ended](#truncated-answers) before the model was done: `reason`, `messageId`, `step`.
    TRUNCATED = "truncated", "`CUSTOM`";
    /// An answer does not fit `response_schema`, and the model is asked again: `messageId`, `problem`.
    RESPONSE_REJECTED = "response_rejected", "`CUSTOM`";
    /// The model had nothing to add to the results of its tools: `reason`.
    ANSWER_EMPTY = "answer_empty", "`CUSTOM`";
    /// The model cannot read an [attachment](#citations-and-attachments): `kind`, `name`, `mimeType`, `reason`.
    ATTACHMENT_SKIPPED = "attachment_skipped", "`CUSTOM`";
    /// The conversation is too long for the model, which did not get its oldest messages. The thread keeps them.
    CONTEXT_TRIMMED = "context_trimmed", "`CUSTOM`";
    /// Another server [continues the run](#a-run-that-is-continued): `attempt`, `cause`.
    RUN_CONTINUED = "run_continued", "`CUSTOM`";
    /// The interrupts were [answered before](#what-was-decided), and nothing was done: `answers`, each with `interruptId`, `toolCallId` and `decision`.
    ALREADY_ANSWERED = "already_answered", "`CUSTOM`";
    /// The request has come before, and nothing was run: `runId`, `attempt`, `status`, `reason`. A new run id runs it anew.
    RESTATED = "restated", "`CUSTOM`";
    /// Messages to send next, a list of texts. The [playground](playground.md) shows them as buttons.
    STARTERS = "starters", "`CUSTOM`";
    /// The demo script has carried out its plan: `steps`.
    PLAN_FINISHED = "plan_finished", "`CUSTOM`";
    /// The progress of a call: `toolCallId`, `toolName`, `message`, and `fraction`, from 0 to 1, if it is known.
    TOOL_PROGRESS = "tool_progress", "activity";
    /// A [file](files.md) that an agent, a tool or a model hands over: `id`, `name`, `mimeType`, `bytes`, `url`, and `width` and `height` of an image.
    FILE = "file", "activity";
    /// A summary that the model gets in the place of messages: `summary`, `firstMessageId`, `lastMessageId`, `digest`.
    CONTEXT_SUMMARY = "context_summary", "activity";
    /// Stands in the first of two snapshots, so that a client [takes all messages of the second](#threads) in their order. It means nothing.
    PLACEHOLDER = "placeholder", "activity, id of a reasoning";
    /// The sources of the text, a list in the provider's form.
    CITATIONS = "citations", "metadata of a text";
    /// The provider that issued the encrypted value.
    PROVIDER = "provider", "metadata of a reasoning or a text";
    /// `true` if the provider hides the reasoning.
    REDACTED = "redacted", "metadata of a reasoning";
    /// `true` if the call failed, or was declined.
    FAILED = "failed", "metadata of a tool's result";
    /// The conversations of a [remote agent](configuration.md#remote-agents) from which its endpoint has withdrawn the message: a list of digests.
    WITHDRAWN = "withdrawn", "metadata of a message";
    /// The arguments with which a person replaced the model's.
    EDITED_ARGS = "editedArgs", "metadata of a tool's result";
    /// The URL of the page that a person has to open before the reply, with the reason `authorization`.
    VISIT_URL = "visitUrl", "metadata of an interrupt";
    /// The steps of a plan that a person reviews.
    STEPS = "steps", "metadata of an interrupt";
    /// The MCP server that asks the person, by its name in the configuration.
    MCP_SERVER = "mcpServer", "metadata of an interrupt";
}
