//! The binary encoding: an independent decoder reads from each frame what the event's JSON says. Input is an event as
//! JSON, or the bytes of a stream as in the target `guard`.
#![no_main]

use agui_protocol::{Event, encode::Proto};
use agui_server_fuzz::{
    bounded,
    support::streams::{from_bytes, play},
    wire::{decode, expected, frames},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let events: Vec<Event> = if data.first() == Some(&b'{') {
        let Ok(event) = serde_json::from_slice(data) else { return };
        vec![event]
    } else {
        let script = from_bytes(data);
        [play(&script), script.events].concat()
    };
    let jsons: Vec<_> =
        events.iter().map(|event| serde_json::to_value(event).expect("an event can be written")).collect();
    let length = jsons.iter().map(|json| json.to_string().len()).sum();
    let bytes = bounded(length, || {
        let mut bytes = Vec::new();
        events.iter().for_each(|event| Proto::default().event(event, &mut bytes));
        bytes
    });
    let frames = frames(&bytes);
    assert_eq!(frames.len(), events.len());
    for (json, frame) in jsons.iter().zip(frames) {
        let decoded = decode(frame).unwrap_or_else(|error| panic!("{error}\n{json}"));
        assert_eq!(decoded, expected(json), "{json}");
    }
});
