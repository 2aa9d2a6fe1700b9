//! The tools of one agent. Every run asks for them, so the schema of an unchanged tool is compiled only once.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::{Tool, ToolContext, ToolError, ToolSource, Validator};
use agui_agent::{AppRequest, RunContext};

/// The time that a run waits for MCP servers that are still starting.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// A tool that is offered to a model.
#[derive(Clone)]
pub struct OfferedTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The compiled schema of its arguments.
    pub validator: Arc<Validator>,
}

impl OfferedTool {
    /// Returns the name that the model calls the tool by.
    pub fn name(&self) -> &str {
        &self.tool.spec().name
    }
}

impl fmt::Debug for OfferedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OfferedTool").field(&self.name()).finish()
    }
}

/// The tools of one agent.
#[derive(Default)]
pub struct Toolbox {
    sources: Vec<Arc<dyn ToolSource>>,
    cache: Mutex<Cache>,
}

/// The source of a tool that does not change.
struct FixedTool(Arc<dyn Tool>);

impl ToolSource for FixedTool {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![self.0.clone()]
    }
}

#[derive(Default)]
struct Cache {
    /// The tools of the last call of [`Toolbox::tools`].
    tools: Vec<CachedTool>,
    warned: HashSet<String>,
}

/// A tool with its compiled schema; `None` if the schema cannot be used.
struct CachedTool {
    tool: Arc<dyn Tool>,
    validator: Option<Arc<Validator>>,
}

impl Toolbox {
    /// An empty toolbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// Adds a tool that other toolboxes share.
    #[must_use]
    pub fn shared_tool(self, tool: Arc<dyn Tool>) -> Self {
        self.source(Arc::new(FixedTool(tool)))
    }

    /// Adds the tools and sources of another toolbox.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.sources.extend(other.sources);
        self
    }

    /// Adds a source, with all tools that it has at any time.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Returns whether the toolbox has no tools and no sources.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Starts all sources, and waits until each is connected or has failed, at most for 10 seconds. Returns at
    /// once if they were connected before, even if they are not now.
    pub async fn ready(&self) {
        let all = futures::future::join_all(self.sources.iter().map(|source| source.ready()));
        // The tools of a late source are offered in the next run.
        let _ = tokio::time::timeout(READY_TIMEOUT, all).await;
    }

    /// Returns the toolbox that replaces this one for a run; `None` to keep this one.
    #[doc(hidden)]
    pub async fn for_run(&self, cx: &RunContext) -> Option<Self> {
        let found =
            futures::future::join_all(self.sources.iter().map(|source| source.for_run(cx))).await;
        if found.iter().all(Option::is_none) {
            return None;
        }
        let sources = self
            .sources
            .iter()
            .zip(found)
            .map(|(source, own)| own.unwrap_or_else(|| source.clone()));
        Some(Self { sources: sources.collect(), cache: Mutex::default() })
    }

    /// Responds to a request of a page, if a source of this toolbox has it.
    #[doc(hidden)]
    pub async fn respond_to_app(
        &self,
        request: &AppRequest,
        cx: &ToolContext,
    ) -> Result<Value, ToolError> {
        for source in &self.sources {
            if let Some(response) = source.respond_to_app(request, cx).await {
                return response;
            }
        }
        Err(ToolError::new(
            "the agent lists no MCP server of this name with pages, or not the tool",
        ))
    }

    /// Returns the current tools that [`tools`](Self::tools) leaves out, each after the tool that
    /// has its name.
    #[doc(hidden)]
    pub fn hidden_tools(&self) -> Vec<[Arc<dyn Tool>; 2]> {
        let offered = self.tools();
        let current = self.sources.iter().flat_map(|source| source.tools());
        let hidden = current.filter_map(|tool| {
            let first = offered.iter().find(|first| first.name() == tool.spec().name)?;
            (!Arc::ptr_eq(&first.tool, &tool)).then(|| [first.tool.clone(), tool])
        });
        hidden.collect()
    }

    /// Returns the current tools in the order in which they were added. Logs and leaves out all but the first tool of a
    /// name, and tools whose schema cannot be used.
    pub fn tools(&self) -> Vec<OfferedTool> {
        let current = self.sources.iter().flat_map(|source| source.tools());
        let mut cache = self.cache.lock();
        let mut tools: Vec<CachedTool> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for tool in current {
            // An agent can list both a server and one of its tools.
            if tools.iter().any(|other| Arc::ptr_eq(&other.tool, &tool)) {
                continue;
            }
            let name = tool.spec().name.clone();
            if names.contains(&name) {
                if cache.warned.insert(name.clone()) {
                    tracing::warn!(
                        tool = name,
                        "there are several tools of this name; only the first is offered"
                    );
                }
                continue;
            }
            let validator = match cache.tools.iter().find(|cached| Arc::ptr_eq(&cached.tool, &tool))
            {
                Some(cached) => cached.validator.clone(),
                None => compile(&tool),
            };
            if validator.is_some() {
                names.insert(name);
            }
            tools.push(CachedTool { tool, validator });
        }
        // Names that an MCP server no longer lists would fill the memory.
        cache.warned.retain(|name| names.contains(name));
        cache.tools = tools;
        let offered = |cached: &CachedTool| {
            Some(OfferedTool { tool: cached.tool.clone(), validator: cached.validator.clone()? })
        };
        cache.tools.iter().filter_map(offered).collect()
    }
}

