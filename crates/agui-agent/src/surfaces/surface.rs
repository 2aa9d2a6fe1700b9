//! The surface of one call of `render_a2ui`, painted while the arguments stream in, and the surfaces of tools' results.
//!
//! Each snapshot has the whole list of operations so far: creating a surface without its components fails in front ends.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::arguments::{ArgumentPart, ArgumentsReader};
use crate::{RunSurfaces, SurfaceFault};
use agui_protocol::{Event, JsonObject, MessageId, ToolCallId, event::ActivitySnapshot};

const ACTIVITY: &str = "a2ui-surface";
const OPERATIONS: &str = "a2ui_operations";
const VERSION: &str = "v0.9";
/// The bytes of arguments after which the page gets the progress: about 20 tokens.
const PROGRESS_BYTES: usize = 80;
const BYTES_PER_TOKEN: usize = 4;
/// The number of items that are shown one by one. After them, a snapshot is sent when it has grown
/// by a sixteenth, so that the bytes of all snapshots stay proportional to the bytes of the call.
const ITEMS_SHOWN_AT_ONCE: usize = 32;

/// The surface of one call.
pub(super) struct Surface {
    pub(super) call: ToolCallId,
    /// Shared by the attempts to render one surface.
    pub(super) activity: MessageId,
    run: Arc<RunSurfaces>,
    reader: ArgumentsReader,
    parts: SurfaceParts,
    is_first_attempt: bool,
    pub(super) is_painted: bool,
    has_failed: bool,
    bytes: usize,
    told_bytes: usize,
}

/// The arguments so far.
#[derive(Default)]
struct SurfaceParts {
    id: Option<String>,
    catalog_id: Option<String>,
    components: Option<Vec<Value>>,
    data: Option<Value>,
    data_reader: ArgumentsReader,
    /// The member of the data that a component repeats, and its items.
    list: String,
    items: Vec<Value>,
    /// The bytes of the components and items in each snapshot, and of the items that the page has
    /// not got yet.
    item_bytes: (usize, usize),
    has_changed: bool,
}

impl Surface {
    /// Begins a surface. `earlier` is the activity of an attempt that failed.
    pub(super) fn new(
        call: ToolCallId,
        outer: Option<&ToolCallId>,
        earlier: Option<MessageId>,
        run: Arc<RunSurfaces>,
    ) -> Self {
        let is_first_attempt = earlier.is_none();
        let activity = earlier.unwrap_or_else(|| activity_of(outer.unwrap_or(&call)));
        Self {
            call,
            activity,
            run,
            reader: ArgumentsReader::default(),
            parts: SurfaceParts::default(),
            is_first_attempt,
            is_painted: false,
            has_failed: false,
            bytes: 0,
            told_bytes: 0,
        }
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.parts.id.as_deref()
    }

    /// A retry leaves the earlier attempt's state on the page until it is painted.
    pub(super) fn start(&self) -> Option<Event> {
        self.is_first_attempt.then(|| snapshot(&self.activity, json!({ "status": "building" })))
    }

    /// Returns the changes by the next piece of the arguments.
    pub(super) fn push(&mut self, delta: &str) -> Option<Event> {
        self.bytes += delta.len();
        let had_components = self.parts.components.is_some();
        self.reader.push(delta, &mut |name, part| self.parts.take(name, part));
        if self.has_failed {
            return None;
        }
        if !had_components && let Some(components) = &self.parts.components {
            let faults = self.run.check(components, None);
            if !faults.is_empty() {
                return Some(self.fail(&faults));
            }
        }
        if self.parts.is_worth_showing(self.is_painted) {
            return self.paint();
        }
        if self.is_painted
            || !self.is_first_attempt
            || self.bytes - self.told_bytes < PROGRESS_BYTES
        {
            return None;
        }
        self.told_bytes = self.bytes;
        let building =
            json!({ "status": "building", "progressTokens": self.bytes / BYTES_PER_TOKEN });
        Some(snapshot(&self.activity, building))
    }

    /// Ends the call. A painted surface stays, even if components read paths that its data does not
    /// have.
    pub(super) fn end(&mut self) -> Option<Event> {
        if self.has_failed {
            return None;
        }
        if self.parts.id.is_none() {
            self.parts.id = Some(self.call.to_string());
        }
        let components = self.parts.components.as_deref().unwrap_or_default();
        let faults =
            self.run.check(components, Some(self.parts.data.as_ref().unwrap_or(&Value::Null)));
        if !faults.is_empty() && !self.is_painted {
            return Some(self.fail(&faults));
        }
        self.has_failed = !faults.is_empty();
        self.run.ended(faults.is_empty());
        if self.is_painted { None } else { self.paint() }
    }

    /// Returns whether the next attempt replaces this one.
    pub(super) fn is_retried(&self) -> bool {
        self.has_failed && !self.run.has_given_up()
    }

    fn fail(&mut self, faults: &[SurfaceFault]) -> Event {
        self.has_failed = true;
        self.run.ended(false);
        let max = self.run.max_attempts();
        let content = if self.run.has_given_up() {
            failed(max, faults)
        } else {
            let attempt = self.run.failures() + 1;
            json!({ "status": "retrying", "attempt": attempt, "maxAttempts": max, "errors": faults })
        };
        snapshot(&self.activity, content)
    }

    /// Returns the event that ends the attempts on the page.
    pub(super) fn give_up(activity: &MessageId, run: &RunSurfaces) -> Event {
        snapshot(activity, failed(run.max_attempts(), &[]))
    }

