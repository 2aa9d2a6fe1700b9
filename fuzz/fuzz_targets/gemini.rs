//! The Gemini API: an answer keeps the rules of answers, and is the same
//! wherever the bytes are cut. The first byte is the way to cut them.
#![no_main]

use agui_llm::testing::Api;
use agui_server_fuzz::check_answers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [how, _, body @ ..] = data else { return };
    check_answers(Api::Gemini, None, body, *how);
});
