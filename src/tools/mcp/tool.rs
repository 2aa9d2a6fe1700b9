//! A tool of an MCP server.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::{
    McpOptions,
    client::{Caller, Failure},
    content,
};
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Approval, Tool, ToolContext, ToolError, ToolSpec, Validator},
};

/// The longest name that every provider of models takes.
const MAX_NAME: usize = 64;
/// The longest description that is passed on, in bytes.
const MAX_DESCRIPTION: usize = 8 * 1024;

/// The way to the server, which is there or is not.
pub(super) struct Line {
    caller: Mutex<Result<Caller, String>>,
}

impl Line {
    pub(super) fn down(why: &str) -> Self {
        Self { caller: Mutex::new(Err(why.to_owned())) }
    }

    pub(super) fn set(&self, caller: Result<Caller, String>) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    fn caller(&self) -> Result<Caller, String> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A tool of an MCP server.
pub(super) struct McpTool {
    /// What the server calls it.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
    options: Arc<McpOptions>,
    line: Arc<Line>,
}

impl McpTool {
    /// Reads a server's description of a tool.
    pub(super) fn read(told: &Value, options: &Arc<McpOptions>, line: &Arc<Line>) -> Result<Self, String> {
        let name = told.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).ok_or("it has no name")?;
        let text = |option: &str| told.get(option).and_then(Value::as_str).filter(|text| !text.is_empty());
        let mut description = text("description").or(text("title")).unwrap_or_default().to_owned();
        description.truncate(description.floor_char_boundary(MAX_DESCRIPTION));
        let mut parameters = told.get("inputSchema").cloned().unwrap_or(Value::Null);
        if let Value::Object(schema) = &mut parameters {
            // Providers insist on both.
            schema.entry("type").or_insert_with(|| "object".into());
            schema.entry("properties").or_insert_with(|| Value::Object(Default::default()));
        }
        Validator::new(&parameters).map_err(|error| format!("its schema cannot be used: {error}"))?;
        let spec = ToolSpec { name: plain(&options.prefix, name), description, parameters };
        Ok(Self { name: name.to_owned(), spec, options: options.clone(), line: line.clone() })
    }
}

/// A name that every provider of models takes.
fn plain(prefix: &str, name: &str) -> String {
    let all = prefix.chars().chain(name.chars());
    all.map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).take(MAX_NAME).collect()
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        self.options.approval_of.get(&self.name).unwrap_or(&self.options.approval).decide(arguments)
    }

    async fn call(&self, arguments: JsonObject, _: &ToolContext) -> Result<MessageContent, ToolError> {
        let server = &self.options.name;
        let caller = self.line.caller().map_err(|why| {
            ToolError::new(format!("The MCP server `{server}` is not available at the moment. Try again later."))
                .caused_by(why)
        })?;
        match tokio::time::timeout(self.options.timeout, caller.call(&self.name, arguments)).await {
            Ok(Ok(answer)) => content::read(&answer, self.options.max_result_bytes),
            Ok(Err(Failure::Refused(why))) => {
                let why: String = why.chars().take(1000).collect();
                Err(ToolError::new(format!("The MCP server `{server}` refuses the call: {why}")))
            }
            Ok(Err(Failure::Broken(error))) => Err(ToolError::new(format!(
                "The connection to the MCP server `{server}` broke during the call; whether it was done is not known."
            ))
            .caused_by(error)),
            Err(_) => {
                caller.was_silent();
                let seconds = self.options.timeout.as_secs_f32();
                Err(ToolError::new(format!("The MCP server `{server}` did not answer within {seconds} s.")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_every_provider_takes() {
        assert_eq!(plain("", "read_file"), "read_file");
        assert_eq!(plain("files_", "read.file/é"), "files_read_file__");
        assert_eq!(plain("", &"x".repeat(100)).len(), MAX_NAME);
    }
}
