//! The command's logs without traces, in a build without the feature `otel`.

use super::logs::{self, InvalidFilter, LogOptions};

/// The variables that ask for traces.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

pub(crate) struct TraceExport;

/// Starts logging. Warns if the environment asks for traces.
pub(crate) fn start(log: &LogOptions) -> Result<TraceExport, InvalidFilter> {
    logs::init(log)?;
    for variable in ENDPOINTS.iter().filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        tracing::warn!(variable, "this program makes no traces: build it with the feature `otel`");
    }
    Ok(TraceExport)
}

impl TraceExport {
    #[allow(clippy::unused_async, reason = "with the feature `otel`, it waits")]
    pub(crate) async fn shut_down(self) {}
}
