//! Log lines, on standard error: for people, or one JSON object each.

use std::{io::IsTerminal as _, panic};

use tracing_subscriber::{
    EnvFilter, filter::LevelFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{filter:?} is no log level or filter: {cause}")]
pub struct InvalidFilter {
    filter: String,
    cause: tracing_subscriber::filter::ParseError,
}

/// Checks a level or filter, in the form of `RUST_LOG`.
///
/// # Errors
/// [`InvalidFilter`], if it is none.
pub fn check(filter: &str) -> Result<(), InvalidFilter> {
    parse(filter).map(drop)
}

/// Starts logging. `RUST_LOG`, when it is set, takes the place of the filter.
///
/// Panics are logged as well, so that they are not the only lines of another form.
///
/// # Errors
/// [`InvalidFilter`], if either filter is none.
pub fn init(filter: &str, format: Format) -> Result<(), InvalidFilter> {
    let overriding = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let registry = tracing_subscriber::registry().with(parse(overriding.as_deref().unwrap_or(filter))?);
    // A second start, in a test say, leaves the first one's subscriber in place.
    let _ = match format {
        Format::Text => registry
            .with(
                fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(std::io::stderr().is_terminal()),
            )
            .try_init(),
        Format::Json => {
            let json = fmt::layer().json().flatten_event(true).with_current_span(false);
            registry.with(json.with_writer(std::io::stderr)).try_init()
        }
    };
    panic::set_hook(Box::new(|info| {
        let panic = info.payload_as_str().unwrap_or("not a text");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic, place, "something panicked");
    }));
    Ok(())
}

fn parse(filter: &str) -> Result<EnvFilter, InvalidFilter> {
    let invalid = |cause| InvalidFilter { filter: filter.to_owned(), cause };
    let parsed = EnvFilter::try_new(filter).map_err(invalid)?;
    let warns = parsed.max_level_hint().is_none_or(|most| most >= LevelFilter::WARN);
    // The MCP library tells each message that it gets, also what tools were asked and what they have answered. Whoever
    // wants to see that names it.
    if warns && !filter.contains("rmcp") {
        return Ok(parsed.add_directive("rmcp=warn".parse().map_err(invalid)?));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_are_asked_is_logged_only_for_who_names_the_library() {
        for (filter, quiet) in
            [("info", true), ("debug", true), ("off", false), ("error", false), ("info,rmcp=debug", false)]
        {
            assert_eq!(parse(filter).unwrap().to_string().contains("rmcp=warn"), quiet, "{filter}");
        }
        assert!(parse("a=b=c").is_err());
    }
}
