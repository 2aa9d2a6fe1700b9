//! The state that all routes share.

use std::sync::Arc;

use super::{options::HttpOptions, route_list::RouteList};
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
}

impl App {
    pub(super) fn new(runs: Arc<Runs>, auth: Authenticator, options: HttpOptions, routes: RouteList) -> Self {
        Self(Arc::new(AppInner { runs, auth, options, routes }))
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

    pub(super) fn routes(&self) -> &RouteList {
        &self.0.routes
    }
}
