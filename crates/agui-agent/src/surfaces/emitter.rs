//! [`Emitter::surface`]: the surfaces of agents in Rust.

use serde::Serialize;
use serde_json::{Value, json};

use super::surface::{activity_of, operations, snapshot};
use crate::{AgentError, Emitter};

impl Emitter {
    /// Shows an A2UI surface: a flat list of components, of which one has the id `root`, and the
    /// data that they read. Returns `false` if the run renders no surfaces: then answer with text.
    /// A second call with the same id replaces the surface.
    ///
    /// A click on the surface starts a run whose `forwardedProps` have an `a2uiAction`.
    ///
    /// ```
    /// use agui_agent::{A2ui, A2uiAgent, AgentError, Emitter, agent_fn};
    /// use agui_protocol::RunAgentInput;
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
    ///         true => Ok(()),
    ///         false => out.text("Which day?").await,
    ///     }
    /// }
    ///
    /// let agent = A2uiAgent::new(agent_fn(booking), A2ui::enabled(true));
    /// ```
    ///
    /// # Errors
    /// `invalid_surface` if the components have faults, with the faults that a model would get.
    /// Earlier surfaces stay.
    pub async fn surface(
        &self,
        id: &str,
        components: impl Serialize,
        data: impl Serialize,
    ) -> Result<bool, AgentError> {
        let Some(run) = &self.context().surfaces else { return Ok(false) };
        let (components, data) = (serde_json::to_value(components)?, serde_json::to_value(data)?);
        let components = components.as_array().map_or(&[][..], Vec::as_slice);
        let faults = run.check(components, Some(&data));
        if !faults.is_empty() {
            return Err(AgentError::new(
                "invalid_surface",
                format!("the surface {id:?} has faults: {}", json!(faults)),
            ));
        }
        let data = Some(data).filter(Value::is_object);
        let shown = operations(id, run.catalog_id(None), components, data);
        let activity = activity_of(&format!("{}-{id}", self.context().run_id()));
        self.event(snapshot(&activity, shown)).await?;
        Ok(true)
    }
}
