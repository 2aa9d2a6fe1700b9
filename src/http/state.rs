//! The state that all routes share.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ApiError, ApiResult, allow::is_allowed, client::Clients, openapi::served::LazyDocument,
    options::HttpOptions, response_budget::ResponsePermit, route_list::RouteList,
    store_probe::StoreProbe,
};
use crate::auth::Authenticator;
use agui_agent::{
    Principal,
    host::{AgentEntry, owner_of},
};
use agui_base::{
    memory_budget::MemoryBudget,
    permits::{Permit, Permits},
};
use agui_run::{
    host::Runs,
    threads::{ThreadError, Threads},
};
use agui_store::ThreadKey;

/// The credential that a server expects of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Credential {
    None,
    /// Callers send `Authorization: Bearer …`.
    Bearer,
    /// The application authenticates in a way that the server does not know.
    Application,
}

impl Credential {
    pub(crate) fn for_authenticator(auth: &Authenticator) -> Self {
        match (auth.is_disabled(), auth.expects_bearer()) {
            (true, _) => Self::None,
            (false, true) => Self::Bearer,
            (false, false) => Self::Application,
        }
    }
}

/// The state, which all requests share.
pub(crate) type App = Arc<AppState>;

pub(crate) struct AppState {
    pub(crate) runs: Arc<Runs>,
    pub(crate) threads: Threads,
    pub(crate) auth: Authenticator,
    pub(crate) options: HttpOptions,
    pub(crate) clients: Clients,
    pub(crate) routes: RouteList,
    pub(crate) dependencies: Dependencies,
    pub(crate) body_budget: MemoryBudget,
    /// The bytes of exports that clients are sending. Two of the largest fit, and one principal sends one at a time.
    pub(crate) import_budget: MemoryBudget,
    response_budget: MemoryBudget,
    streams: Arc<Permits>,
    pub(crate) store_probe: StoreProbe,
    pub(crate) document: LazyDocument,
}

impl AppState {
    pub(crate) fn new(
        runs: Arc<Runs>,
        auth: Authenticator,
        options: HttpOptions,
        clients: Clients,
        routes: RouteList,
        document: LazyDocument,
        dependencies: Dependencies,
    ) -> Self {
        let sharing = auth.sharing();
        let threads = &runs.threads.options;
        let max_thread_bytes = usize::try_from(threads.max_bytes).unwrap_or(usize::MAX);
        let max_file_bytes = usize::try_from(threads.files.max_file_bytes).unwrap_or(usize::MAX);
        let max_body_bytes = options.max_body_bytes.max(max_file_bytes);
        Self {
            threads: Threads::of(&runs),
            body_budget: MemoryBudget::new(
                options.max_body_bytes_in_flight,
                max_body_bytes,
                sharing,
            ),
            import_budget: MemoryBudget::new(0, threads.max_export_bytes(), sharing),
            // A thread can have a little more than its largest size.
            response_budget: MemoryBudget::new(
                options.max_response_bytes_in_flight,
                max_thread_bytes,
                sharing,
            ),
            streams: runs.shared_permits(options.max_streams),
            store_probe: StoreProbe::default(),
            runs,
            auth,
            options,
            clients,
            routes,
            dependencies,
            document,
        }
    }

    /// Returns the agents that a caller may use.
    pub(crate) fn agents(&self, caller: Option<&Principal>) -> impl Iterator<Item = AgentEntry> {
        self.runs.agents().filter(move |agent| self.allows(agent, caller))
    }

    /// Refuses an agent that a caller may not use.
    pub(crate) fn require_allowed(
        &self,
        agent: &AgentEntry,
        caller: Option<&Principal>,
    ) -> ApiResult<()> {
        let refusal = || ApiError::AgentNotAllowed(agent.name().to_owned());
        self.allows(agent, caller).then_some(()).ok_or_else(refusal)
    }

    pub(crate) fn allows(&self, agent: &AgentEntry, caller: Option<&Principal>) -> bool {
        is_allowed(&self.options.allow, agent.name(), caller)
    }

    pub(crate) fn credential(&self) -> Credential {
        Credential::for_authenticator(&self.auth)
    }

    /// Waits for the permit of a response with messages of a thread. An unknown thread needs none.
    pub(crate) async fn response_permit(&self, key: &ThreadKey) -> ApiResult<ResponsePermit> {
        let thread = match self.threads.thread(key).await {
            Ok(thread) => thread,
            Err(ThreadError::NoThread) => return Ok(ResponsePermit::NONE),
            Err(error) => return Err(error.into()),
        };
        let permit = self.response_budget.whole(&key.owner, thread.bytes).await;
        Ok(ResponsePermit(vec![permit.map_err(|_| ApiError::TooManyResponseBytes)?]))
    }

    /// Takes a permit for a stream without an end: an event stream, or a WebSocket. A new one is
    /// refused, and no idle one is closed: the server cannot know which streams a page still shows.
    pub(crate) fn take_stream(&self, caller: Option<&Principal>) -> ApiResult<Permit> {
        self.streams.try_take(&owner_of(caller), 1).map_err(|_| ApiError::TooManyStreams)
    }
}

/// Another server that agents use.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The kind and the name, such as `mcp:files`.
    pub(crate) name: String,
    pub(crate) is_available: bool,
    /// True if this server is not ready without it.
    pub(crate) is_required: bool,
}

/// Returns the current state of all dependencies.
pub(crate) type Dependencies = Arc<dyn Fn() -> Vec<Dependency> + Send + Sync>;
