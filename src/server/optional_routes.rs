//! The routes that options or Cargo features add: those of single clients, of agents' own paths and of the playground.

use std::net::SocketAddr;

use super::Server;
#[cfg(feature = "upstream")]
use crate::http::playground;
use crate::{clients, http::RouteSet};

impl Server {
    /// Returns the routes. `address` is the listener's; `None` if the server is mounted.
    pub(super) fn optional_routes(&self, address: Option<SocketAddr>) -> Vec<RouteSet> {
        let (keys, transcription) = (self.auth.api_keys(), self.transcription.clone());
        let mut sets = clients::route_sets(&self.http, &self.paths, keys, transcription);
        sets.extend(self.playground_routes(address));
        sets
    }

    #[cfg(feature = "upstream")]
    fn playground_routes(&self, address: Option<SocketAddr>) -> Option<RouteSet> {
        let is_loopback = address.is_some_and(|address| address.ip().to_canonical().is_loopback());
        if !self.playground.is_served(is_loopback && self.auth.is_disabled()) {
            if address.is_some() && self.playground.enabled.is_none() {
                let how = "[playground] enabled = true, AGUI_PLAYGROUND__ENABLED=true or Server::playground";
                tracing::info!(
                    how,
                    "the playground is off, because the server has authentication or other machines reach it"
                );
            }
            return None;
        }
        if let Some(address) = address {
            tracing::info!("the playground is on http://{address}{}", playground::PATH);
        }
        Some(playground::route_set())
    }

    #[cfg(not(feature = "upstream"))]
    #[expect(clippy::unused_self, reason = "with the feature `upstream`, it reads the options")]
    fn playground_routes(&self, _address: Option<SocketAddr>) -> Option<RouteSet> {
        None
    }
}
