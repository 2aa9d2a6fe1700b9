//! Tools that a model can call: the [`Tool`] trait, [`tool_fn`] for tools made of closures, and the server's own tools.

#[doc(inline)]
pub use agui_tools::{
    Approval, ApprovalRule, FnTool, IntoToolResult, OfferedTool, Question, Repeat, Tool,
    ToolContext, ToolError, ToolSource, ToolSpec, Toolbox, Validator, builtin, tool_fn,
};

/// Tools of MCP servers, which this server starts as processes or reaches by URL.
#[cfg(feature = "mcp")]
pub mod mcp {
    #[doc(inline)]
    pub use agui_mcp::{McpApproval, McpRevision, McpServer, McpServerOptions};
}

/// Tools that run commands and access files in a sandbox, in one workspace folder for each conversation.
#[cfg(feature = "sandbox")]
pub mod sandbox {
    #[doc(inline)]
    pub use agui_sandbox::{Sandbox, SandboxOptions};
}
