//! The end of a run: closes open items and subagents, checks the outcome and completes it.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Guard,
    violation::{Owner, Violation},
};
use crate::drive::progress::EventSink;
use agui_base::schema::{SchemaLimits, check_size};
use agui_protocol::{
    Event, EventType,
    event::{
        ReasoningEnd, ReasoningMessageEnd, RunFinished, RunOutcome, StepFinished, SubagentError,
        SubagentFinished, SubagentOutcome, TextMessageEnd, ToolCallEnd,
    },
};

pub(crate) enum RunClosing<'a> {
    Finished(&'a RunOutcome),
    Cancelled,
    Failed,
}

impl Guard {
    pub(crate) fn check_ending(&self, finished: &RunFinished) -> Result<(), Violation> {
        let Some(RunOutcome::Interrupt { interrupts }) = &finished.outcome else { return Ok(()) };
        if interrupts.is_empty() {
            return Err(Violation::new(
                EventType::RunFinished,
                "an interrupt outcome without an interrupt",
            ));
        }
        let refuse = |problem: String| Err(Violation::new(EventType::RunFinished, problem));
        let mut ids = HashSet::new();
        for interrupt in interrupts {
            if !ids.insert(&interrupt.id) {
                return refuse(format!("two interrupts with the id {:?}", interrupt.id));
            }
            // Otherwise the interrupt could only be cancelled: replies are not checked against such a schema.
            if let Some(schema) = &interrupt.response_schema
                && let Err(error) =
                    check_size(&Value::Object(schema.clone()), SchemaLimits::INTERRUPT)
            {
                return refuse(format!(
                    "the interrupt {:?} has an unusable response schema: {error}",
                    interrupt.id
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn finish(
        &mut self,
        finished: &mut RunFinished,
        out: &mut impl EventSink,
    ) -> &'static str {
        let outcome = finished.outcome.get_or_insert_with(RunOutcome::success);
        self.close_all(&RunClosing::Finished(outcome), out);
        match outcome {
            RunOutcome::Success { pending_tool_call_ids } => {
                *pending_tool_call_ids = self.pending_calls();
                "success"
            }
            RunOutcome::Interrupt { .. } => "interrupt",
            RunOutcome::Cancelled => "cancelled",
        }
    }

    /// Closes all open items, then all active subagents, the newest first.
    pub(crate) fn close_all(&mut self, how: &RunClosing<'_>, out: &mut impl EventSink) {
        self.close_items(None, out);
        let active = self.subagents.iter_mut().rev().filter(|(_, subagent)| subagent.is_active);
        for (id, subagent) in active {
            subagent.is_active = false;
            let event: Event = match how {
                RunClosing::Finished(RunOutcome::Success { .. }) => {
                    SubagentFinished::new(id.clone()).into()
                }
                RunClosing::Finished(RunOutcome::Interrupt { interrupts }) => {
                    let own = interrupts
                        .iter()
                        .filter(|interrupt| interrupt.subagent_run_id.as_ref() == Some(id));
                    let interrupt_ids = own.map(|interrupt| interrupt.id.clone()).collect();
                    let mut suspended = SubagentFinished::new(id.clone());
                    suspended.outcome = Some(SubagentOutcome::Suspended { interrupt_ids });
                    suspended.into()
                }
                // The protocol has no cancelled outcome for subagents.
                RunClosing::Finished(RunOutcome::Cancelled) | RunClosing::Cancelled => {
                    let mut stopped = SubagentError::new(id.clone(), "the run was stopped");
                    stopped.code = Some("cancelled".to_owned());
                    stopped.into()
                }
                RunClosing::Failed => {
                    let mut failed = SubagentError::new(id.clone(), "the run failed");
                    failed.code = Some("run_failed".to_owned());
                    failed.into()
                }
            };
            out.emit(&event);
        }
    }

    pub(crate) fn close_items(&mut self, of: Option<&Owner>, out: &mut impl EventSink) {
        self.open_chunks.retain(|chunk| of.is_some_and(|owner| *owner != chunk.owner));
        let mut emit = |event: Event, owner: Owner| out.emit(&event.attributed_to(owner));
        for (id, owner) in self.reasoning_messages.close_open(of) {
            emit(ReasoningMessageEnd::new(id).into(), owner);
        }
        for (id, owner) in self.reasoning_spans.close_open(of) {
            emit(ReasoningEnd::new(id).into(), owner);
        }
        for (id, owner) in self.texts.close_open(of) {
            emit(TextMessageEnd::new(id).into(), owner);
        }
        for (id, owner) in self.calls.close_open(of) {
            emit(ToolCallEnd::new(id).into(), owner);
        }
        self.steps.retain(|(owner, name)| {
            let close = of.is_none_or(|of| of == owner);
            if close {
                emit(StepFinished::new(name.clone()).into(), owner.clone());
            }
            !close
        });
    }
}
