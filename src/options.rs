//! The options of a [`Server`](crate::Server), for its builder.

#[cfg(feature = "upstream")]
pub use crate::http::playground::PlaygroundOptions;
pub use crate::http::{
    AllowRule, Connections, Cors, HttpOptions,
    client_options::{
        AiSdkOptions, CopilotKitOptions, NamedEventOptions, OpenAiOptions, SdkVersion,
        SupportedClients,
    },
};
pub use agui_base::InvalidOption;
pub use agui_observe::{
    metrics::{MetricsOptions, ModelPrice, Prices},
    recordings::RecordOptions,
    telemetry::{TRACE_TARGET, TelemetryOptions},
};
pub use agui_run::{ConcurrentRuns, OnDisconnect, PrincipalLimits, RunOptions, ThreadOptions};
