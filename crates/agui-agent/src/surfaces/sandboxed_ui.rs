//! Open generative UI: HTML, CSS and JavaScript that a model writes as the arguments of a tool of the page, and that the page
//! shows in a sandboxed frame.

use serde_json::{Value, json};

use super::arguments::{ArgumentPart, ArgumentsReader};
use agui_protocol::{
    Event, JsonObject, MessageId, PatchOperation, ToolCallId,
    event::{ActivityDelta, ActivitySnapshot},
    host::JsonPatch,
};

/// The tool, which pages offer that can show such a frame.
pub(super) const TOOL: &str = "generateSandboxedUi";
const ACTIVITY: &str = "open-generative-ui";

/// The activity of one call.
pub(super) struct SandboxedUi {
    pub(super) call: ToolCallId,
    activity: MessageId,
    reader: ArgumentsReader,
    changes: Changes,
}

impl SandboxedUi {
    pub(super) fn new(call: ToolCallId) -> Self {
        let activity = MessageId::from(format!("{call}-activity"));
        Self { call, activity, reader: ArgumentsReader::default(), changes: Changes::default() }
    }

    pub(super) fn start(&self) -> Event {
        let content = JsonObject::from_iter([("generating".to_owned(), json!(true))]);
        let mut snapshot = ActivitySnapshot::new(self.activity.clone(), ACTIVITY, content);
        snapshot.replace = Some(true);
        snapshot.into()
    }

    /// Returns the change that the next piece of the arguments makes.
    pub(super) fn push(&mut self, delta: &str) -> Option<Event> {
        self.reader.push(delta, &mut |name, part| self.changes.take(name, part));
        (!self.changes.patch.is_empty()).then(|| self.change())
    }

    pub(super) fn end(mut self) -> Event {
        self.changes.add("generating", false);
        self.change()
    }

    fn change(&mut self) -> Event {
        let patch = std::mem::take(&mut self.changes.patch);
        ActivityDelta::new(self.activity.clone(), ACTIVITY, patch).into()
    }
}

#[derive(Default)]
struct Changes {
    patch: JsonPatch,
    /// The list that was begun last.
    list: Option<String>,
}

impl Changes {
    fn take(&mut self, name: &str, part: ArgumentPart<'_>) {
        let parse = |json: &str| serde_json::from_str::<Value>(json).ok();
        match (name, part) {
            // The page joins the pieces.
            ("html", ArgumentPart::Text(text)) => self.append(name, Some(text.into())),
            ("jsExpressions" | "placeholderMessages", ArgumentPart::Item(item)) => {
                self.append(name, parse(item).filter(Value::is_string));
            }
            ("html", ArgumentPart::Closed(json)) if json.starts_with('"') => {
                self.append(name, None);
                self.add("htmlComplete", true);
            }
            ("jsExpressions", ArgumentPart::Closed(json)) if json.starts_with('[') => {
                self.append(name, None);
                self.add("jsExpressionsComplete", true);
            }
            ("css" | "jsFunctions", ArgumentPart::Closed(json)) => {
                if let Some(text @ Value::String(_)) = parse(json) {
                    self.add(name, text);
                    self.add(&format!("{name}Complete"), true);
                }
            }
            ("initialHeight", ArgumentPart::Closed(json)) => {
                parse(json)
                    .filter(Value::is_number)
                    .into_iter()
                    .for_each(|height| self.add(name, height));
            }
            _ => {}
        }
    }

    /// Appends to a list, which begins empty.
    fn append(&mut self, list: &str, value: Option<Value>) {
        if self.list.as_deref() != Some(list) {
            self.list = Some(list.to_owned());
            self.add(list, json!([]));
        }
        value.into_iter().for_each(|value| self.add(&format!("{list}/-"), value));
    }

    fn add(&mut self, path: &str, value: impl Into<Value>) {
        self.patch.push(PatchOperation::add(format!("/{path}"), value));
    }
}
