//! A tool of an MCP server: its description for models, and calls to it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{client_slot::ClientSlot, connection::RequestError, options::McpServerOptions, result};
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Approval, Tool, ToolContext, ToolError, ToolSpec, Validator},
};

/// The longest name of a tool that all model providers accept, in characters.
const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;
const MAX_REFUSAL_CHARS: usize = 1000;

pub(super) struct McpTool {
    /// The name that the server gives the tool.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
    server: Arc<str>,
    options: Arc<McpServerOptions>,
    client: Arc<ClientSlot>,
}

impl McpTool {
    pub(super) fn new(
        description: &Value,
        server: &Arc<str>,
        options: &Arc<McpServerOptions>,
        client: &Arc<ClientSlot>,
    ) -> Result<Self, String> {
        let name =
            description.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).ok_or("it has no name")?;
        let text = |key: &str| description.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let mut purpose = text("description").or(text("title")).unwrap_or_default().to_owned();
        purpose.truncate(purpose.floor_char_boundary(MAX_DESCRIPTION_BYTES));
        let mut parameters = description.get("inputSchema").cloned().unwrap_or(Value::Null);
        if let Value::Object(schema) = &mut parameters {
            // Model providers require both.
            schema.entry("type").or_insert_with(|| "object".into());
            schema.entry("properties").or_insert_with(|| Value::Object(Default::default()));
        }
        Validator::new(&parameters).map_err(|error| format!("its schema cannot be used: {error}"))?;
        let spec = ToolSpec { name: portable_name(&options.prefix, name), description: purpose, parameters };
        Ok(Self {
            name: name.to_owned(),
            spec,
            server: server.clone(),
            options: options.clone(),
            client: client.clone(),
        })
    }
}

fn portable_name(prefix: &str, name: &str) -> String {
    let all = prefix.chars().chain(name.chars());
    all.map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).take(MAX_NAME_CHARS).collect()
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
        let server = &self.server;
        let client = self.client.get().map_err(|reason| {
            ToolError::new(format!("The MCP server `{server}` is not available at the moment. Try again later."))
                .caused_by(reason)
        })?;
        match tokio::time::timeout(self.options.timeout, client.call_tool(&self.name, arguments)).await {
            Ok(Ok(answer)) => result::to_content(&answer, self.options.max_result_bytes),
            Ok(Err(RequestError::Refused(reason))) => {
                let reason: String = reason.chars().take(MAX_REFUSAL_CHARS).collect();
                Err(ToolError::new(format!("The MCP server `{server}` refuses the call: {reason}")))
            }
            Ok(Err(RequestError::Disconnected(error))) => Err(ToolError::new(format!(
                "The connection to the MCP server `{server}` broke during the call; it is unknown if the call was carried out."
            ))
            .caused_by(error)),
            Err(_) => {
                client.report_timeout();
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
    fn names_are_reduced_to_characters_that_all_providers_accept() {
        assert_eq!(portable_name("", "read_file"), "read_file");
        assert_eq!(portable_name("files_", "read.file/é"), "files_read_file__");
        assert_eq!(portable_name("", &"x".repeat(100)).len(), MAX_NAME_CHARS);
    }
}
