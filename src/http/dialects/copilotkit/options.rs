//! Options of the CopilotKit routes: the section `[copilotkit]` of a configuration.

use std::num::NonZeroUsize;

use serde::Deserialize;
use smart_default::SmartDefault;

use crate::http::check_own_path;
use agui_run::OnDisconnect;

/// As many as CopilotKit's own runtime has.
const DEFAULT_RESTATED_RUNS: NonZeroUsize = NonZeroUsize::new(50).unwrap();

/// Options of the routes for pages with CopilotKit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CopilotKitOptions {
    /// True serves the routes of the runtime for pages with CopilotKit. False removes them.
    #[default(true)]
    pub enabled: bool,
    /// The path of the routes. The page's `runtimeUrl` is then such as `http://localhost:8080/copilotkit`.
    #[default("/copilotkit".to_owned())]
    pub prefix: String,
    /// The effect of a page that is left or reloaded on its run, unless the agent or the request decides on it.
    #[default(OnDisconnect::Continue)]
    pub on_disconnect: OnDisconnect,
    /// The number of newest runs that a page gets with their states when it is loaded: each message is then shown with the state of
    /// its run. Older runs are restated with the oldest of these.
    #[default(DEFAULT_RESTATED_RUNS)]
    pub restated_runs: NonZeroUsize,
    /// True makes pages offer the tool `generateSandboxedUi`, by which a model writes HTML that they show in a sandboxed frame.
    pub open_generative_ui: bool,
}

impl CopilotKitOptions {
    /// Checks the prefix.
    ///
    /// # Errors
    /// Returns the rule that the prefix breaks.
    pub fn check_prefix(&self) -> Result<(), &'static str> {
        check_own_path(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{dialects::named_events, routes::built_in};

    #[test]
    fn a_prefix_is_never_that_of_a_route_of_the_server() {
        let mut sets = built_in(true);
        sets.extend(named_events::route_set(&named_events::NamedEventOptions::default()));
        for route in sets.iter_mut().flat_map(|set| set.list()) {
            let prefix = route.path.split('/').nth(1).unwrap_or_default();
            let options = CopilotKitOptions { prefix: format!("/{prefix}"), ..Default::default() };
            assert!(options.check_prefix().is_err(), "{}", route.path);
        }
    }

    #[test]
    fn a_prefix_is_a_path_that_no_other_route_has() {
        let check = |prefix: &str| {
            CopilotKitOptions { prefix: prefix.to_owned(), ..Default::default() }.check_prefix()
        };
        for valid in [
            "/copilotkit",
            "/api/copilotkit",
            "/v1.0/~me/copilot_kit",
            "/agents-of-mine",
            "/x/agents",
        ] {
            assert!(check(valid).is_ok(), "{valid}");
        }
        for invalid in [
            "",
            "/",
            "copilotkit",
            "/copilotkit/",
            "//copilotkit",
            "/a//b",
            "/{agent}",
            "/a/{*b}",
            "/a b",
            "/ä",
            "/.",
            "/../a",
            "/agents",
            "/agents/copilotkit",
            "/threads/x",
            "/connections",
            "/accounts",
            "/send-message",
            "/healthz",
            "/openapi.json",
            "/playground",
            "/playground/x",
            "/a?b",
            "/a#b",
        ] {
            assert!(check(invalid).is_err(), "{invalid}");
        }
    }
}
