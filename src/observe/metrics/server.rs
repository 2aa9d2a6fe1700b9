//! The server itself: its build.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::labels::Labels;

const DEBUG_ASSERTIONS: bool = cfg!(debug_assertions);

pub(crate) struct ServerMetrics {
    build: Family<Labels<2>, Gauge>,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let profile = if DEBUG_ASSERTIONS { "debug" } else { "release" };
        let build: Family<Labels<2>, Gauge> = Family::default();
        let labels = [("version", env!("CARGO_PKG_VERSION").into()), ("profile", profile.into())];
        build.get_or_create(&labels).set(1);
        Self { build }
    }
}

impl ServerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("build_info", "The version of this server; always 1", self.build.clone());
    }
}
