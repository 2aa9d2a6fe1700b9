//! Checks that a sequence of events is a legal stream of one run.
//!
//! This is a second implementation of AG-UI's rules, written from the specification's prose. It shares no code with the
//! server's guard, so that tests can compare the two. If the prose is stricter for a producer than for a consumer, the
//! producer's rule applies. A stream that breaks no rule of the prose is legal.

mod ledger;
mod shape;

use std::collections::HashSet;

use agui_server::protocol::{
    Event, Interrupt, RunAgentInput, SubagentRunId, TokenUsage,
    event::{RunFinished, RunOutcome, RunStarted},
};
use ledger::Ledger;

/// `Ok`, or a description of the broken rule.
pub type Verdict = Result<(), String>;

/// Checks the complete stream of one run of `input`.
pub fn check(input: &RunAgentInput, events: &[Event]) -> Verdict {
    let [first, middle @ .., last] = events else {
        return Err(format!("{} events cannot be a run", events.len()));
    };
    let mut run = Ledger::new(input);
    let at = |index: usize, verdict: Verdict| {
        verdict.map_err(|fault| {
            format!("event {index} ({}): {fault}", events[index].event_type().as_str())
        })
    };
    for (index, event) in events.iter().enumerate() {
        at(index, shape::check(event))?;
    }
    at(0, opening(input, first))?;
    for (index, event) in (1..).zip(middle) {
        at(index, run.admit(event))?;
    }
    at(events.len() - 1, ending(input, &run, last))
}

fn opening(input: &RunAgentInput, event: &Event) -> Verdict {
    let Event::RunStarted(RunStarted {
        thread_id, run_id, protocol_version, parent_run_id, ..
    }) = event
    else {
        return Err("a stream begins with RUN_STARTED".into());
    };
    demand(*thread_id == input.thread_id && *run_id == input.run_id, || {
        "not the run that was asked for".into()
    })?;
    demand(*parent_run_id == input.parent_run_id, || "not the parent run of the input".into())?;
    let is_of_1_0 = input.protocol_version.as_deref() == Some("1.0");
    let expected = if is_of_1_0 { "1.0" } else { "1.1" };
    demand(protocol_version.as_deref() == Some(expected), || {
        format!("protocol version {protocol_version:?}")
    })
}

fn ending(input: &RunAgentInput, run: &Ledger, event: &Event) -> Verdict {
    match event {
        // Items may be open: RUN_ERROR closes them.
        Event::RunError(error) => usage(&error.usage),
        Event::RunFinished(finished) => {
            let ours = finished.thread_id == input.thread_id && finished.run_id == input.run_id;
            demand(ours, || "not the run that was asked for".into())?;
            demand(run.open().is_empty(), || format!("still open: {}", run.open().join(", ")))?;
            usage(&finished.usage)?;
            outcome(run, finished)
        }
        _ => Err("a stream ends with RUN_FINISHED or RUN_ERROR".into()),
    }
}

fn outcome(run: &Ledger, finished: &RunFinished) -> Verdict {
    let pending = run.unanswered_calls();
    match &finished.outcome {
        // An absent outcome means success. The specification lets a producer leave the pending calls out; this
        // server promises to name them.
        None => demand(pending.is_empty(), || {
            format!("the calls {pending:?} are unanswered and not named")
        }),
        Some(RunOutcome::Success { pending_tool_call_ids: named }) => {
            demand(*named == pending, || format!("names {named:?} as pending, but {pending:?} are"))
        }
        Some(RunOutcome::Interrupt { interrupts }) => self::interrupts(interrupts),
        Some(RunOutcome::Cancelled) => Ok(()),
    }
}

fn interrupts(interrupts: &[Interrupt]) -> Verdict {
    demand(!interrupts.is_empty(), || "an interrupt outcome without an interrupt".into())?;
    let mut ids = HashSet::new();
    interrupts.iter().try_for_each(|interrupt| {
        demand(ids.insert(&interrupt.id), || {
            format!("the interrupt {:?} is there twice", interrupt.id)
        })
    })
}

fn usage(usage: &[TokenUsage]) -> Verdict {
    let mut models = HashSet::new();
    usage.iter().try_for_each(|entry| {
        let model = (&entry.provider, &entry.model);
        demand(models.insert(model), || format!("usage of {model:?} is there twice"))
    })
}

fn demand(condition: bool, fault: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(fault()) }
}

/// Checks the attribution (`subagentRunId`) of a continuation: it is absent, or the owner of the item.
fn check_owner(tag: Option<&SubagentRunId>, owner: Option<&SubagentRunId>) -> Verdict {
    demand(tag.is_none() || tag == owner, || {
        format!("attributed to {tag:?}, but owned by {owner:?}")
    })
}
