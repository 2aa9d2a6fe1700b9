//! Options for single clients: the sections `[clients]`, `[copilotkit]`, `[ai_sdk]`,
//! `[named_events]` and `[openai]` of a configuration.

use std::{num::NonZeroUsize, str::FromStr};

use serde::{Deserialize, Deserializer, de::Error as _};
use smart_default::SmartDefault;

use super::check_own_path;
use agui_run::OnDisconnect;

/// As many as CopilotKit's own runtime has.
const DEFAULT_RESTATED_RUNS: NonZeroUsize = NonZeroUsize::new(50).unwrap();

/// The clients that are served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SupportedClients {
    /// The oldest version of `@ag-ui/client` that is served. With one before 0.0.49, all clients from before AG-UI 1.0 get less:
    /// pictures and files in stored messages as text, before 0.0.45 reasoning as
    /// thinking, before 0.0.41 no activities, before 0.0.37 no reasoning. A
    /// request does not tell these versions apart.
    #[cfg_attr(test, schemars(with = "String", regex(pattern = r"^0\.0\.(3[5-9]|[45][0-9])$")))]
    pub oldest: SdkVersion,
}

/// A version of `@ag-ui/client` from before 1.0, such as `0.0.40`. The default is 0.0.49.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SdkVersion(u8);

impl SdkVersion {
    /// Its user messages can have pictures and files.
    pub(crate) const WITH_MEDIA: Self = Self(49);
    /// It knows reasoning.
    pub(crate) const WITH_REASONING: Self = Self(45);
    /// It knows all events of thinking.
    pub(crate) const WITH_THINKING: Self = Self(37);
    /// It knows activities.
    pub(crate) const WITH_ACTIVITIES: Self = Self(41);
}

impl Default for SdkVersion {
    fn default() -> Self {
        Self::WITH_MEDIA
    }
}

impl FromStr for SdkVersion {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let patch = text.strip_prefix("0.0.").and_then(|patch| patch.parse().ok());
        let patch = patch.filter(|patch| (35..=59).contains(patch));
        patch.map(Self).ok_or("expected a version from 0.0.35 to 0.0.59")
    }
}

impl<'de> Deserialize<'de> for SdkVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

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

/// Options of the routes for pages with the AI SDK.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AiSdkOptions {
    /// True serves the routes for pages with the AI SDK (`useChat`). False removes them.
    #[default(true)]
    pub enabled: bool,
    /// The path of the routes. The `api` of the page's transport is then such as `http://localhost:8080/ai-sdk/AGENT`.
    #[default("/ai-sdk".to_owned())]
    pub prefix: String,
    /// The effect of a page that is left or reloaded on its run, unless the agent or the request decides on it. With `"cancel"`,
    /// a page that is reloaded does not get the rest of the answer.
    #[default(OnDisconnect::Continue)]
    pub on_disconnect: OnDisconnect,
}

impl AiSdkOptions {
    /// Checks the prefix. `taken` is the prefix of other routes.
    ///
    /// # Errors
    /// Returns the rule that the prefix breaks.
    pub(crate) fn check_prefix(&self, taken: Option<&str>) -> Result<(), &'static str> {
        check_own_path(&self.prefix)?;
        match taken {
            Some(taken) if is_below(&self.prefix, taken) || is_below(taken, &self.prefix) => {
                Err("the path is taken by [copilotkit] prefix; choose another one")
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a path is that of a prefix, or below it.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Options of the named-event endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NamedEventOptions {
    /// True serves the endpoints. False removes them.
    #[default(true)]
    pub enabled: bool,
    /// The agent of `/agent/chat/stream`. Default: the default agent.
    pub chat: Option<String>,
    /// The agent of `/agent/agent/stream`. Default: the default agent.
    pub agent: Option<String>,
}

/// Options of the routes for clients of OpenAI's API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenAiOptions {
    /// True serves the routes, to the callers that other routes serve. False removes them.
    #[default(true)]
    pub enabled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clients::{named_events, openai, runs},
        http::routes::built_in,
    };

    #[test]
    fn a_prefix_is_never_that_of_a_route_of_the_server() {
        let mut sets = built_in(true);
        sets.push(runs::route_set());
        sets.extend(named_events::route_set(&named_events::NamedEventOptions::default()));
        sets.extend(openai::route_set(&OpenAiOptions::default()));
        for route in sets.iter_mut().flat_map(|set| set.list()) {
            let prefix = route.path.split('/').nth(1).unwrap_or_default();
            let options = CopilotKitOptions { prefix: format!("/{prefix}"), ..Default::default() };
            assert!(options.check_prefix().is_err(), "{}", route.path);
        }
    }

    #[test]
    fn the_prefix_of_chats_is_not_below_another_one() {
        let check = |prefix: &str, taken: Option<&str>| {
            AiSdkOptions { prefix: prefix.to_owned(), ..Default::default() }.check_prefix(taken)
        };
        for (prefix, taken, is_valid) in [
            ("/ai-sdk", Some("/copilotkit"), true),
            ("/copilotkits", Some("/copilotkit"), true),
            ("/copilotkit", None, true),
            ("/copilotkit", Some("/copilotkit"), false),
            ("/api", Some("/api/copilotkit"), false),
            ("/api/chat", Some("/api"), false),
            ("/threads", None, false),
        ] {
            assert_eq!(check(prefix, taken).is_ok(), is_valid, "{prefix} {taken:?}");
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
            "/v1",
            "/a?b",
            "/a#b",
        ] {
            assert!(check(invalid).is_err(), "{invalid}");
        }
    }
}
