//! `GET /info`: the agents, and the runtime features that this server has. A CopilotKit client uses only the features
//! named here; those of CopilotKit's platform are reported as missing. As in CopilotKit's own runtime of the mode `sse`, there
//! is no `licenseStatus`: with `none`, a banner "Get a license" covers each page.

use axum::{Extension, Json, extract::State};
use indexmap::IndexMap;
use serde::Serialize;
use utoipa::ToSchema;

use super::{agents::DEFAULT_AGENT, socket::SOCKET_PATH};
use crate::http::{App, Caller, agents::declared};
use agui_agent::host::AgentEntry;
use agui_protocol::AgentCapabilities;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotInfo {
    version: &'static str,
    /// By name.
    #[schema(value_type = BTreeMap<String, CopilotAgent>)]
    agents: IndexMap<String, CopilotAgent>,
    /// `sse`: events come in the HTTP response, not through a WebSocket of the platform.
    #[schema(pattern = "^sse$")]
    mode: &'static str,
    /// Named after CopilotKit's platform. With the mode `sse`, clients use it for the list of threads only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    intelligence: Option<LiveList>,
    thread_endpoints: CopilotThreadEndpoints,
    #[schema(inline)]
    single_route: SingleRoute,
    suggestions: bool,
    audio_file_transcription_enabled: bool,
    #[serde(rename = "a2uiEnabled")]
    a2ui_enabled: bool,
    /// Absent if no agent renders surfaces in each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    a2ui: Option<A2uiInfo>,
    #[serde(rename = "openGenerativeUIEnabled")]
    open_generative_ui_enabled: bool,
    telemetry_disabled: bool,
}

#[derive(Serialize, ToSchema)]
struct A2uiInfo {
    enabled: bool,
    /// The agents whose runs render surfaces: a page sends its catalog to them alone.
    agents: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LiveList {
    /// The WebSocket of the lists of threads.
    ws_url: String,
}

#[derive(Serialize, ToSchema)]
struct CopilotAgent {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    capabilities: AgentCapabilities,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CopilotThreadEndpoints {
    list: bool,
    /// Messages, state and events of a thread.
    inspect: bool,
    /// Deleting, renaming and archiving together.
    mutations: bool,
    realtime_metadata: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SingleRoute {
    resource_operations: bool,
    thread_endpoints: CopilotThreadEndpoints,
}

/// Lists the agents, and the features that pages may use.
#[utoipa::path(
    get,
    path = "/info",
    responses(
        (status = 200, description = "The agents and features.", body = CopilotInfo),
    ),
)]
pub(super) async fn read_copilot_info(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Json<CopilotInfo> {
    let socket = format!("{}{SOCKET_PATH}", app.options.copilotkit.prefix);
    let intelligence = caller.reached_at.socket_url(&socket).map(|ws_url| LiveList { ws_url });
    let caller = caller.principal.as_ref();
    let thread_endpoints = CopilotThreadEndpoints {
        list: true,
        inspect: true,
        mutations: true,
        realtime_metadata: intelligence.is_some(),
    };
    let mut entries: IndexMap<_, _> =
        app.agents(caller).map(|entry| (entry.name().to_owned(), entry)).collect();
    if let Some(default) = app.runs.agent(None).filter(|entry| app.allows(entry, caller)) {
        entries.entry(DEFAULT_AGENT.to_owned()).or_insert(default);
    }
    let draws = |entry: &AgentEntry| entry.agent.a2ui().is_some_and(|a2ui| a2ui.is_enabled);
    let drawing: Vec<_> =
        entries.iter().filter(|(_, entry)| draws(entry)).map(|(name, _)| name.clone()).collect();
    let agents =
        entries.into_iter().map(|(name, entry)| (name, CopilotAgent::new(&app, &entry))).collect();
    Json(CopilotInfo {
        version: env!("CARGO_PKG_VERSION"),
        agents,
        mode: "sse",
        intelligence,
        thread_endpoints,
        single_route: SingleRoute { resource_operations: true, thread_endpoints },
        suggestions: true,
        audio_file_transcription_enabled: app.options.transcribe_path.is_some(),
        a2ui_enabled: !drawing.is_empty(),
        a2ui: (!drawing.is_empty()).then_some(A2uiInfo { enabled: true, agents: drawing }),
        open_generative_ui_enabled: app.options.copilotkit.open_generative_ui,
        telemetry_disabled: true,
    })
}

impl CopilotAgent {
    fn new(app: &App, entry: &AgentEntry) -> Self {
        let capabilities = declared(app, entry);
        let description =
            capabilities.identity.as_ref().and_then(|identity| identity.description.clone());
        Self { name: entry.name().to_owned(), description, capabilities }
    }
}
