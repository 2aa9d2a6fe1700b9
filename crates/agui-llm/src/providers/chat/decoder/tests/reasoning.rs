//! Reasoning in the forms of all servers.

use super::*;

#[test]
fn reasoning_is_found_in_all_shapes() {
    let expected = [(true, "hm".to_owned()), (false, "yes".to_owned())];
    for answer in [
        vec![json!({"reasoning": "hm"}), json!({"content": "yes"})],
        vec![
            json!({"reasoning_content": "h"}),
            json!({"reasoning_content": "m"}),
            json!({"content": "yes"}),
        ],
        vec![json!({"reasoning_content": "hm", "content": "yes"})],
        // OpenRouter
        vec![
            json!({"content": "", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
            json!({"content": "yes", "reasoning": null, "reasoning_details": []}),
        ],
        vec![
            json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "h"}, {"type": "reasoning.text", "text": "m"}]}),
            json!({"content": "yes"}),
        ],
        // Mistral
        vec![
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]}),
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}], "closed": true}]}),
            json!({"content": [{"type": "text", "text": "ye"}]}),
            json!({"content": "s"}),
        ],
        // LangChain
        vec![
            json!({"content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]}),
        ],
        vec![
            json!({"content_blocks": [{"type": "reasoning", "reasoning": "hm"}]}),
            json!({"content": "yes"}),
        ],
        vec![
            json!({"content": "yes", "content_blocks": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]}),
        ],
        vec![
            json!({"content_blocks": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]}),
        ],
        // Tags
        vec![json!({"content": "<think>hm</think>yes"})],
        vec![
            json!({"content": "<thi"}),
            json!({"content": "nking>\nh"}),
            json!({"content": "m</thinking"}),
            json!({"content": ">\n\nyes"}),
        ],
        vec![
            json!({"content": [{"type": "text", "text": "<think>h"}]}),
            json!({"content": "m</think>yes"}),
        ],
    ] {
        assert_eq!(blocks(&deltas(&answer)), expected, "{answer:?}");
    }
    let unclosed = deltas(&[json!({"content": "<think>h"}), json!({"content": "m</t"})]);
    assert_eq!(blocks(&unclosed), [(true, "hm</t".to_owned())]);
    let mention =
        deltas(&[json!({"content": "Write <think>"}), json!({"content": " yourself</think>"})]);
    assert_eq!(blocks(&mention), [(false, "Write <think> yourself</think>".to_owned())]);
    let cut =
        deltas(&[json!({"content": "<th"}), json!({"tool_calls": [{"function": {"name": "f"}}]})]);
    assert_eq!(blocks(&cut)[0], (false, "<th".to_owned()));
}

#[test]
fn details_of_reasoning_are_kept_for_a_server_that_takes_them_back() {
    let answer = [
        json!({"reasoning": "h", "reasoning_details": [{"type": "reasoning.text", "text": "h", "index": 0, "format": "f", "signature": null}]}),
        json!({"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "text": "m", "index": 0}]}),
        json!({"reasoning_details": [{"type": "reasoning.text", "signature": "s=", "index": 0}]}),
        json!({"content": "yes"}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "id": "a", "index": 0}]}),
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
    ];
    let artefacts = |profile| -> Vec<_> {
        let ends = deltas_of(profile, &answer).into_iter().filter_map(|event| match event {
            End { artefact: Some(artefact), .. } => {
                Some(serde_json::from_str::<Value>(&artefact.value).unwrap())
            }
            _ => None,
        });
        ends.collect()
    };
    let text = json!([{"type": "reasoning.text", "text": "hm", "index": 0, "format": "f", "signature": "s="}]);
    let hidden = json!([{"type": "reasoning.encrypted", "data": "x", "id": "a", "index": 0}]);
    assert_eq!(artefacts("openrouter"), [text, hidden]);
    assert_eq!(artefacts("compatible"), [] as [Value; 0]);
    let events = deltas_of("openrouter", &answer);
    assert!(
        events.contains(&Start { index: 2, block: BlockStart::Reasoning { redacted: true } }),
        "{events:?}"
    );
}

#[test]
fn a_text_that_begins_with_reasoning_needs_a_profile_that_says_so() {
    let mut options = ProfileOptions::named("vllm");
    options.think_tags = Some(crate::known_models::ThinkTags::Closing);
    let profile = KnownModels::default()
        .profile(Some(&options), &reqwest::Url::parse("http://host").unwrap())
        .unwrap();
    let events = [
        json!({"choices": [{"delta": {"content": "hm</think>yes"}}]}).to_string(),
        "[DONE]".to_owned(),
    ];
    let decoded = |is_thinking_off| {
        blocks(
            &decode_with(ChatDecoder::new("m", &profile, is_thinking_off, Arc::default()), &events)
                .unwrap()
                .0,
        )
    };
    assert_eq!(decoded(false), [(true, "hm".to_owned()), (false, "yes".to_owned())]);
    assert_eq!(decoded(true), [(false, "hm</think>yes".to_owned())]);
}
