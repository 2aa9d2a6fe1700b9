//! The options of a [`Server`](crate::Server), for its builder.

#[cfg(feature = "upstream")]
pub use crate::http::playground::PlaygroundOptions;
pub use crate::{
    base::InvalidOption,
    http::{
        AllowRule, Connections, Cors, HttpOptions,
        dialects::{copilotkit::CopilotKitOptions, named_events::NamedEventOptions},
    },
    observe::{
        metrics::{MetricsOptions, ModelPrice, Prices},
        recordings::RecordOptions,
        telemetry::{TRACE_TARGET, TelemetryOptions},
    },
    run::{ConcurrentRuns, OnDisconnect, PrincipalLimits, RunOptions, ThreadOptions},
};
