//! The state that all routes share.

use std::sync::Arc;

use super::{
    body_budget::BodyBudget,
    dependencies::Dependencies,
    options::HttpOptions,
    route_list::{Route, RouteList},
    store_probe::StoreProbe,
};
use crate::{
    auth::Authenticator,
    run::{Runs, Threads},
};

#[derive(Clone)]
pub(crate) struct App(Arc<AppInner>);

struct AppInner {
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
    routes: RouteList,
    dependencies: Dependencies,
    body_budget: BodyBudget,
    store_probe: StoreProbe,
}

impl App {
    pub(super) fn new(
        runs: Arc<Runs>,
        auth: Authenticator,
        options: HttpOptions,
        routes: RouteList,
        dependencies: Dependencies,
    ) -> Self {
        let has_shares = !auth.has_one_principal();
        let body_budget = BodyBudget::new(options.max_body_bytes_in_flight, options.max_body_bytes, has_shares);
        let store_probe = StoreProbe::default();
        Self(Arc::new(AppInner { runs, auth, options, routes, dependencies, body_budget, store_probe }))
    }

    pub(crate) fn runs(&self) -> &Arc<Runs> {
        &self.0.runs
    }

    /// `None` on a server that stores nothing.
    pub(crate) fn threads(&self) -> Option<&Arc<Threads>> {
        self.0.runs.threads()
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.0.options
    }

    pub(super) fn auth(&self) -> &Authenticator {
        &self.0.auth
    }

    /// True if callers have principals.
    pub(crate) fn is_authenticated(&self) -> bool {
        !self.0.auth.is_disabled()
    }

    /// True if callers send their credential as `Authorization: Bearer …`.
    #[allow(dead_code, reason = "for the feature `openapi`")]
    pub(crate) fn expects_bearer(&self) -> bool {
        self.0.auth.expects_bearer()
    }

    pub(super) fn dependencies(&self) -> &Dependencies {
        &self.0.dependencies
    }

    pub(super) fn body_budget(&self) -> &BodyBudget {
        &self.0.body_budget
    }

    pub(super) fn store_probe(&self) -> &StoreProbe {
        &self.0.store_probe
    }

    pub(super) fn routes(&self) -> &RouteList {
        &self.0.routes
    }

    /// Returns all routes that the server serves on its main listener.
    #[allow(dead_code, reason = "for the feature `openapi`")]
    pub(crate) fn all_routes(&self) -> &[Route] {
        self.0.routes.all()
    }
}
