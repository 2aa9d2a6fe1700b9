//! Log lines on standard error, as text or as JSON objects.

use std::{io::IsTerminal as _, panic};

use serde::Deserialize;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::LevelFilter,
    fmt::{self, format::JsonFields},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{
    json_lines::{JsonLines, TraceIds},
    spans::TRACE_TARGET,
};

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Log lines on standard error: the section `[log]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogOptions {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter in the form of `RUST_LOG`. That variable, if set, is used
    /// instead.
    pub level: String,
    /// The form of log lines.
    pub format: LogFormat,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

/// A level or filter that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("{filter:?} is not a log level or filter: {cause}")]
pub struct InvalidFilter {
    filter: String,
    cause: tracing_subscriber::filter::ParseError,
}

/// Checks a level or filter in the form of `RUST_LOG`.
///
/// # Errors
/// [`InvalidFilter`] if the text cannot be parsed.
pub fn check(filter: &str) -> Result<(), InvalidFilter> {
    parse(filter).map(drop)
}

/// Starts logging for the whole process, panics included. A second call keeps the first one's subscriber.
///
/// # Errors
/// [`InvalidFilter`] if the level, or `RUST_LOG`, cannot be parsed.
pub fn init(options: &LogOptions) -> Result<(), InvalidFilter> {
    init_with(options, None)
}

/// Starts logging, and another layer whose filter is its own.
pub(super) fn init_with(options: &LogOptions, traces: Option<BoxedLayer>) -> Result<(), InvalidFilter> {
    let overriding = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = parse(overriding.as_deref().unwrap_or(&options.level))?;
    let lines = match options.format {
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(is_terminal).boxed()
        }
        LogFormat::Json => {
            let json = fmt::layer().fmt_fields(JsonFields::new()).event_format(JsonLines::new());
            TraceIds.and_then(json.with_writer(std::io::stderr)).boxed()
        }
    };
    let _ = match traces {
        // A filter of the whole subscriber is cheaper than one of a layer.
        None => tracing_subscriber::registry().with(lines).with(filter).try_init(),
        Some(traces) => tracing_subscriber::registry().with(vec![traces, lines.with_filter(filter).boxed()]).try_init(),
    };
    panic::set_hook(Box::new(|info| {
        let panic = info.payload_as_str().unwrap_or("not a text");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic, place, "a thread panicked");
    }));
    Ok(())
}

fn parse(filter: &str) -> Result<EnvFilter, InvalidFilter> {
    let invalid = |cause| InvalidFilter { filter: filter.to_owned(), cause };
    let parsed = EnvFilter::try_new(filter).map_err(invalid)?;
    // The spans of traces would repeat what lines say, and may have content.
    let parsed = match filter.contains(TRACE_TARGET) {
        true => parsed,
        false => parsed.add_directive(format!("{TRACE_TARGET}=off").parse().map_err(invalid)?),
    };
    let warns = parsed.max_level_hint().is_none_or(|most| most >= LevelFilter::WARN);
    // rmcp logs arguments and results of tools at INFO, so it is limited to WARN unless the filter names it.
    if warns && !filter.contains("rmcp") {
        return Ok(parsed.add_directive("rmcp=warn".parse().map_err(invalid)?));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mcp_library_is_limited_to_warnings_unless_the_filter_names_it() {
        for (filter, is_limited) in
            [("info", true), ("debug", true), ("off", false), ("error", false), ("info,rmcp=debug", false)]
        {
            assert_eq!(parse(filter).unwrap().to_string().contains("rmcp=warn"), is_limited, "{filter}");
        }
        assert!(parse("a=b=c").is_err());
    }
}
