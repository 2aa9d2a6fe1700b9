//! `GET /info`: the agents, and the runtime features that this server has. A CopilotKit client uses only the features
//! named here; those of CopilotKit's platform, such as WebSockets and names of threads, are reported as missing.

use axum::{Json, extract::State};
use indexmap::IndexMap;
use serde::Serialize;

use super::agents::DEFAULT_AGENT;
use crate::{
    http::{App, agents::declared},
    protocol::AgentCapabilities,
    run::AgentEntry,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuntimeInfo {
    version: &'static str,
    agents: IndexMap<String, AgentInfo>,
    /// `sse`: events come in the HTTP response, not through a WebSocket of the platform.
    mode: &'static str,
    thread_endpoints: ThreadEndpoints,
    single_route: SingleRoute,
    suggestions: bool,
    audio_file_transcription_enabled: bool,
    #[serde(rename = "a2uiEnabled")]
    a2ui_enabled: bool,
    #[serde(rename = "openGenerativeUIEnabled")]
    open_generative_ui_enabled: bool,
    telemetry_disabled: bool,
}

#[derive(Serialize)]
struct AgentInfo {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    capabilities: AgentCapabilities,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadEndpoints {
    list: bool,
    /// Messages, state and events of a thread.
    inspect: bool,
    /// Deleting, renaming and archiving together. `false`, because this server can only delete.
    mutations: bool,
    realtime_metadata: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SingleRoute {
    resource_operations: bool,
    thread_endpoints: ThreadEndpoints,
}

pub(super) async fn info(State(app): State<App>) -> Json<RuntimeInfo> {
    let is_stored = app.threads().is_some();
    let thread_endpoints =
        ThreadEndpoints { list: is_stored, inspect: is_stored, mutations: false, realtime_metadata: false };
    let mut agents: IndexMap<_, _> =
        app.runs().agents().map(|entry| (entry.name().to_owned(), AgentInfo::of(&app, &entry))).collect();
    if let Some(entry) = app.runs().agent(None)
        && !agents.contains_key(DEFAULT_AGENT)
    {
        agents.insert(DEFAULT_AGENT.to_owned(), AgentInfo::of(&app, &entry));
    }
    Json(RuntimeInfo {
        version: env!("CARGO_PKG_VERSION"),
        agents,
        mode: "sse",
        thread_endpoints,
        single_route: SingleRoute { resource_operations: true, thread_endpoints },
        suggestions: false,
        audio_file_transcription_enabled: false,
        a2ui_enabled: false,
        open_generative_ui_enabled: false,
        telemetry_disabled: true,
    })
}

impl AgentInfo {
    fn of(app: &App, entry: &AgentEntry) -> Self {
        let capabilities = declared(app, entry);
        let description = capabilities.identity.as_ref().and_then(|identity| identity.description.clone());
        Self { name: entry.name().to_owned(), description, capabilities }
    }
}
