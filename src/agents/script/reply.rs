//! Replies after compilation: the conditions of each, and the operations that play it.

use std::time::Duration;

use regex::Regex;

use super::{
    questions::{AnyCall, Question},
    template::{JsonTemplate, Template},
};
use crate::protocol::JsonPatch;

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) when: When,
    /// True if the next reply whose conditions hold is played after this one.
    pub(super) goes_on: bool,
    pub(super) play: Vec<Op>,
}

#[derive(Debug)]
pub(super) struct When {
    pub(super) user: Option<Regex>,
    pub(super) tool: Option<String>,
    pub(super) result: Option<Regex>,
    pub(super) failed: Option<bool>,
    pub(super) offers: Vec<String>,
    /// The names of the interrupts that the run must answer, and no others. Empty: the run answers no interrupt.
    pub(super) answers: Vec<String>,
    pub(super) approved: Option<bool>,
    pub(super) deep_thinking: Option<bool>,
    pub(super) answer: Vec<(String, Regex)>,
    pub(super) join: String,
}

/// One operation of a reply. A step is flattened into its start, its content and its end.
#[derive(Debug)]
pub(super) enum Op {
    Text { deltas: Vec<Template>, every: Duration },
    Think { deltas: Vec<Template>, every: Duration },
    Calls { calls: Vec<Call>, within: bool },
    StepStarted(String),
    StepFinished(String),
    State(JsonTemplate),
    Patch(JsonPatch),
    Activity { kind: String, content: JsonTemplate },
    ActivityPatch { kind: String, patch: JsonPatch },
    Custom { name: String, value: JsonTemplate },
    Count { to: Template, most: u64, every: Duration },
    Wait(Duration),
    Fail { message: Template, code: Option<String> },
    Results { of: AnyCall, approved: Template, declined: Template },
    Interrupts(Vec<Question>),
}

/// A tool call. Without a result, it is left to the application or to an interrupt.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: JsonTemplate,
    pub(super) result: Option<Template>,
}
