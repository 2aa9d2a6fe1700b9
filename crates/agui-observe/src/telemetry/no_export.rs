//! The command's logs without an export of traces, in a build without the feature `otel`.

use std::io;

use super::logs::{self, LogOptions};

/// The variables that ask for an export.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

pub struct TraceExport;

/// Starts logging. Warns if the environment asks for an export.
pub fn start(log: &LogOptions) -> io::Result<TraceExport> {
    logs::init(log)?;
    for variable in ENDPOINTS
        .iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    {
        tracing::warn!(
            variable,
            "this program exports no traces: build it with the feature `otel`"
        );
    }
    Ok(TraceExport)
}

impl TraceExport {
    #[allow(clippy::unused_async, reason = "with the feature `otel`, it waits")]
    pub async fn shut_down(self) {}
}