fn compile(tool: &Arc<dyn Tool>) -> Option<Arc<Validator>> {
    let validator = Validator::new(&tool.spec().parameters).inspect_err(|error| {
        tracing::warn!(
            tool = tool.spec().name,
            error,
            "the tool is not offered: its schema cannot be used"
        );
    });
    validator.ok().map(Arc::new)
}

/// Compiled schemas are not copied.
impl Clone for Toolbox {
    fn clone(&self) -> Self {
        Self { sources: self.sources.clone(), cache: Mutex::default() }
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools()).finish()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::ToolSpec;
    use agui_protocol::{JsonObject, MessageContent};

    struct NamedTool(ToolSpec);

    #[async_trait]
    impl Tool for NamedTool {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn call(&self, _: JsonObject, _: &ToolContext) -> Result<MessageContent, ToolError> {
            Ok("done".into())
        }
    }

    fn tool(name: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
        Arc::new(NamedTool(ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters,
        }))
    }

    #[derive(Default)]
    struct ChangingSource(Mutex<Vec<Arc<dyn Tool>>>);

    #[async_trait]
    impl ToolSource for ChangingSource {
        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            self.0.lock().clone()
        }
    }

    #[test]
    fn of_tools_with_one_name_the_first_with_a_valid_schema_is_offered() {
        let toolbox = Toolbox::new()
            .shared_tool(tool("broken", "", json!({ "type": "string" })))
            .shared_tool(tool("a", "first", json!({})))
            .shared_tool(tool("a", "second", json!({})))
            .shared_tool(tool("broken", "whole", json!({})));
        let tools = toolbox.tools();
        let offered: Vec<_> =
            tools.iter().map(|tool| (tool.name(), tool.tool.spec().description.as_str())).collect();
        assert_eq!(offered, [("a", "first"), ("broken", "whole")]);
        let hidden = toolbox.hidden_tools();
        let hidden: Vec<_> = hidden
            .iter()
            .map(|pair| [0, 1].map(|at| pair[at].spec().description.as_str()))
            .collect();
        assert_eq!(hidden, [["whole", ""], ["first", "second"]]);
    }

    #[tokio::test]
    async fn schemas_are_compiled_once_for_each_tool() {
        let source = Arc::new(ChangingSource::default());
        *source.0.lock() =
            vec![tool("a", "", json!({})), tool("b", "", json!({})), tool("a", "", json!({}))];
        let toolbox = Toolbox::new().source(source.clone());
        toolbox.ready().await;
        let first = toolbox.tools();
        assert_eq!(toolbox.cache.lock().warned.len(), 1);
        source.0.lock()[0] = tool("c", "", json!({}));
        source.0.lock().pop();
        let second = toolbox.tools();
        assert_eq!(second.iter().map(OfferedTool::name).collect::<Vec<_>>(), ["c", "b"]);
        assert!(Arc::ptr_eq(&first[1].validator, &second[1].validator));
        // Tools that the source no longer has leave the cache.
        let cache = toolbox.cache.lock();
        assert_eq!((cache.tools.len(), cache.warned.len()), (2, 0));
    }
}