    fn paint(&mut self) -> Option<Event> {
        let parts = &mut self.parts;
        let (id, components) = (parts.id.as_ref()?, parts.components.as_ref()?);
        let catalog = self.run.catalog_id(parts.catalog_id.as_deref());
        let items =
            || Some(json!({ &parts.list: parts.items })).filter(|_| !parts.items.is_empty());
        let shown = operations(id, catalog, components, parts.data.clone().or_else(items));
        (parts.has_changed, parts.item_bytes.1) = (false, 0);
        self.is_painted = true;
        Some(snapshot(&self.activity, shown))
    }
}

impl SurfaceParts {
    fn take(&mut self, name: &str, part: ArgumentPart<'_>) {
        match (name, part) {
            ("data", ArgumentPart::Json(json)) if self.data.is_none() => {
                let Self { data_reader, list, items, item_bytes, .. } = self;
                data_reader.push(json, &mut |name, part| {
                    if let ArgumentPart::Item(item) = part
                        && *list == name
                        && let Ok(value) = serde_json::from_str(item)
                    {
                        items.push(value);
                        *item_bytes = (item_bytes.0 + item.len(), item_bytes.1 + item.len());
                    }
                });
            }
            ("data", ArgumentPart::Closed(json)) if self.data.is_none() => {
                self.data = serde_json::from_str(json).ok().filter(Value::is_object);
                self.has_changed = true;
            }
            ("components", ArgumentPart::Closed(json)) if self.components.is_none() => {
                let components: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
                self.list = repeated_member(&components).unwrap_or("items").to_owned();
                self.item_bytes.0 += json.len();
                (self.components, self.has_changed) = (Some(components), true);
            }
            ("surfaceId", ArgumentPart::Closed(json)) if self.id.is_none() => {
                (self.id, self.has_changed) = (nonempty(json), true);
            }
            ("catalogId", ArgumentPart::Closed(json)) => self.catalog_id = nonempty(json),
            _ => {}
        }
    }

    fn is_worth_showing(&self, is_painted: bool) -> bool {
        let (bytes, new) = self.item_bytes;
        let has_items = new > 0 && (self.items.len() <= ITEMS_SHOWN_AT_ONCE || new >= bytes / 16);
        let is_ready = self.id.is_some() && self.components.is_some();
        is_ready && (self.has_changed || is_painted && self.data.is_none() && has_items)
    }
}

fn nonempty(json: &str) -> Option<String> {
    serde_json::from_str::<String>(json).ok().filter(|text| !text.is_empty())
}

/// Returns the member of the data that the first repeating component repeats.
fn repeated_member(components: &[Value]) -> Option<&str> {
    let path =
        components.iter().find_map(|component| component.get("children")?.get("path")?.as_str());
    path.map(|path| path.trim_start_matches('/'))
}

fn failed(max_attempts: u32, faults: &[SurfaceFault]) -> Value {
    let error = "The interface could not be generated.";
    json!({ "status": "failed", "error": error, "maxAttempts": max_attempts, "errors": faults })
}

/// Returns the content of the activity of a surface.
pub(super) fn operations(
    id: &str,
    catalog: &str,
    components: &[Value],
    data: Option<Value>,
) -> Value {
    let mut operations = vec![
        json!({ "version": VERSION, "createSurface": { "surfaceId": id, "catalogId": catalog } }),
        json!({ "version": VERSION, "updateComponents": { "surfaceId": id, "components": components } }),
    ];
    if let Some(data) = data {
        let update = json!({ "surfaceId": id, "path": "/", "value": data });
        operations.push(json!({ "version": VERSION, "updateDataModel": update }));
    }
    json!({ OPERATIONS: operations })
}

/// `of`: the call that describes the surface, or another text that only this surface of the thread has.
pub(super) fn activity_of(of: &str) -> MessageId {
    MessageId::from(format!("{ACTIVITY}-{of}"))
}

pub(super) fn snapshot(activity: &MessageId, content: Value) -> Event {
    let content = match content {
        Value::Object(content) => content,
        _ => JsonObject::new(),
    };
    let mut snapshot = ActivitySnapshot::new(activity.clone(), ACTIVITY, content);
    snapshot.replace = Some(true);
    snapshot.into()
}

/// Returns the surfaces that a tool's result paints: `{"a2ui_operations": […]}`, also as JSON
/// within a JSON string. `is_painted` names surfaces that the run has already painted: agents often
/// return surfaces that their own call has rendered.
pub(super) fn result_events(
    call: &ToolCallId,
    content: &str,
    is_painted: impl Fn(&str) -> bool,
) -> Vec<Event> {
    if !content.contains(OPERATIONS) {
        return Vec::new();
    }
    let mut json = serde_json::from_str(content).unwrap_or(Value::Null);
    if let Value::String(inner) = &json {
        json = serde_json::from_str(inner).unwrap_or(Value::Null);
    }
    let mut surfaces: IndexMap<String, Vec<Value>> = IndexMap::new();
    if let Some(Value::Array(operations)) = json.get_mut(OPERATIONS).map(Value::take) {
        for operation in operations {
            let id = surface_of(&operation).unwrap_or("default").to_owned();
            surfaces.entry(id).or_default().push(operation);
        }
    }
    surfaces.retain(|id, _| !is_painted(id));
    let (count, first) = (surfaces.len(), activity_of(call));
    let events = surfaces.into_values().enumerate().map(|(at, operations)| {
        let activity =
            if count == 1 { first.clone() } else { MessageId::from(format!("{first}-{at}")) };
        snapshot(&activity, json!({ OPERATIONS: operations }))
    });
    events.collect()
}

fn surface_of(operation: &Value) -> Option<&str> {
    let kinds = ["createSurface", "updateComponents", "updateDataModel", "deleteSurface"];
    kinds.iter().find_map(|kind| operation.get(kind)?.get("surfaceId")?.as_str())
}
