//! The tools that one agent may use, as they are now, each with its compiled schema.
//!
//! Schemas are compiled once for as long as a tool lives: runs ask for the tools again and again, and those of an MCP
//! server are the same ones until the server says otherwise.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{Tool, ToolSource, Validator};

/// How long a run waits for the tools of servers that have just been started.
pub const FIRST_WAIT: Duration = Duration::from_secs(10);

/// A tool that a model may be told about.
#[derive(Clone)]
pub struct OfferedTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Its schema.
    pub validator: Arc<Validator>,
}

impl OfferedTool {
    /// The name the model calls it by.
    pub fn name(&self) -> &str {
        &self.tool.spec().name
    }
}

impl fmt::Debug for OfferedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OfferedTool").field(&self.name()).finish()
    }
}

/// The tools that one agent may use.
#[derive(Default)]
pub struct Toolbox {
    shelves: Vec<Shelf>,
    cache: Mutex<Cache>,
}

#[derive(Clone)]
enum Shelf {
    Tool(Arc<dyn Tool>),
    Source(Arc<dyn ToolSource>),
}

#[derive(Default)]
struct Cache {
    /// What was offered or refused last.
    known: Vec<Known>,
    /// What has been complained about.
    warned: HashSet<String>,
}

/// A tool that was looked at, with its schema if that is of use.
struct Known {
    tool: Arc<dyn Tool>,
    validator: Option<Arc<Validator>>,
}

impl Toolbox {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// Adds a tool that other toolboxes have, too.
    #[must_use]
    pub fn shared_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.shelves.push(Shelf::Tool(tool));
        self
    }

    /// Adds the tools and sources of another toolbox.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.shelves.extend(other.shelves);
        self
    }

    /// Adds all tools of a source, whichever it has at the time.
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.shelves.push(Shelf::Source(source));
        self
    }

    /// Whether there can never be a tool in it.
    pub fn is_empty(&self) -> bool {
        self.shelves.is_empty()
    }

    /// Waits until every source has had its chance to come up, but no longer than [`FIRST_WAIT`]. Starts those that are
    /// not started. Returns at once when they have answered before, also if they are gone by now.
    pub async fn ready(&self) {
        let sources = self.shelves.iter().filter_map(|shelf| match shelf {
            Shelf::Source(source) => Some(source),
            Shelf::Tool(_) => None,
        });
        let all = futures::future::join_all(sources.map(|source| source.ready()));
        // Whoever is late is there for the next run.
        let _ = tokio::time::timeout(FIRST_WAIT, all).await;
    }

    /// The tools that there are now, in the order in which they were added. The first of several with a name has it;
    /// a tool whose schema is of no use is left out. Both are warned about, once.
    pub fn tools(&self) -> Vec<OfferedTool> {
        let mut now: Vec<Arc<dyn Tool>> = Vec::new();
        for shelf in &self.shelves {
            match shelf {
                Shelf::Tool(tool) => now.push(tool.clone()),
                Shelf::Source(source) => now.extend(source.tools()),
            }
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Cache { known, warned } = &mut *cache;
        let mut taken: Vec<Known> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for tool in now {
            if taken.iter().any(|other| Arc::ptr_eq(&other.tool, &tool)) {
                continue;
            }
            let name = &tool.spec().name;
            if names.contains(name) {
                if warned.insert(name.clone()) {
                    tracing::warn!(tool = %name, "there are several tools of this name; only the first is offered");
                }
                continue;
            }
            let validator = match known.iter().find(|other| Arc::ptr_eq(&other.tool, &tool)) {
                Some(known) => known.validator.clone(),
                None => match Validator::new(&tool.spec().parameters) {
                    Ok(validator) => Some(Arc::new(validator)),
                    Err(error) => {
                        tracing::warn!(tool = %name, error, "the tool is not offered: its schema cannot be used");
                        None
                    }
                },
            };
            if validator.is_some() {
                names.insert(name.clone());
            }
            taken.push(Known { tool, validator });
        }
        let offered = taken
            .iter()
            .filter_map(|known| Some(OfferedTool { tool: known.tool.clone(), validator: known.validator.clone()? }));
        let offered = offered.collect();
        *known = taken;
        offered
    }
}

/// Compiled schemas are not copied.
impl Clone for Toolbox {
    fn clone(&self) -> Self {
        Self { shelves: self.shelves.clone(), cache: Mutex::default() }
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
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        protocol::{JsonObject, MessageContent},
        tools::{ToolContext, ToolError, ToolSpec},
    };

    struct Plain(ToolSpec);

    #[async_trait]
    impl Tool for Plain {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn call(&self, _: JsonObject, _: &ToolContext) -> Result<MessageContent, ToolError> {
            Ok("done".into())
        }
    }

    fn tool(name: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
        Arc::new(Plain(ToolSpec { name: name.into(), description: description.into(), parameters }))
    }

    #[derive(Default)]
    struct Changing(Mutex<Vec<Arc<dyn Tool>>>);

    #[async_trait]
    impl ToolSource for Changing {
        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            self.0.lock().unwrap().clone()
        }
    }

    #[test]
    fn the_first_of_a_name_is_offered_and_broken_ones_are_not() {
        let toolbox = Toolbox::new()
            .tool(tool("broken", "", json!({ "type": "string" })))
            .tool(tool("a", "first", json!({})))
            .tool(tool("a", "second", json!({})))
            .tool(tool("broken", "whole", json!({})));
        let tools = toolbox.tools();
        let told: Vec<_> = tools.iter().map(|tool| (tool.name(), tool.tool.spec().description.as_str())).collect();
        assert_eq!(told, [("a", "first"), ("broken", "whole")]);
    }

    #[tokio::test]
    async fn schemas_are_compiled_once_for_each_tool() {
        let source = Arc::new(Changing::default());
        *source.0.lock().unwrap() = vec![tool("a", "", json!({})), tool("b", "", json!({}))];
        let toolbox = Toolbox::new().source(source.clone());
        toolbox.ready().await;
        let first = toolbox.tools();
        source.0.lock().unwrap()[0] = tool("c", "", json!({}));
        let second = toolbox.tools();
        assert_eq!(second.iter().map(OfferedTool::name).collect::<Vec<_>>(), ["c", "b"]);
        assert!(Arc::ptr_eq(&first[1].validator, &second[1].validator));
        // What is gone is forgotten.
        assert_eq!(toolbox.cache.lock().unwrap().known.len(), 2);
    }
}
