//! The server itself: its build.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

const DEBUG_ASSERTIONS: bool = cfg!(debug_assertions);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
    profile: &'static str,
}

pub(crate) struct ServerMetrics {
    build: Family<BuildLabels, Gauge>,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let profile = if DEBUG_ASSERTIONS { "debug" } else { "release" };
        let build: Family<BuildLabels, Gauge> = Family::default();
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION"), profile }).set(1);
        Self { build }
    }
}

impl ServerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("build_info", "The version of this server; always 1", self.build.clone());
    }
}
