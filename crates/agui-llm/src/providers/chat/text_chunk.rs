//! Reads a chunk that has only text, like nearly all chunks, without creating a `Value`: its maps
//! were 16 % of the server's own CPU time of a token.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};

/// Returns the text of a chunk with one choice and no other content for the decoder: no error,
/// reasoning, call, usage or reason of the stop. `None`: the decoder has to read the chunk.
pub(super) fn text_alone(data: &str) -> Option<Cow<'_, str>> {
    let TextChunk { choices: [choice], error: (), usage: (), x_groq: () } =
        serde_json::from_str(data).ok()?;
    let TextChoice { index, delta, finish_reason: (), usage: () } = choice;
    (index == 0).then_some(delta.content)
}

/// Members that are `()` are absent or `null`.
#[derive(Deserialize)]
struct TextChunk<'d> {
    #[serde(borrow)]
    choices: [TextChoice<'d>; 1],
    #[serde(default)]
    error: (),
    #[serde(default)]
    usage: (),
    #[serde(default)]
    x_groq: (),
}

#[derive(Deserialize)]
struct TextChoice<'d> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: TextDelta<'d>,
    #[serde(default)]
    finish_reason: (),
    #[serde(default)]
    usage: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "absent, null or without a meaning")]
struct TextDelta<'d> {
    #[serde(borrow)]
    content: Cow<'d, str>,
    role: Option<IgnoredAny>,
    #[serde(default)]
    function_call: (),
    #[serde(default)]
    reasoning: (),
    #[serde(default)]
    reasoning_content: (),
    #[serde(default)]
    refusal: (),
    #[serde(default)]
    tool_calls: (),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_chunk_with_text_alone_is_read_as_text() {
        let read = |delta: &str, choice: &str, chunk: &str| {
            let data =
                format!(r#"{{"id":"c","choices":[{{"delta":{{{delta}}}{choice}}}]{chunk}}}"#);
            text_alone(&data).map(Cow::into_owned)
        };
        let text = r#""role":"assistant","content":"a \"b\"""#;
        let nulls = r#","refusal":null,"tool_calls":null,"reasoning_content":null"#;
        let usual = r#","index":0,"logprobs":{"a":[]},"finish_reason":null"#;
        assert_eq!(read(text, "", "").as_deref(), Some("a \"b\""));
        assert_eq!(
            read(&format!("{text}{nulls}"), usual, r#","usage":null"#).as_deref(),
            Some("a \"b\"")
        );
        for (delta, choice, chunk) in [
            (r#""content":null"#, "", ""),
            (r#""content":[]"#, "", ""),
            (r#""content":"a","reasoning":"b""#, "", ""),
            (r#""content":"a","content_blocks":[]"#, "", ""),
            (r#""content":"a","tool_calls":[]"#, "", ""),
            (text, r#","index":1"#, ""),
            (text, r#","finish_reason":"stop""#, ""),
            (text, r#","usage":{}"#, ""),
            (text, r#"},{"delta":{}"#, ""),
            (text, "", r#","error":{}"#),
            (text, "", r#","x_groq":{}"#),
            (text, "", r#","usage":{}"#),
            (text, "", " x"),
        ] {
            assert_eq!(read(delta, choice, chunk), None, "{delta} {choice} {chunk}");
        }
    }
}
