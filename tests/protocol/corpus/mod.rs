//! Writes encoded events and whole streams to two files for `tests/js/corpus.test.mjs`.
//!
//! That test compares them with the reference implementation: each event as JSON, Server-Sent Event and protobuf frame,
//! and each stream with the conversation and the state that a client must have after it.

pub(crate) mod catalogue;
mod snapshots;
mod streams;

use std::{collections::HashSet, fs, panic::catch_unwind, path::Path};

use agui_protocol::{
    decode::decode,
    encode::{Proto, Sse},
};
use agui_run::Transcript;
use agui_server::protocol::{Event, EventType, RunAgentInput};
use serde_json::{Value, json};

use crate::support::{
    checker::check,
    streams::{Ending, Script, lines, play, seeded},
};

/// The folder of the files, known to the JavaScript test.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/corpus");
const SEEDED_STREAMS: usize = 300;
/// Longer events, in bytes, are not in the golden file. The JavaScript test checks them.
const MAX_GOLDEN_LINE: usize = 10_000;

#[test]
fn the_corpus_is_written_to_files() {
    fs::create_dir_all(FOLDER).unwrap();
    write(
        "events.json",
        catalogue::events().iter().map(|(name, json)| event(name, json)).collect(),
    );
    let (mut recorded, mut failed) = (Vec::new(), Vec::new());
    let hand_written =
        streams::hand_written().into_iter().map(|(name, script)| (name.to_owned(), script));
    let seeded = seeded(SEEDED_STREAMS)
        .into_iter()
        .enumerate()
        .map(|(index, script)| (format!("seeded {index}"), script));
    for (name, script) in hand_written.chain(seeded) {
        // The other streams are written even if one cannot be recorded.
        match catch_unwind(|| stream(&name, &script)) {
            Ok(entry) => recorded.push(entry),
            Err(_) => failed.push(name),
        }
    }
    write("streams.json", recorded);
    assert!(failed.is_empty(), "not recorded: {failed:?}");
}

/// A change of these bytes reaches every client. `cargo insta review` or `INSTA_UPDATE=always` accepts an intended one.
#[test]
fn encoded_events_equal_the_golden_file() {
    let mut golden = String::new();
    for (name, json) in catalogue::events() {
        let written = event(&name, &json);
        let (sse, frame) = (written["sse"].as_str().unwrap(), written["frame"].as_str().unwrap());
        let line = sse.strip_suffix("\n\n").unwrap();
        if line.len() < MAX_GOLDEN_LINE {
            golden += &format!("# {name}\n{line}\n{frame}\n");
        }
    }
    insta::with_settings!({ snapshot_path => "golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("events", golden);
    });
}

#[test]
fn each_event_type_has_at_least_two_examples() {
    let events = catalogue::events();
    for kind in EventType::ALL {
        let variants = events.iter().filter(|(_, json)| json["type"] == kind.as_str());
        assert!(variants.count() >= 2, "{kind:?}");
    }
    let names: HashSet<_> = events.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), events.len(), "names must be unique");
}

#[test]
fn seeded_streams_are_reproducible() {
    let events = |scripts: Vec<Script>| {
        scripts.iter().map(|script| format!("{script:?}")).collect::<Vec<_>>()
    };
    assert_eq!(events(seeded(20)), events(seeded(20)));
}

#[test]
fn hand_written_streams_are_legal() {
    for (name, script) in streams::hand_written() {
        let left = play(&script);
        assert_eq!(check(&script.input, &left), Ok(()), "{name}");
        assert!(matches!(left.last(), Some(Event::RunFinished(_))), "{name}:\n{}", lines(&left));
        assert_eq!(script.ending, Ending::Quiet);
    }
}

fn write(name: &str, entries: Vec<Value>) {
    fs::write(Path::new(FOLDER).join(name), serde_json::to_vec(&entries).unwrap()).unwrap();
}

/// Returns an event in its three encodings.
fn event(name: &str, json: &Value) -> Value {
    let event: Event =
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = serde_json::to_value(&event).unwrap();
    assert_eq!(written, *json, "{name} changes when it is read and written");
    let (mut sse, mut frame) = (Vec::new(), Vec::new());
    Sse::default().event(&event, &mut sse);
    Proto::default().event(&event, &mut frame);
    let (length, message) = frame.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len(), "{name}");
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "name": name, "json": written, "sse": String::from_utf8(sse).unwrap(), "frame": hex })
}

/// Returns a stream with the conversation and the state after it.
fn stream(name: &str, script: &Script) -> Value {
    assert_is_valid(name, &script.input);
    let events = play(script);
    let mut transcript = Transcript::from_input(&script.input);
    events.iter().for_each(|event| transcript.apply(event));
    json!({
        "name": name,
        "input": script.input,
        "events": events,
        "messages": transcript.messages(),
        "state": transcript.state(),
    })
}

/// Checks that the decoder reads the input unchanged.
fn assert_is_valid(name: &str, input: &RunAgentInput) {
    let bytes = serde_json::to_vec(input).unwrap();
    let decoded = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(decoded.input, *input, "{name}");
    assert!(decoded.ignored.is_empty(), "{name}");
}
