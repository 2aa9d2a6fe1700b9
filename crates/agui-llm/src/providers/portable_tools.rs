//! The names and schemas of tools in the form that a provider takes, and the restoration of the
//! names.
//!
//! Providers refuse some names of pages, MCP servers and models, also in the history: a name that a
//! model made up once would end every later run of its thread.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use futures::StreamExt as _;
use serde_json::Value;

use super::{tool_schema, wire::schema};
use crate::{
    Block, BlockStart, ModelEvent, ModelRequest, ModelStep, ModelStream, ToolChoice,
    known_models::ToolLimits,
    learned::{Learned, Scope},
};
use agui_base::repairs::{Partner, Repair, repaired};
use agui_store::ThreadKey;
use agui_tools::ToolSpec;

/// The length of the hash at the end of a name, with the `_` before it.
const HASH_CHARS: usize = 9;

/// Converts the tools of requests to the form of one provider.
#[derive(Debug)]
pub(crate) struct PortableTools {
    limits: Arc<ToolLimits>,
    /// The tools that were left out. The warning about each is logged once an hour and owner.
    warned: Learned<()>,
}

/// The replaced names of a request.
#[derive(Debug, Default)]
pub(crate) struct SentNames {
    /// The sent names by the original ones.
    sent: HashMap<String, String>,
    taken: HashSet<String>,
}

impl PortableTools {
    pub(crate) fn new(limits: Arc<ToolLimits>) -> Self {
        Self { limits, warned: Learned::by(Scope::Owner) }
    }

    /// Converts the tools, the choice and the calls of a request. Tools that the provider cannot
    /// take are left out.
    pub(crate) fn prepare(&self, request: &mut ModelRequest) -> SentNames {
        let taken =
            request.tools.iter().map(|tool| &tool.name).filter(|name| self.limits.takes_name(name));
        let mut names = SentNames { taken: taken.cloned().collect(), sent: HashMap::new() };
        if !request.tools.iter().all(|tool| self.is_portable(tool)) {
            let thread = request.thread.as_ref();
            request.tools = request
                .tools
                .iter()
                .filter_map(|tool| self.portable(tool, thread, &mut names))
                .collect();
        }
        for step in &mut request.steps {
            match step {
                ModelStep::Assistant(blocks) => {
                    for block in blocks {
                        if let Block::Call(call) = block {
                            names.replace(&mut call.function.name, &self.limits);
                        }
                    }
                }
                ModelStep::ToolResults(results) => {
                    results
                        .iter_mut()
                        .for_each(|result| names.replace(&mut result.name, &self.limits));
                }
                ModelStep::Instructions(_) | ModelStep::User(_) => {}
            }
        }
        if let ToolChoice::Tool(name) = &mut request.tool_choice {
            names.replace(name, &self.limits);
            if !request.tools.iter().any(|tool| tool.name == *name) {
                request.tool_choice = ToolChoice::Auto;
            }
        }
        if request.tools.is_empty() && request.tool_choice == ToolChoice::Required {
            request.tool_choice = ToolChoice::Auto;
        }
        names
    }

    fn is_portable(&self, tool: &ToolSpec) -> bool {
        let is_described = !tool.description.trim().is_empty();
        is_described
            && self.limits.takes_name(&tool.name)
            && tool_schema::is_plain(&tool.parameters, &self.limits)
    }

    fn portable(
        &self,
        tool: &ToolSpec,
        thread: Option<&ThreadKey>,
        names: &mut SentNames,
    ) -> Option<ToolSpec> {
        let mut portable = tool.clone();
        portable.description = purpose(tool);
        names.replace(&mut portable.name, &self.limits);
        if tool_schema::is_plain(&tool.parameters, &self.limits) {
            return Some(portable);
        }
        match tool_schema::portable(&schema(&tool.parameters), &self.limits) {
            Ok(folded) => {
                portable.parameters = folded.schema;
                let words = std::iter::once(portable.description).chain(folded.notes);
                let words: Vec<_> = words.filter(|words| !words.is_empty()).collect();
                portable.description = words.join("\n");
                Some(portable)
            }
            Err(reason) => {
                if self.warned.get(thread, &tool.name).is_none() {
                    self.warned.set(thread, &tool.name, ());
                    repaired(Partner::ToolServer, Repair::ToolLeftOut);
                    tracing::warn!(
                        tool = tool.name,
                        reason,
                        "left out a tool that the model's provider would refuse"
                    );
                }
                None
            }
        }
    }
}

impl SentNames {
    /// Gives the calls of an answer their original names.
    pub(super) fn restore(self, answer: ModelStream) -> ModelStream {
        if self.sent.is_empty() {
            return answer;
        }
        let originals: HashMap<String, String> =
            self.sent.into_iter().map(|(original, sent)| (sent, original)).collect();
        let restored = answer.map(move |mut event| {
            let restore = |name: &mut String| {
                if let Some(original) = originals.get(name.as_str()) {
                    name.clone_from(original);
                }
            };
            match &mut event {
                Ok(ModelEvent::Start { block: BlockStart::Call { name, .. }, .. }) => restore(name),
                Ok(ModelEvent::WrittenCalls { calls, .. }) => {
                    calls.iter_mut().for_each(|call| restore(&mut call.name))
                }
                _ => {}
            }
            event
        });
        restored.boxed()
    }

    fn replace(&mut self, name: &mut String, limits: &ToolLimits) {
        if limits.takes_name(name) {
            return;
        }
        if let Some(sent) = self.sent.get(name) {
            name.clone_from(sent);
            return;
        }
        let sent = (0..)
            .map(|attempt| portable_name(name, limits, attempt))
            .find(|sent| !self.taken.contains(sent));
        let sent = sent.unwrap_or_default();
        self.taken.insert(sent.clone());
        self.sent.insert(std::mem::replace(name, sent.clone()), sent);
    }
}

/// Returns the description of a tool, or else that of its schema, or its name: some providers
/// refuse an empty text (<https://github.com/Teradata/teradata-mcp-server/issues/232>).
fn purpose(tool: &ToolSpec) -> String {
    let schema_text = |member: &str| tool.parameters.get(member).and_then(Value::as_str);
    let words = [Some(tool.description.as_str()), schema_text("description"), schema_text("title")];
    let words = words.into_iter().flatten().find(|words| !words.trim().is_empty());
    words.unwrap_or(&tool.name).to_owned()
}

/// Returns a name that the provider takes. The hash of the original distinguishes names with the
/// same letters.
fn portable_name(name: &str, limits: &ToolLimits, attempt: u32) -> String {
    let mut hasher = DefaultHasher::new();
    (name, attempt).hash(&mut hasher);
    let hash = hasher.finish() as u32;
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let letters: String = letters.take(limits.name_chars - HASH_CHARS).collect();
    let letters = letters.trim_matches('_');
    let first = if letters.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "t_" };
    let letters = &letters[..letters.len().min(limits.name_chars - HASH_CHARS - first.len())];
    format!("{first}{letters}_{hash:08x}")
}

#[cfg(test)]
mod tests;
