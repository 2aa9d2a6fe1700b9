//! Chat completions, with the profile that the second byte selects: an answer keeps the rules of answers, and is the same
//! wherever the bytes are cut. The first byte is the way to cut them.
#![no_main]

use agui_llm::testing::{Api, OpenAiApi};
use agui_server_fuzz::check_answers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [how, kind, body @ ..] = data else { return };
    let profiles = ["compatible", "openai", "deepseek", "qwen", "openrouter", "mistral"];
    let profile = profiles[usize::from(*kind) % profiles.len()];
    check_answers(Api::OpenAi(OpenAiApi::Chat), Some(profile), body, *how);
});
