//! The options of the agent, some of which a request can replace.

use serde::Deserialize;
use smart_default::SmartDefault;

use agui_agent::AgentError;
use agui_base::RunErrorCode;
use agui_protocol::RunAgentInput;

/// The member of `forwardedProps` with the options of one run.
const REQUEST_OPTIONS: &str = "replay";

/// Options of the agent: the keys of an agent of `kind = "replay"` in the configuration.
#[derive(Debug, Clone, PartialEq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ReplayOptions {
    /// With `kind = "replay"`: the factor of the recorded waiting times, from 0 to 1000. 1 is the recorded pace, 0
    /// plays without waiting.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1000)))]
    #[default(1.0)]
    pub pace: f64,
    /// With `kind = "replay"`: the fault of each run. A request can ask for it, too:
    /// `forwardedProps.replay`.
    pub fault: Option<ReplayFault>,
    /// The number of events before the `fault`. Default: half of the recording's.
    pub fault_after: Option<usize>,
    /// A description for the agent's capabilities.
    pub description: Option<String>,
}

/// A fault that a run plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReplayFault {
    /// The connection is closed in the middle of the response.
    Cut,
    /// No further event comes, and the connection stays open.
    Stall,
    /// The run ends with `RUN_ERROR` and the code `replay_fault`.
    Error,
    /// Each event comes at least half a second after the one before.
    Slow,
}

/// The options of one request, `forwardedProps.replay`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequestOptions {
    pace: Option<f64>,
    fault: Option<ReplayFault>,
    fault_after: Option<usize>,
}

impl ReplayOptions {
    /// Returns whether a pace is valid.
    pub fn is_pace(pace: f64) -> bool {
        (0.0..=1000.0).contains(&pace)
    }

    /// Returns the options for a request: its own ones take precedence.
    pub(super) fn for_request(&self, input: &RunAgentInput) -> Result<Self, AgentError> {
        let Some(options) = input.forwarded_prop(REQUEST_OPTIONS) else { return Ok(self.clone()) };
        let invalid = |problem: String| {
            AgentError::new(
                RunErrorCode::InvalidReplay,
                format!("forwardedProps.replay: {problem}"),
            )
        };
        let options =
            RequestOptions::deserialize(options).map_err(|error| invalid(error.to_string()))?;
        let pace = options.pace.unwrap_or(self.pace);
        if !Self::is_pace(pace) {
            return Err(invalid("pace: a number from 0 to 1000 is needed".to_owned()));
        }
        Ok(Self {
            pace,
            fault: options.fault.or(self.fault),
            fault_after: options.fault_after.or(self.fault_after),
            ..self.clone()
        })
    }
}
