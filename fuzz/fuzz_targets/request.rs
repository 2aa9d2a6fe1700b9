//! The decoder of requests: what it accepts can be written and decoded again to the same input; its errors are short.
#![no_main]

use agui_protocol::decode::decode;
use agui_server_fuzz::{amplified, bounded, is_short};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

fuzz_target!(|data: &[u8]| {
    let body = amplified(data);
    match bounded(body.len(), || decode(&body)) {
        Ok(read) => {
            assert!(is_short(&read.ignored.to_string()), "{}", read.ignored);
            // Not `Value`: numbers that do not fit an f64, such as 1e400, may stand in members that are ignored.
            serde_json::from_slice::<IgnoredAny>(&body).expect("JSON by the usual parser");
            let written = serde_json::to_vec(&read.input).expect("an input can be written");
            let again = decode(&written).expect("a written input can be decoded");
            assert!(again.ignored.is_empty(), "{}", again.ignored);
            assert_eq!(again.input, read.input);
        }
        Err(error) => assert!(is_short(&error.to_string()), "{error}"),
    }
});
