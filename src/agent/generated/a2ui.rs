//! A2UI (v0.9): which runs have it, what the model is told of it, and what a click on a surface is for the agent.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

use super::components::{ComponentCatalog, SurfaceFault, check};
use crate::protocol::{
    AssistantMessage, Context, Event, JsonObject, Message, MessageId, RunAgentInput, ToolCall, ToolCallId,
    ToolDefinition, ToolMessage,
    event::{ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart},
};

/// The tool by which a model renders a surface.
pub(crate) const RENDER: &str = "render_a2ui";
/// The call by which an agent sees a click. No agent makes such calls.
pub(crate) const CLICK: &str = "log_a2ui_event";
/// The description of the entry of a page's context that has its components.
const SCHEMA_ENTRY: &str = "A2UI Component Schema — available components for generating UI surfaces. Use these component names \
                            and properties when creating A2UI operations.";
const GUIDE_ENTRY: &str = "A2UI render tool usage guide — how to call render_a2ui with valid arguments.";
/// The descriptions of all entries for models begin with this.
const ENTRY_PREFIX: &str = "A2UI ";
const BASIC_CATALOG: &str = "https://a2ui.org/specification/v0_9/basic_catalog.json";
const DEFAULT_ATTEMPTS: u32 = 3;

const GUIDE: &str = "\
The tool render_a2ui shows an interface to the user. Its arguments:
- surfaceId: a short new name, such as \"booking\".
- components: a flat list. Each has a unique \"id\" and its type as \"component\"; one, a layout such as Column, has the id \
\"root\". \"child\" is the id of another component and \"children\" a list of ids, never a component itself. Other properties \
stand beside them.
- data: an object with every value that components read with {\"path\": \"/name\"}, empty ones included.
A list repeats one component: \"children\": {\"componentId\": \"row\", \"path\": \"/rows\"}; in it, paths such as \"name\" are \
relative to the item. A button has \"action\": {\"event\": {\"name\": \"book\", \"context\": {\"day\": {\"path\": \"/day\"}}}}. \
When the user clicks, you see a call of log_a2ui_event with its result; never call it yourself. Example:
{\"surfaceId\": \"hi\", \"components\": [{\"id\": \"root\", \"component\": \"Column\", \"children\": [\"text\"]}, {\"id\": \"text\", \
\"component\": \"Text\", \"text\": {\"path\": \"/greeting\"}}], \"data\": {\"greeting\": \"Hello\"}}";

/// Decides whether an agent renders A2UI surfaces, and with which components. An agent without it does if the page of a run
/// says that it has a catalog.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct A2ui {
    pub(crate) is_enabled: bool,
    catalog: Option<String>,
    schema: Option<(ComponentCatalog, String)>,
    attempts: u32,
}

impl A2ui {
    /// Surfaces in every run, or in none.
    pub fn enabled(yes: bool) -> Self {
        Self { is_enabled: yes, catalog: None, schema: None, attempts: DEFAULT_ATTEMPTS }
    }

    /// Sets the URI of the catalog, in place of the page's.
    pub fn catalog(self, id: impl Into<String>) -> Self {
        Self { catalog: Some(id.into()), ..self }
    }

    /// Sets the components, `{catalogId, components: {Name: JSON Schema}}`, in place of the page's.
    ///
    /// # Errors
    /// If the JSON has another form.
    pub fn schema(self, json: &Value) -> Result<Self, &'static str> {
        let read = ComponentCatalog::read(json).ok_or("expected {\"catalogId\": …, \"components\": {…}}")?;
        Ok(Self { schema: Some((read, json.to_string())), ..self })
    }

    /// Sets how often a model may try to render a surface, the first time included; at least once.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }
}

/// A2UI in one run.
#[derive(Debug)]
pub(crate) struct RunSurfaces {
    options: A2ui,
    /// The components that the page has.
    page: Option<ComponentCatalog>,
    /// The attempts that failed since the last surface.
    failures: AtomicU32,
}

impl RunSurfaces {
    /// Returns `None` if the run has no A2UI.
    pub(super) fn of_run(options: Option<&A2ui>, input: &RunAgentInput) -> Option<Arc<Self>> {
        let has_catalog = || input.forwarded_prop("a2uiCatalogAvailable") == Some(&Value::Bool(true));
        if !options.map_or_else(has_catalog, |options| options.is_enabled) {
            return None;
        }
        let entry = input.context.iter().find(|entry| entry.description == SCHEMA_ENTRY);
        let page = entry.and_then(|entry| ComponentCatalog::read(&serde_json::from_str(&entry.value).ok()?));
        let options = options.cloned().unwrap_or_else(|| A2ui::enabled(true));
        Some(Arc::new(Self { options, page, failures: AtomicU32::new(0) }))
    }

