//! The request of the named-event endpoints: its input is one that the decoder of requests accepts; errors are short.
#![no_main]

use agui_protocol::decode::decode;
use agui_server::named_events::ChatRequest;
use agui_server_fuzz::{amplified, bounded, is_short};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let body = amplified(data);
    let Ok(json) = serde_json::from_slice::<Value>(&body) else { return };
    match bounded(body.len(), || ChatRequest::read(&json)) {
        Ok(request) => {
            assert!(!request.messages.is_empty());
            for is_reply in [false, true] {
                match request.to_input("thread".into(), is_reply) {
                    Ok(input) => {
                        let written = serde_json::to_vec(&input).expect("an input can be written");
                        assert_eq!(decode(&written).expect("a written input can be decoded").input, input);
                    }
                    Err(error) => assert!(is_short(&error.to_string()), "{error}"),
                }
            }
            request.messages.iter().for_each(|message| drop(message.to_langchain_format()));
        }
        Err(error) => assert!(is_short(&error.to_string()), "{error}"),
    }
});
