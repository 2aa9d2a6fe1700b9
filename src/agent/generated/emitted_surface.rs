//! [`Emitter::surface`]: the surfaces of agents in Rust.

use serde::Serialize;
use serde_json::{Value, json};

use super::surface::{activity_of, operations, snapshot};
use crate::{
    agent::{AgentError, Emitter},
    protocol::ToolCallId,
};

impl Emitter {
    /// Shows an A2UI surface: a flat list of components, of which one has the id `root`, and the data that they read. Returns
    /// `None` if the run renders no surfaces: answer with text then.
    ///
    /// A click on the surface starts a run whose `forwardedProps` have an `a2uiAction`.
    ///
    /// ```
    /// use agui_server::{agent::{A2ui, A2uiAgent}, prelude::*};
    /// use serde_json::json;
    ///
    /// async fn booking(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    ///     if let Some(click) = input.forwarded_prop("a2uiAction") {
    ///         return out.text(format!("Booked: {}.", click["userAction"]["context"]["day"])).await;
    ///     }
    ///     let components = json!([
    ///         { "id": "root", "component": "Column", "children": ["day", "book"] },
    ///         { "id": "day", "component": "TextField", "label": "Day", "value": { "path": "/day" } },
    ///         { "id": "book", "component": "Button", "child": "label",
    ///           "action": { "event": { "name": "book", "context": { "day": { "path": "/day" } } } } },
    ///         { "id": "label", "component": "Text", "text": "Book" },
    ///     ]);
    ///     match out.surface("booking", components, json!({ "day": "Monday" })).await? {
    ///         Some(_) => Ok(()),
    ///         None => out.text("Which day?").await,
    ///     }
    /// }
    ///
    /// let server = Server::new().agent("booking", A2uiAgent::new(agent_fn(booking), A2ui::enabled(true)));
    /// ```
    ///
    /// # Errors
    /// `invalid_surface` if the components have faults, with those that a model would be told of. Nothing is shown then.
    pub async fn surface(
        &self,
        id: impl Into<String>,
        components: impl Serialize,
        data: impl Serialize,
    ) -> Result<Option<SurfaceHandle>, AgentError> {
        if self.context().surfaces().is_none() {
            return Ok(None);
        }
        let surface = SurfaceHandle { out: self.clone(), activity: ToolCallId::random(), id: id.into() };
        surface.replace(components, data).await?;
        Ok(Some(surface))
    }
}

/// A surface that is shown.
#[derive(Debug)]
pub struct SurfaceHandle {
    out: Emitter,
    /// The part of the activity's id that the surfaces of models have from their calls.
    activity: ToolCallId,
    id: String,
}

impl SurfaceHandle {
    /// Replaces the components and the data.
    ///
    /// # Errors
    /// Those of [`Emitter::surface`]. The surface stays as it was.
    pub async fn replace(&self, components: impl Serialize, data: impl Serialize) -> Result<(), AgentError> {
        let Some(run) = self.out.context().surfaces() else { return Ok(()) };
        let (components, data) = (serde_json::to_value(components)?, serde_json::to_value(data)?);
        let components = components.as_array().map_or(&[][..], Vec::as_slice);
        let faults = run.check(components, Some(&data));
        if !faults.is_empty() {
            let message = format!("the surface {:?} has faults: {}", self.id, json!(faults));
            return Err(AgentError::new("invalid_surface", message));
        }
        let data = Some(data).filter(Value::is_object);
        let shown = operations(&self.id, run.catalog_id(None), components, data);
        self.out.event(snapshot(&activity_of(&self.activity), shown)).await
    }
}
