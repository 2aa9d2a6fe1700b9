//! The guard: whatever events an agent sends, a run emits a legal stream, by the checker of the property tests. Passing
//! the guard a second time changes nothing, and each event is the same after writing and reading.
#![no_main]

use agui_protocol::Event;
use agui_run::{Guard, Transcript};
use agui_server_fuzz::{
    bounded,
    support::{
        checker::check,
        streams::{from_bytes, lines, play},
    },
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let script = from_bytes(data);
    // An event of a few bytes may be a snapshot of some kilobytes.
    let sent = bounded(data.len() * 64, || play(&script));
    if let Err(fault) = check(&script.input, &sent) {
        panic!("{fault}\n{script:?}\nthe run emitted:\n{}", lines(&sent));
    }
    for event in &sent {
        let json = serde_json::to_string(event).expect("an event can be written");
        let read: Event = serde_json::from_str(&json).expect("a written event can be read");
        assert_eq!(serde_json::to_string(&read).expect("an event can be written"), json);
    }
    let (mut guard, mut again) = (Guard::new(&script.input), Vec::new());
    let mut transcript = Transcript::from_input(&script.input);
    for event in &sent[1..sent.len() - 1] {
        guard.admit(event.clone(), &mut again).expect("what the guard emitted is legal for the guard");
        transcript.apply(event);
    }
    assert_eq!(lines(&again), lines(&sent[1..sent.len() - 1]));
});
