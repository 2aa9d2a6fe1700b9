//! The server itself: its build, and its repairs of invalid data.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::labels::{Counters, Labels};
use agui_base::repairs::repairs;

const DEBUG_ASSERTIONS: bool = cfg!(debug_assertions);

pub struct ServerMetrics {
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
        let repaired: Counters<2> = Family::default();
        for ((partner, repair), count) in repairs() {
            let labels = [("partner", partner.as_str().into()), ("kind", repair.as_str().into())];
            repaired.get_or_create(&labels).inc_by(count);
        }
        let text = "Invalid data of pages, models, remote agents and tool servers that were read all the same";
        registry.register("repairs", text, repaired);
    }
}
