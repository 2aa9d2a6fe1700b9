//! A2UI (v0.9) for agents: the settings of an agent, and the surfaces in the context of a run. The
//! module `surfaces` draws them.

mod agent;
mod components;

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub use self::agent::A2uiAgent;
pub use self::components::SurfaceFault;
use self::components::{ComponentCatalog, check};
use agui_protocol::JsonObject;

const BASIC_CATALOG: &str = "https://a2ui.org/specification/v0_9/basic_catalog.json";
const DEFAULT_ATTEMPTS: u32 = 3;

/// Decides whether an agent renders A2UI surfaces, and with which components. An agent without
/// these settings renders surfaces if the page of a run declares a catalog.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct A2ui {
    #[doc(hidden)]
    pub is_enabled: bool,
    catalog: Option<String>,
    schema: Option<(ComponentCatalog, String)>,
    attempts: u32,
}

impl A2ui {
    /// Enables surfaces in every run, or in none.
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
        let read = ComponentCatalog::read(json)
            .ok_or("expected {\"catalogId\": …, \"components\": {…}}")?;
        Ok(Self { schema: Some((read, json.to_string())), ..self })
    }

    /// Sets the number of attempts to render a surface, including the first one; at least one.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }
}

/// A2UI in one run.
#[derive(Debug)]
pub struct RunSurfaces {
    options: A2ui,
    /// The components that the page has.
    page: Option<ComponentCatalog>,
    /// The attempts that failed since the last surface.
    failures: AtomicU32,
}

impl RunSurfaces {
    /// `page`: the components that the page has, as JSON.
    pub fn new(options: A2ui, page: Option<&str>) -> Self {
        let page = page.and_then(|json| ComponentCatalog::read(&serde_json::from_str(json).ok()?));
        Self { options, page, failures: AtomicU32::new(0) }
    }

    /// Returns the components of the settings as JSON. They take precedence over the page's.
    pub fn schema(&self) -> Option<&str> {
        self.options.schema.as_ref().map(|(_, json)| json.as_str())
    }

    pub(crate) fn max_attempts(&self) -> u32 {
        self.options.attempts
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns whether the model has no attempt left.
    pub fn has_given_up(&self) -> bool {
        self.failures() >= self.options.attempts
    }

    /// Counts the end of an attempt.
    pub fn ended(&self, is_valid: bool) {
        self.failures.store(if is_valid { 0 } else { self.failures() + 1 }, Ordering::Relaxed);
    }

    /// Returns the URI of the catalog of a surface. `argument` is the model's own.
    pub(crate) fn catalog_id<'a>(&'a self, argument: Option<&'a str>) -> &'a str {
        let configured = self.options.catalog.as_deref();
        configured
            .or_else(|| self.components()?.id.as_deref())
            .or(argument)
            .unwrap_or(BASIC_CATALOG)
    }

    /// Returns the faults of a surface. `data` is `None` while it is streaming in.
    pub fn check(&self, components: &[Value], data: Option<&Value>) -> Vec<SurfaceFault> {
        check(components, data, self.components())
    }

    fn components(&self) -> Option<&ComponentCatalog> {
        self.options.schema.as_ref().map(|(schema, _)| schema).or(self.page.as_ref())
    }

    /// Returns the faults of a whole call.
    pub fn check_call(&self, arguments: &JsonObject) -> Vec<SurfaceFault> {
        let components =
            arguments.get("components").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.check(components, Some(arguments.get("data").unwrap_or(&Value::Null)))
    }
}
