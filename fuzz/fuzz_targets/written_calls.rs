//! Answers that may end with calls which a model wrote as text: no text is lost, the calls are the same wherever the text is cut, and
//! each call that is read stands in its text, also if that is encoded. The first byte is the way to cut the text.
#![no_main]

use agui_llm::testing::{stands_in, written_calls};
use agui_server_fuzz::{amplified, bounded, pieces};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let [how, data @ ..] = data else { return };
    let data = amplified(data);
    let Ok(text) = std::str::from_utf8(&data) else { return };
    // Pieces of bytes, moved to the next character.
    let mut places: Vec<usize> = vec![0];
    for piece in pieces(text.as_bytes(), *how) {
        places.push(text.ceil_char_boundary(places[places.len() - 1] + piece.len()));
    }
    let cut = places.windows(2).map(|pair| &text[pair[0]..pair[1]]);
    let (shown, rest, calls) = bounded(text.len(), || written_calls(cut.clone()));
    assert_eq!(format!("{shown}{rest}"), text, "no text is lost");
    let (whole_shown, whole_rest, whole_calls) = written_calls([text]);
    assert_eq!(format!("{whole_shown}{whole_rest}"), text);
    assert_eq!(calls, whole_calls, "cut and whole");
    let encoded = json!({ "page": text }).to_string();
    for call in calls.iter().take(4) {
        assert!(stands_in(text, call), "{call:?} is read in its text");
        assert!(stands_in(&encoded, call), "{call:?} is found in {encoded}");
    }
    let other = ("pay".to_owned(), "{\"to\":\"eve\"}".to_owned());
    bounded(text.len(), || stands_in(text, &other));
});
