//! `GET /info`: the agents there are, and which of a runtime's abilities this server has.
//!
//! A client asks for nothing that is not offered here, so what is missing is left out or said to be: a platform of
//! CopilotKit's with sockets, names and an archive for threads, transcription, generated interfaces.

use axum::{Json, extract::State};
use indexmap::IndexMap;
use serde::Serialize;

use super::DEFAULT_AGENT;
use crate::{
    http::{App, agents},
    protocol::AgentCapabilities,
    run::AgentEntry,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Info {
    version: &'static str,
    agents: IndexMap<String, Agent>,
    /// Events come in the answers themselves, and not by a socket of the platform's.
    mode: &'static str,
    thread_endpoints: ThreadEndpoints,
    /// What the same is for a client that puts everything into envelopes.
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
struct Agent {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    capabilities: AgentCapabilities,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadEndpoints {
    list: bool,
    /// Messages, state and events of one.
    inspect: bool,
    /// Deleting, but also names and an archive, which are not kept.
    mutations: bool,
    realtime_metadata: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SingleRoute {
    resource_operations: bool,
    thread_endpoints: ThreadEndpoints,
}

pub(super) async fn info(State(app): State<App>) -> Json<Info> {
    let kept = app.threads().is_some();
    let thread_endpoints = ThreadEndpoints { list: kept, inspect: kept, mutations: false, realtime_metadata: false };
    let mut agents: IndexMap<_, _> =
        app.runs().agents().map(|entry| (entry.name().to_owned(), Agent::of(&app, &entry))).collect();
    if let Some(entry) = app.runs().agent(None)
        && !agents.contains_key(DEFAULT_AGENT)
    {
        agents.insert(DEFAULT_AGENT.to_owned(), Agent::of(&app, &entry));
    }
    Json(Info {
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

impl Agent {
    fn of(app: &App, entry: &AgentEntry) -> Self {
        let capabilities = agents::declared(app, entry);
        let description = capabilities.identity.as_ref().and_then(|identity| identity.description.clone());
        Self { name: entry.name().to_owned(), description, capabilities }
    }
}
