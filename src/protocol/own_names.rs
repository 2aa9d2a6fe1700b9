//! The names that this server adds to AG-UI: of custom events, of activities, and of keys of metadata.
//!
//! AG-UI keeps names without a prefix for itself, so each name of ours has the prefix `agui-server.`, and is declared here
//! and nowhere else. `UPDATE_DOCS=1 cargo test --lib own_names` writes the table of `docs/protocol.md`. Names that front ends
//! already know, such as `mcp-apps`, are theirs and stand where they are used.

/// Declares a constant for each name, from what carries the name, the name without its prefix, and its meaning.
macro_rules! own_names {
    ($($(#[$meta:meta])* $constant:ident = $carrier:literal, $name:literal, $meaning:literal;)*) => {
        $(
            $(#[$meta])*
            #[doc = $meaning]
            pub(crate) const $constant: &str = concat!("agui-server.", $name);
        )*

        /// The rows of the table in the documentation.
        #[cfg(test)]
        const ROWS: &[[&str; 3]] = &[$([$constant, $carrier, $meaning]),*];
    };
}

own_names! {
    TRUNCATED = "`CUSTOM`", "truncated",
        "A model's [answer ended](#truncated-answers) before the model was done: `reason`, `messageId`, `step`.";
    RESPONSE_REJECTED = "`CUSTOM`", "response_rejected",
        "An answer does not fit `response_schema`, and the model is asked again: `messageId`, `problem`.";
    ATTACHMENT_SKIPPED = "`CUSTOM`", "attachment_skipped",
        "The model cannot read an [attachment](#citations-and-attachments): `kind`, `name`, `mimeType`, `reason`.";
    RUN_CONTINUED = "`CUSTOM`", "run_continued",
        "Another server [goes on with the run](#a-run-that-is-continued): `attempt`, `cause`.";
    #[cfg(test)]
    STARTERS = "`CUSTOM`", "starters",
        "Messages to send next, a list of texts. The [playground](playground.md) shows them as buttons.";
    #[cfg(test)]
    PLAN_FINISHED = "`CUSTOM`", "plan_finished",
        "The demo script has carried out its plan: `steps`.";
    TOOL_PROGRESS = "activity", "tool_progress",
        "The progress of a call: `toolCallId`, `toolName`, `message`, and `fraction`, from 0 to 1, if it is known.";
    CONTEXT_SUMMARY = "activity", "context_summary",
        "A summary that the model gets in the place of messages: `summary`, `firstMessageId`, `lastMessageId`, `digest`.";
    CITATIONS = "metadata of a text", "citations",
        "The sources of the text, a list in the provider's form.";
    PROVIDER = "metadata of a reasoning or a text", "provider",
        "The provider that issued the encrypted value.";
    REDACTED = "metadata of a reasoning", "redacted",
        "`true` if the provider hides the reasoning.";
    FAILED = "metadata of a tool's result", "failed",
        "`true` if the call failed, or was declined.";
    EDITED_ARGS = "metadata of a tool's result", "editedArgs",
        "The arguments with which a person replaced the model's.";
    STEPS = "metadata of an interrupt", "steps",
        "The steps of a plan that a person reviews.";
    MCP_SERVER = "metadata of an interrupt", "mcpServer",
        "The MCP server that asks the person, by its name in the configuration.";
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md");
    const HEAD: &str = "| name | where | meaning |\n|---|---|---|\n";

    #[test]
    fn the_documented_table_is_that_of_the_code() {
        let rows = ROWS.iter().map(|[name, carrier, meaning]| format!("| `{name}` | {carrier} | {meaning} |\n"));
        let table: String = rows.collect();
        let document = fs::read_to_string(DOCUMENT).unwrap();
        let (before, rest) = document.split_once(HEAD).unwrap();
        let (_, after) = rest.split_once("\n\n").unwrap();
        let written = [before, HEAD, &table, "\n", after].concat();
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(DOCUMENT, &written).unwrap();
        }
        assert!(document == written, "`UPDATE_DOCS=1 cargo test --lib own_names` writes the table of docs/protocol.md");
    }
}
