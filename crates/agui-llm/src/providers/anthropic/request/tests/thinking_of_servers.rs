//! Thinking is sent back to the server that made it.

use super::*;

#[test]
fn thinking_returns_to_the_server_that_made_it() {
    let server =
        |url: &str| KnownModels::default().messages_server(&reqwest::Url::parse(url).unwrap());
    let thought = |text: &str, artefact: Option<&str>, provider: Option<&str>| {
        let artefact = artefact.map(str::to_owned);
        let provider = provider.map(str::to_owned);
        Block::Reasoning(ModelReasoning {
            text: text.to_owned(),
            artefact,
            redacted: false,
            provider,
        })
    };
    let blocks = vec![
        thought("unsigned", None, None),
        thought("unsigned kimi", None, Some("kimi")),
        thought("unsigned deepseek", None, Some("deepseek")),
        thought("ours", Some("c2ln"), Some("anthropic")),
        thought("kimi", Some("c2ln"), Some("kimi")),
        thought("unknown", Some("c2ln"), None),
        thought("openai", Some(r#"{"id":"rs","encrypted_content":"e"}"#), None),
        thought("gemini", Some("gemini:thought:[1,[]]"), None),
        Block::Call(ToolCall::new("c", "f", "{}")),
    ];
    let steps = vec![ModelStep::Assistant(blocks)];
    let sent = |url: &str| {
        let request = ModelRequest { steps: steps.clone(), ..ModelRequest::default() };
        let json = super::super::body(&options("m"), &request, &server(url), false).sent.json;
        let blocks = json["messages"][1]["content"].as_array().unwrap().clone();
        let thoughts =
            blocks.iter().filter_map(|block| block["thinking"].as_str().map(str::to_owned));
        thoughts.collect::<Vec<_>>()
    };
    assert_eq!(
        sent("https://api.kimi.com/coding/v1/messages"),
        ["unsigned", "unsigned kimi", "kimi", "unknown"]
    );
    assert_eq!(sent("https://api.minimax.io/anthropic/v1/messages"), ["unknown"]);
    assert_eq!(sent("https://api.anthropic.com/v1/messages"), ["ours", "unknown"]);
}
