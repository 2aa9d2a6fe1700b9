//! Writes down what this server sends, for the protocol's own clients to read.
//!
//! A test in JavaScript takes the two files and holds them against the reference implementation: every event
//! as JSON, as Server-Sent Event and as protobuf frame, and whole streams with what a client has to make of them.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

#[path = "corpus/catalogue.rs"]
mod catalogue;
#[path = "corpus/snapshots.rs"]
mod snapshots;
#[path = "corpus/streams.rs"]
mod streams;

use std::{collections::HashSet, fs, panic::catch_unwind, path::Path};

use agui_server::{
    encode::{Proto, Sse},
    protocol::{Event, EventType, RunAgentInput, decode::decode},
    run::Transcript,
};
use serde_json::{Value, json};
use support::{
    checker::check,
    streams::{Ending, Script, lines, play, seeded},
};

/// Where the files go; the JavaScript side finds them there.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/corpus");
const SEEDED: usize = 300;
/// An event of this many bytes is in the catalogue for its length, which the other clients check.
const LONG: usize = 10_000;

#[test]
fn the_corpus_is_written_for_the_other_clients() {
    fs::create_dir_all(FOLDER).unwrap();
    write("events.json", catalogue::events().iter().map(|(name, json)| event(name, json)).collect());
    let (mut recorded, mut failed) = (Vec::new(), Vec::new());
    let by_hand = streams::by_hand().into_iter().map(|(name, script)| (name.to_owned(), script));
    let seeded = seeded(SEEDED).into_iter().enumerate().map(|(index, script)| (format!("seeded {index}"), script));
    for (name, script) in by_hand.chain(seeded) {
        // A stream that cannot be recorded does not keep the others from being written.
        match catch_unwind(|| stream(&name, &script)) {
            Ok(entry) => recorded.push(entry),
            Err(_) => failed.push(name),
        }
    }
    write("streams.json", recorded);
    assert!(failed.is_empty(), "not recorded: {failed:?}");
}

/// A change in these bytes reaches every client: it has to be seen, and meant. (`cargo insta review`, or
/// INSTA_UPDATE=always, accepts one.)
#[test]
fn every_event_is_written_byte_for_byte_as_it_was() {
    let mut golden = String::new();
    for (name, json) in catalogue::events() {
        let written = event(&name, &json);
        let (sse, frame) = (written["sse"].as_str().unwrap(), written["frame"].as_str().unwrap());
        let line = sse.strip_suffix("\n\n").unwrap();
        if line.len() < LONG {
            golden += &format!("# {name}\n{line}\n{frame}\n");
        }
    }
    insta::with_settings!({ snapshot_path => "corpus/golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("events", golden);
    });
}

#[test]
fn every_type_of_event_is_in_the_catalogue_with_little_and_with_much() {
    let events = catalogue::events();
    for kind in EventType::ALL {
        let variants = events.iter().filter(|(_, json)| json["type"] == kind.as_str());
        assert!(variants.count() >= 2, "{kind:?}");
    }
    let names: HashSet<_> = events.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), events.len(), "names are to tell the events apart");
}

#[test]
fn the_seeded_streams_are_the_same_every_time() {
    let events = |scripts: Vec<Script>| scripts.iter().map(|script| format!("{script:?}")).collect::<Vec<_>>();
    assert_eq!(events(seeded(20)), events(seeded(20)));
}

fn write(name: &str, entries: Vec<Value>) {
    fs::write(Path::new(FOLDER).join(name), serde_json::to_vec(&entries).unwrap()).unwrap();
}

/// An event in its three forms.
fn event(name: &str, json: &Value) -> Value {
    let event: Event = serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = serde_json::to_value(&event).unwrap();
    assert_eq!(written, *json, "{name} loses something on its way through the types");
    let (mut sse, mut frame) = (Vec::new(), Vec::new());
    Sse::default().event(&event, &mut sse);
    Proto.event(&event, &mut frame);
    let (length, message) = frame.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len(), "{name}");
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "name": name, "json": written, "sse": String::from_utf8(sse).unwrap(), "frame": hex })
}

/// A stream, and the conversation that it leaves a client with.
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

/// What a client could not send must not be asked of it.
fn assert_is_valid(name: &str, input: &RunAgentInput) {
    let bytes = serde_json::to_vec(input).unwrap();
    let decoded = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(decoded.input, *input, "{name}");
    assert!(decoded.ignored.is_empty(), "{name}");
}

/// A stream by hand is meant to arrive: nothing of it is refused, and it ends well.
#[test]
fn the_streams_by_hand_are_legal() {
    for (name, script) in streams::by_hand() {
        let left = play(&script);
        assert_eq!(check(&script.input, &left), Ok(()), "{name}");
        assert!(matches!(left.last(), Some(Event::RunFinished(_))), "{name}:\n{}", lines(&left));
        assert_eq!(script.ending, Ending::Quiet);
    }
}
