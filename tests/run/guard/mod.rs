//! Properties of the guard: a run emits a legal stream for any events of an agent. The checker that decides what is legal
//! is tested with illegal streams.

mod illegal;
mod mutations;

use agui_protocol::encode::{Proto, Sse};
use agui_run::Guard;
use agui_server::protocol::{
    Event, RunAgentInput,
    event::{RunFinished, RunOutcome, RunStarted},
};
use proptest::prelude::*;

use crate::support::{
    checker::check,
    streams::{Ending, Script, legal, lines, mostly_legal, nonsense, play, script},
};

fn config(cases: u32) -> ProptestConfig {
    // Failures are printed in full, so that they need no file beside the test.
    ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Default::default()
    }
}

/// Returns the stream of a run without incidents: the events between `RUN_STARTED` and `RUN_FINISHED`.
fn framed(input: &RunAgentInput, events: &[Event], outcome: RunOutcome) -> Vec<Event> {
    let mut started = RunStarted::new(input.thread_id.clone(), input.run_id.clone());
    started.parent_run_id.clone_from(&input.parent_run_id);
    let finished = RunFinished::new(input.thread_id.clone(), input.run_id.clone(), outcome);
    [vec![started.into()], events.to_vec(), vec![finished.into()]].concat()
}

/// Returns the outcome with the unanswered calls, for streams in which each call has at most one result.
fn pending(events: &[Event]) -> RunOutcome {
    let mut pending_tool_call_ids = Vec::new();
    for event in events {
        match event {
            Event::ToolCallStart(start) if !pending_tool_call_ids.contains(&start.tool_call_id) => {
                pending_tool_call_ids.push(start.tool_call_id.clone());
            }
            Event::ToolCallResult(result) => {
                pending_tool_call_ids.retain(|id| *id != result.tool_call_id)
            }
            _ => {}
        }
    }
    RunOutcome::Success { pending_tool_call_ids }
}

fn assert_legal(script: &Script, left: &[Event]) -> Result<(), TestCaseError> {
    check(&script.input, left)
        .map_err(|fault| TestCaseError::fail(format!("{fault}\nthe run emitted:\n{}", lines(left))))
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_run_emits_a_legal_stream_for_random_events(script in nonsense()) {
        assert_legal(&script, &play(&script))?;
    }

    #[test]
    fn a_run_emits_a_legal_stream_for_mostly_legal_events(script in mostly_legal()) {
        assert_legal(&script, &play(&script))?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_legal_stream_passes_unchanged(script in legal()) {
        let (mut guard, mut passed) = (Guard::new(&script.input), Vec::new());
        for event in &script.events {
            let admitted = guard.admit(event.clone(), &mut passed);
            prop_assert!(admitted.is_ok(), "{admitted:?} of {event:?}");
        }
        prop_assert_eq!(lines(&passed), lines(&script.events));
        let framed = framed(&script.input, &script.events, pending(&script.events));
        prop_assert_eq!(lines(&play(&script)), lines(&framed));
        assert_legal(&script, &framed)?;
    }

    #[test]
    fn an_agent_that_fails_or_panics_ends_its_run_with_an_error(script in legal(), panics in any::<bool>()) {
        let (ending, code) = if panics { (Ending::Panics, "agent_panic") } else { (Ending::Fails, "out_of_luck") };
        let script = Script { ending, ..script };
        let left = play(&script);
        assert_legal(&script, &left)?;
        prop_assert_eq!(lines(&left[1..left.len() - 1]), lines(&script.events));
        let last = left.last();
        prop_assert!(matches!(last, Some(Event::RunError(error)) if error.code.as_deref() == Some(code)), "{last:?}");
    }

    #[test]
    fn every_event_is_one_json_object_on_one_data_line(script in script()) {
        let left = play(&script);
        let (mut sse, mut text) = (Sse::default(), Vec::new());
        left.iter().for_each(|event| sse.event(event, &mut text));
        let text = String::from_utf8(text).unwrap();
        let frames: Vec<_> = text.split_terminator("\n\n").collect();
        prop_assert_eq!(frames.len(), left.len());
        prop_assert_eq!(text.matches("data:").count() - text.matches("\"data:").count(), left.len());
        for (frame, event) in frames.iter().zip(&left) {
            let json = serde_json::to_string(event).unwrap();
            prop_assert_eq!(*frame, format!("data: {json}"));
            prop_assert!(!json.contains(['\n', '\r']));
            let read: Event = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
    }

    #[test]
    fn every_event_is_one_protobuf_frame(script in script()) {
        let (mut proto, mut bytes) = (Proto::default(), Vec::new());
        let left = play(&script);
        left.iter().for_each(|event| proto.event(event, &mut bytes));
        let (mut rest, mut frames) = (&bytes[..], 0);
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            rest = &behind[u32::from_be_bytes(*length) as usize..];
            frames += 1;
        }
        prop_assert_eq!((frames, rest.len()), (left.len(), 0));
    }

    #[test]
    fn the_checker_rejects_mutated_streams(
        script in legal(),
        mutation in mutations::any(),
        place in any::<prop::sample::Index>(),
    ) {
        let framed = framed(&script.input, &script.events, pending(&script.events));
        prop_assert_eq!(check(&script.input, &framed), Ok(()));
        let mutated = mutation.apply(&framed, place);
        prop_assert!(check(&script.input, &mutated).is_err(), "{mutation:?}:\n{}", lines(&mutated));
    }
}

#[test]
fn the_checker_rejects_each_illegal_stream() {
    let accepted = illegal::illegal_streams()
        .into_iter()
        .filter(|(_, input, stream)| check(input, stream).is_ok());
    assert_eq!(accepted.map(|(fault, ..)| fault).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_run_emits_a_legal_stream_for_each_illegal_one() {
    let faults = illegal::illegal_streams().into_iter().filter_map(|(name, input, events)| {
        let script = Script { input, events, ending: Ending::Quiet };
        let left = play(&script);
        let fault = check(&script.input, &left).err()?;
        Some(format!("{name}: {fault}\n{}", lines(&left)))
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn the_checker_accepts_unusual_legal_streams() {
    let verdicts = illegal::unusual_legal_streams()
        .into_iter()
        .map(|(name, input, stream)| (name, check(&input, &stream)));
    assert_eq!(verdicts.filter(|(_, verdict)| verdict.is_err()).collect::<Vec<_>>(), []);
}
