//! The options of an agent that it holds as a configuration has them. A new one is a field here, and is read where a run
//! needs it.

use std::{num::NonZero, time::Duration};

use serde::Deserialize;
use smart_default::SmartDefault;

use super::{prediction::StatePrediction, unknown_outcome::UnknownOutcome};
use crate::options::ToolChoice;
use agui_base::units;
use agui_protocol::JsonObject;

const MAX_STEPS: NonZero<u32> = NonZero::new(8).unwrap();
const MAX_CALLS_PER_STEP: NonZero<usize> = NonZero::new(32).unwrap();
const PARALLEL_TOOLS: NonZero<usize> = NonZero::new(8).unwrap();

/// The options of an agent, beside its models, instructions and tools.
#[derive(Debug, Clone, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentOptions {
    /// The names of models that a request may choose with `forwardedProps.model`, beside `model`.
    /// Others are refused (`model_not_allowed`).
    pub models: Vec<String>,
    /// The JSON Schema that the state has to fit after a change of the model (`update_state`). The
    /// model is told what does not fit.
    pub state_schema: Option<JsonObject>,
    /// The members of the state that arguments of calls become while the model writes them, so that
    /// a page shows a text as it grows. They are undone if the call fails.
    pub predict_state: Vec<StatePrediction>,
    /// The calls that the model may or has to make: `auto` (the model decides), `none` (it calls
    /// nothing), `required`, or the name of a tool. A call is forced only in the first answer after
    /// a user's message. Default: `auto`.
    pub tool_choice: ToolChoice,
    /// The JSON Schema of the final answer, an object. The answer is checked, and its value is the
    /// run's result. An answer that does not fit is corrected once; then the run fails
    /// (`response_invalid`).
    pub response_schema: Option<JsonObject>,
    /// The largest number of model calls in a run. A run that needs more fails (`max_steps`).
    #[default(MAX_STEPS)]
    pub max_steps: NonZero<u32>,
    /// The largest number of tool calls of one answer that are run. The model is told that the
    /// others were not run.
    #[default(MAX_CALLS_PER_STEP)]
    pub max_calls_per_step: NonZero<usize>,
    /// The time limit of a tool call.
    #[serde(rename = "tool_timeout_secs", with = "units::SomeSeconds")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(Duration::from_secs(60))]
    pub tool_timeout: Duration,
    /// The number of tool calls of one answer that run at the same time.
    #[default(PARALLEL_TOOLS)]
    pub parallel_tools: NonZero<usize>,
    /// The treatment of a call that may have taken effect before its server was lost, and that must
    /// not run twice, when the run continues. Default: `tell`.
    pub unknown_outcome: UnknownOutcome,
}