    pub(super) fn max_attempts(&self) -> u32 {
        self.options.attempts
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns whether the model has no attempt left.
    pub(crate) fn has_given_up(&self) -> bool {
        self.failures() >= self.options.attempts
    }

    /// Counts the end of an attempt.
    pub(super) fn ended(&self, is_valid: bool) {
        self.failures.store(if is_valid { 0 } else { self.failures() + 1 }, Ordering::Relaxed);
    }

    /// Returns the URI of the catalog of a surface. `argument` is the model's own.
    pub(super) fn catalog_id<'a>(&'a self, argument: Option<&'a str>) -> &'a str {
        let configured = self.options.catalog.as_deref();
        let known = self.options.schema.as_ref().map(|(schema, _)| schema).or(self.page.as_ref());
        configured.or_else(|| known?.id.as_deref()).or(argument).unwrap_or(BASIC_CATALOG)
    }

    /// Returns the faults of a surface. `data` is `None` while it is streaming in.
    pub(super) fn check(&self, components: &[Value], data: Option<&Value>) -> Vec<SurfaceFault> {
        let schema = self.options.schema.as_ref().map(|(schema, _)| schema);
        check(components, data, schema.or(self.page.as_ref()))
    }

    /// Returns the faults of a whole call.
    pub(crate) fn check_call(&self, arguments: &JsonObject) -> Vec<SurfaceFault> {
        let components = arguments.get("components").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.check(components, Some(arguments.get("data").unwrap_or(&Value::Null)))
    }

    /// Adds the tool and its guide to what an agent gets, in place of what the page has under their names.
    pub(super) fn add_to(&self, input: &mut RunAgentInput) {
        input.tools.retain(|tool| tool.name != RENDER);
        input.tools.push(tool());
        input.context.retain(|entry| !self.is_of_server(entry));
        let mut add = |description: &str, value: &str| {
            input.context.push(Context { description: description.to_owned(), value: value.to_owned() });
        };
        if let Some((_, json)) = &self.options.schema {
            add(SCHEMA_ENTRY, json);
        }
        add(GUIDE_ENTRY, GUIDE);
    }

    /// Returns whether an entry of the context is this server's.
    pub(crate) fn is_of_server(&self, entry: &Context) -> bool {
        entry.description == GUIDE_ENTRY || self.options.schema.is_some() && entry.description == SCHEMA_ENTRY
    }
}

/// Returns whether an entry of the context is about A2UI: text for the model, which stays the same in a conversation.
pub(crate) fn is_about_surfaces(entry: &Context) -> bool {
    entry.description.starts_with(ENTRY_PREFIX)
}

/// Returns the tool by which a model renders a surface.
pub(crate) fn tool() -> ToolDefinition {
    let parameters = json!({
        "type": "object",
        "properties": {
            "surfaceId": { "type": "string", "description": "A new name for the surface." },
            "components": {
                "type": "array",
                "items": { "type": "object" },
                "description": "The components as a flat list. One has the id \"root\"."
            },
            "data": { "type": "object", "description": "The values that the components read by their paths." }
        },
        "required": ["surfaceId", "components"]
    });
    ToolDefinition {
        name: RENDER.to_owned(),
        description:
            "Shows an interface to the user: texts, lists, forms, buttons. The A2UI entries of the instructions \
                      have its components and rules."
                .to_owned(),
        parameters: Some(parameters),
        metadata: None,
    }
}

/// The mark that a run has its click, so that it does not get it again when another server goes on with it.
pub(super) fn click_mark() -> Value {
    json!("a2ui_click")
}

/// Adds the click that a run begins with to its conversation: a call and its result, made by the run and not by the client.
/// Returns their events.
pub(super) fn add_click(input: &mut RunAgentInput) -> Option<[Event; 4]> {
    let action = input.forwarded_prop("a2uiAction")?.get("userAction").filter(|action| action.is_object())?;
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    let component = text("sourceComponentId").map(|id| format!(" (component: {id})")).unwrap_or_default();
    let context = action.get("context").cloned().unwrap_or_else(|| json!({}));
    let name = text("name").unwrap_or("unknown_action");
    let surface = text("surfaceId").unwrap_or("unknown_surface");
    let text = format!("User performed action \"{name}\" on surface \"{surface}\"{component}. Context: {context}");

    let call = ToolCall::new(ToolCallId::random(), CLICK, action.to_string());
    let (message, result) = (MessageId::random(), MessageId::random());
    let mut start = ToolCallStart::new(call.id.clone(), CLICK);
    start.parent_message_id = Some(message.clone());
    let events = [
        start.into(),
        ToolCallArgs::new(call.id.clone(), &call.function.arguments).into(),
        ToolCallEnd::new(call.id.clone()).into(),
        ToolCallResult::new(result.clone(), call.id.clone(), &*text).into(),
    ];
    let answer = Message::Tool(ToolMessage::new(result, text, call.id.clone()));
    let call = AssistantMessage { tool_calls: Some(vec![call]), ..AssistantMessage::new(message) };
    input.messages.push(Message::Assistant(call));
    input.messages.push(answer);
    Some(events)
}
