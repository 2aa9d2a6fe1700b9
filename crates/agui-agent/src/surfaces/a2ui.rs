//! A2UI (v0.9): the choice of runs that have it, the tool and the guide for the model, and the call
//! that shows a click to the agent.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    A2ui, RunSurfaces,
    emit::{TextMessage, ToolCallEvents},
};
use agui_protocol::{
    AssistantMessage, Context, Event, Message, MessageId, RunAgentInput, ToolCall, ToolDefinition,
    ToolMessage, event::ToolCallResult,
};

/// The tool by which a model renders a surface.
pub const RENDER: &str = "render_a2ui";
/// The call by which an agent sees a click. No agent makes such calls.
pub const CLICK: &str = "log_a2ui_event";
/// The description of the entry of a page's context that has its components.
const SCHEMA_ENTRY: &str = "A2UI Component Schema — available components for generating UI surfaces. Use these component names \
                            and properties when creating A2UI operations.";
const GUIDE_ENTRY: &str =
    "A2UI render tool usage guide — how to call render_a2ui with valid arguments.";
/// The descriptions of all entries for models begin with this.
const ENTRY_PREFIX: &str = "A2UI ";

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

/// Returns the surfaces of a run, or `None` if it renders none.
pub(super) fn surfaces(options: Option<&A2ui>, input: &RunAgentInput) -> Option<Arc<RunSurfaces>> {
    let has_catalog = || input.forwarded_prop("a2uiCatalogAvailable") == Some(&Value::Bool(true));
    if !options.map_or_else(has_catalog, |options| options.is_enabled) {
        return None;
    }
    let page = input.context.iter().find(|entry| entry.description == SCHEMA_ENTRY);
    let options = options.cloned().unwrap_or_else(|| A2ui::enabled(true));
    Some(Arc::new(RunSurfaces::new(options, page.map(|entry| &*entry.value))))
}

/// Adds the tool and its guide to an agent's input, in place of the page's entries of the same
/// names.
pub(super) fn add_guide(run: &RunSurfaces, input: &mut RunAgentInput) {
    input.tools.retain(|tool| tool.name != RENDER);
    input.tools.push(tool());
    input.context.retain(|entry| !is_of_server(run, entry));
    let mut add = |description: &str, value: &str| {
        input
            .context
            .push(Context { description: description.to_owned(), value: value.to_owned() });
    };
    if let Some(json) = run.schema() {
        add(SCHEMA_ENTRY, json);
    }
    add(GUIDE_ENTRY, GUIDE);
}

/// Returns whether an entry of a run's context is this server's.
pub fn is_of_server(run: &RunSurfaces, entry: &Context) -> bool {
    entry.description == GUIDE_ENTRY || run.schema().is_some() && entry.description == SCHEMA_ENTRY
}

/// Returns whether an entry of the context is about A2UI: text for the model, which stays the same in a conversation.
pub fn is_about_surfaces(entry: &Context) -> bool {
    entry.description.starts_with(ENTRY_PREFIX)
}

/// Returns the tool by which a model renders a surface.
pub fn tool() -> ToolDefinition {
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
    let description = "Shows an interface to the user: texts, lists, forms, buttons. The A2UI entries of the instructions have its \
                       components and rules.";
    ToolDefinition { parameters: Some(parameters), ..ToolDefinition::new(RENDER, description) }
}

/// The mark that the run has got its click, so that it does not get the click again when another
/// server continues it.
pub(super) fn click_mark() -> Value {
    json!("a2ui_click")
}

/// Adds the click that a run begins with to its conversation: a call and its result, made by the run and not by the client.
/// Returns their events.
pub(super) fn add_click(input: &mut RunAgentInput) -> Option<[Event; 4]> {
    let action = input
        .forwarded_prop("a2uiAction")?
        .get("userAction")
        .filter(|action| action.is_object())?;
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    let component =
        text("sourceComponentId").map(|id| format!(" (component: {id})")).unwrap_or_default();
    let context = action.get("context").cloned().unwrap_or_else(|| json!({}));
    let name = text("name").unwrap_or("unknown_action");
    let surface = text("surfaceId").unwrap_or("unknown_surface");
    let text = format!(
        "User performed action \"{name}\" on surface \"{surface}\"{component}. Context: {context}"
    );

    let (parent, answer) = (TextMessage::new(), MessageId::random());
    let call = ToolCallEvents::new(CLICK).within(&parent);
    let (id, arguments) = (call.id().clone(), action.to_string());
    let result = ToolCallResult::new(answer.clone(), id.clone(), &*text).into();
    let events = [call.start(), call.delta(&*arguments), call.end(), result];
    let tool_calls = Some(vec![ToolCall::new(id.clone(), CLICK, arguments)]);
    let asking = AssistantMessage { tool_calls, ..AssistantMessage::new(parent.id().clone()) };
    input.messages.push(Message::Assistant(asking));
    input.messages.push(Message::Tool(ToolMessage::new(answer, id, text)));
    Some(events)
}
