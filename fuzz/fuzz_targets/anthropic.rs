//! The Messages API; the second byte selects the vendor, who can pause an answer, or another server: an answer keeps the rules of answers, and is the same
//! wherever the bytes are cut. The first byte is the way to cut them.
#![no_main]

use agui_llm::testing::Api;
use agui_server_fuzz::check_answers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [how, kind, body @ ..] = data else { return };
    let server = (kind % 2 == 0).then_some("compatible");
    check_answers(Api::Anthropic, server, body, *how);
});
