//! In place of `configured`, in builds without the feature `config`: agents are those in Rust, and have their own tools.

use std::{net::SocketAddr, sync::Arc};

use indexmap::IndexMap;

use super::ServerError;
use crate::http::{RouteSet, state::Dependencies};
use agui_agent::Agent;
use agui_run::host::ThreadData;
use agui_store::Store;

#[derive(Default)]
pub(super) struct Configured {}

pub(super) struct BuiltAgents {
    pub(super) agents: IndexMap<String, Arc<dyn Agent>>,
    pub(super) tools: ServerTools,
    pub(super) warnings: Vec<String>,
}

#[derive(Clone)]
pub(super) struct ServerTools;

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature `config`")]
impl Configured {
    pub(super) fn remove_demo(&mut self) {}

    pub(super) fn build(
        &self,
        agents: &IndexMap<String, Arc<dyn Agent>>,
    ) -> Result<BuiltAgents, ServerError> {
        Ok(BuiltAgents { agents: agents.clone(), tools: ServerTools, warnings: Vec::new() })
    }

    pub(super) fn default_agent(&self) -> Option<&str> {
        None
    }
}

#[expect(clippy::unused_self, clippy::unused_async, reason = "as with the feature `config`")]
impl ServerTools {
    pub(super) fn start(&self) {}

    pub(super) async fn stop(&self) {}

    pub(super) fn dependencies(&self) -> Dependencies {
        Arc::new(Vec::new)
    }

    pub(super) fn login_routes(&self, _: &Arc<dyn Store>, _: Option<SocketAddr>) -> Vec<RouteSet> {
        Vec::new()
    }

    pub(super) fn thread_data(&self) -> Option<Arc<dyn ThreadData>> {
        None
    }
}
