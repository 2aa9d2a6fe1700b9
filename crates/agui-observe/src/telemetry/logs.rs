//! Log lines on standard error, as text or as JSON objects.

use std::{
    io::{self, IsTerminal as _},
    panic,
};

use serde::Deserialize;
use smart_default::SmartDefault;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::LevelFilter,
    fmt::{self, format::JsonFields},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use agui_base::text::nearest;

use super::{json_lines::JsonLines, spans::TRACE_TARGET};

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Log lines on standard error: the section `[log]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogOptions {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter in the form of `RUST_LOG`. That variable, if set, is used
    /// instead.
    #[default("info".to_owned())]
    pub level: String,
    /// The form of log lines.
    pub format: LogFormat,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging for the whole process, panics included. A second call keeps the first one's subscriber.
///
/// # Errors
/// If the level, or `RUST_LOG`, is invalid.
pub fn init(options: &LogOptions) -> io::Result<()> {
    init_with(options, None)
}

/// Starts logging at the level of `RUST_LOG`, by default `info`, unless the program has a
/// subscriber.
#[doc(hidden)]
pub fn init_unless_set() -> io::Result<()> {
    if tracing::dispatcher::has_been_set() {
        Ok(())
    } else {
        subscribe(&LogOptions::default(), None)
    }
}

/// Starts logging, panics included, and another layer whose filter is its own.
pub(super) fn init_with(options: &LogOptions, traces: Option<BoxedLayer>) -> io::Result<()> {
    subscribe(options, traces)?;
    panic::set_hook(Box::new(|info| {
        let panic = info.payload_as_str().unwrap_or("not a text");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic, place, "a thread panicked");
    }));
    Ok(())
}

fn subscribe(options: &LogOptions, traces: Option<BoxedLayer>) -> io::Result<()> {
    let overriding = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = parse(overriding.as_deref().unwrap_or(&options.level))?;
    let lines = match options.format {
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            fmt::layer()
                .with_writer(std::io::stderr)
                .with_target(false)
                .with_ansi(is_terminal)
                .boxed()
        }
        LogFormat::Json => {
            let json = fmt::layer().fmt_fields(JsonFields::new()).event_format(JsonLines::new());
            json.with_writer(std::io::stderr).boxed()
        }
    };
    let _ = match traces {
        // A filter of the whole subscriber is cheaper than one of a layer.
        None => tracing_subscriber::registry().with(lines).with(filter).try_init(),
        Some(traces) => tracing_subscriber::registry()
            .with(vec![traces, lines.with_filter(filter).boxed()])
            .try_init(),
    };
    Ok(())
}

/// Reads a level or a filter in the form of `RUST_LOG`. A single word has to be a level:
/// `EnvFilter` would read it as the name of a target, and switch off the logs of all other targets.
///
/// # Errors
/// If the text is invalid.
#[doc(hidden)]
pub fn parse(filter: &str) -> io::Result<EnvFilter> {
    let invalid = |problem: String| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{filter:?} is not a log level or filter: {problem}"),
        )
    };
    let is_level = |text: &str| text.parse::<LevelFilter>().is_ok();
    let mut words = filter
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty() && !part.contains(['=', '[', ']']));
    if let Some(word) = words.find(|word| !is_level(word)) {
        let near = nearest(word, &LEVELS)
            .map(|near| format!("did you mean {near:?}? otherwise "))
            .unwrap_or_default();
        let problem =
            format!("{near}write one of {}; for one target \"{word}=debug\"", LEVELS.join(", "));
        return Err(invalid(problem));
    }
    let parsed =
        EnvFilter::try_new(with_all_crates(filter)).map_err(|error| invalid(error.to_string()))?;
    let warns = parsed.max_level_hint().is_none_or(|most| most >= LevelFilter::WARN);
    let directives = [
        // The spans of traces would repeat the lines, and may have content.
        (!filter.contains(TRACE_TARGET)).then(|| format!("{TRACE_TARGET}=off")),
        // rmcp logs arguments and results of tools at INFO, so it is limited to WARN unless the filter names it.
        (warns && !filter.contains("rmcp")).then(|| "rmcp=warn".to_owned()),
        // rmcp logs each refused connection as an error, also one that waits for a person's login. This server logs them.
        (!filter.contains("rmcp")).then(|| "rmcp::transport::worker=off".to_owned()),
    ];
    // These directives are valid.
    let directives = directives.iter().flatten().filter_map(|directive| directive.parse().ok());
    Ok(directives.fold(parsed, EnvFilter::add_directive))
}

/// Makes directives for the target `agui_server` apply to all crates of this server. A directive
/// names the beginning of a target.
fn with_all_crates(filter: &str) -> String {
    let widened = filter.split(',').map(|part| match part.trim().strip_prefix("agui_server") {
        Some(rest) if rest.starts_with(['=', '[']) => format!("agui_{rest}"),
        _ => part.to_owned(),
    });
    widened.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_for_agui_server_is_one_for_all_of_its_crates() {
        for (filter, expected) in [
            ("warn,agui_server=debug", "agui_=debug"),
            ("agui_server[run]=trace", "agui_[run]=trace"),
            ("agui_server::http=debug", "agui_server::http=debug"),
            ("agui_run=debug", "agui_run=debug"),
        ] {
            let parsed = parse(filter).unwrap().to_string();
            assert!(parsed.split(',').any(|part| part == expected), "{filter}: {parsed}");
        }
    }

    #[test]
    fn the_mcp_library_is_limited_to_warnings_unless_the_filter_names_it() {
        for (filter, is_limited) in [
            ("info", true),
            ("debug", true),
            ("off", false),
            ("error", false),
            ("info,rmcp=debug", false),
        ] {
            let parsed = parse(filter).unwrap().to_string();
            assert_eq!(parsed.contains("rmcp=warn"), is_limited, "{filter}");
            let hides_refusals = parsed.contains("rmcp::transport::worker=off");
            assert_eq!(hides_refusals, !filter.contains("rmcp"), "{filter}");
        }
        assert!(parse("a=b=c").is_err());
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_with_the_nearest_one() {
        for filter in ["info", "INFO", "2", "", "info,hyper=debug", "[span{id=1}]=debug", "off"] {
            assert!(parse(filter).is_ok(), "{filter}");
        }
        for (filter, near) in
            [("warning", "did you mean \"warn\"?"), ("inf", "did you mean \"info\"?"), ("loud", "")]
        {
            let problem = parse(filter).unwrap_err().to_string();
            let expected = format!("{filter:?} is not a log level or filter: {near}");
            assert!(
                problem.starts_with(&expected) && problem.contains("debug, trace, off"),
                "{problem}"
            );
        }
        assert!(parse("verbose").is_err() && parse("info,verbose").is_err());
    }
}
