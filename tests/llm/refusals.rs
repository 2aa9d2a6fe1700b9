//! Refusals of what a conversation has, in known and in unknown words, at each of the four APIs: the answer comes in a
//! poorer form, and the next message begins with it.

use std::sync::Arc;

use agui_server::{
    llm::{
        Anthropic, Block, Gemini, Model, ModelEvent, ModelOptions, ModelReasoning, ModelRequest,
        ModelStep, OpenAi, ProfileOptions, ProviderClient, StopReason, ToolResult, WindowOptions,
    },
    protocol::{ContentPart, MessageContent, ToolCall},
    store::ThreadKey,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::parameters::answer;
use crate::support::provider::{Check, Provider, Recorded};

fn fit(model: impl Model) -> Arc<dyn Model> {
    WindowOptions::default().fit(Arc::new(model))
}

fn options(provider: &Provider, profile: &str) -> ModelOptions {
    let base_url = Some(format!("{}/v1", provider.url()));
    let client = ProviderClient { base_url, max_retries: 0, ..ProviderClient::default() };
    let mut options = ModelOptions::new("m", client);
    options.profile = (!profile.is_empty()).then(|| ProfileOptions::named(profile));
    options
}

fn error(message: &str) -> Option<String> {
    Some(json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": 400}}).to_string())
}

fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

/// A step with a thought and a call, and the call's result.
fn called(reasoning: ModelReasoning, signature: Option<&str>) -> [ModelStep; 2] {
    let mut call = ToolCall::new("c1", "look_up", "{}");
    call.encrypted_value = signature.map(str::to_owned);
    let result = ToolResult {
        call_id: "c1".into(),
        name: "look_up".to_owned(),
        content: MessageContent::Text("42".to_owned()),
        failed: false,
    };
    [
        ModelStep::Assistant(vec![Block::Reasoning(reasoning), Block::Call(call)]),
        ModelStep::ToolResults(vec![result]),
    ]
}

async fn ask(model: &dyn Model, request: ModelRequest) -> Result<String, String> {
    let mut said = String::new();
    let thread = Some(ThreadKey { owner: "key:ann".into(), id: "t".into() });
    let mut answer = model.stream(ModelRequest { thread, ..request });
    while let Some(event) = answer.next().await {
        match event.map_err(|error| error.message().to_owned())? {
            ModelEvent::Delta { text, .. } => said.push_str(&text),
            ModelEvent::Stop(StopReason::Done) => return Ok(said),
            _ => {}
        }
    }
    Err("no end".to_owned())
}

/// Asks twice. Returns the requests of the first answer, and checks that the second one takes a single request.
async fn asked_twice(
    provider: &Provider,
    model: &dyn Model,
    api: &str,
    request: &ModelRequest,
) -> Vec<Recorded> {
    provider.answer(answer(api));
    assert_eq!(ask(model, request.clone()).await.as_deref(), Ok("fine"), "{api}");
    let first = provider.requests();
    assert!(first.len() <= 8, "{api}: {}", first.len());
    provider.answer(answer(api));
    assert_eq!(ask(model, request.clone()).await.as_deref(), Ok("fine"), "{api}");
    assert_eq!(provider.requests().len(), first.len() + 1, "{api}: it is known");
    first
}

#[tokio::test]
async fn reasoning_that_is_not_accepted_any_more_ends_no_thread_whatever_the_words_are() {
    fn has_reasoning(request: &Recorded) -> bool {
        [
            "\"reasoning_content\"",
            "\"type\":\"reasoning\"",
            "\"signature\"",
            "\"thoughtSignature\":\"old",
        ]
        .iter()
        .any(|mark| request.text.contains(mark))
    }
    let checks: [Check; 2] = [
        |request| has_reasoning(request).then(|| error("nope")).flatten(),
        |request| {
            let words = "The encrypted content gAAA...DQ== could not be verified.";
            has_reasoning(request).then(|| error(words)).flatten()
        },
    ];
    for check in checks {
        for api in ["chat", "responses", "anthropic", "gemini"] {
            let provider = Provider::start_checked(check).await;
            let (model, artefact, signature, vendor) = match api {
                "chat" => (
                    fit(OpenAi::chat(options(&provider, "fireworks")).unwrap()),
                    None,
                    None,
                    "fireworks",
                ),
                "responses" => (
                    fit(OpenAi::responses(options(&provider, "")).unwrap()),
                    Some(r#"{"id":"rs_1","encrypted_content":"x"}"#),
                    None,
                    "openai",
                ),
                "anthropic" => (
                    fit(Anthropic::new(options(&provider, "")).unwrap()),
                    Some("c2ln"),
                    None,
                    "anthropic",
                ),
                _ => (
                    fit(Gemini::new(options(&provider, "")).unwrap()),
                    None,
                    Some("gemini:call:old"),
                    "gemini",
                ),
            };
            let thought = ModelReasoning {
                text: "hm".to_owned(),
                artefact: artefact.map(str::to_owned),
                redacted: false,
                provider: Some(vendor.to_owned()),
            };
            let mut steps = vec![user("hi")];
            steps.extend(called(thought, signature));
            let request = ModelRequest { steps, ..ModelRequest::default() };
            let sent = asked_twice(&provider, &*model, api, &request).await;
            assert!(has_reasoning(&sent[0]), "{api}: {}", sent[0].text);
        }
    }
}

#[tokio::test]
async fn instructions_become_one_first_message_for_a_template_that_takes_no_others() {
    fn check(request: &Recorded) -> Option<String> {
        let messages = request.body["messages"].as_array()?;
        let is_system = |message: &&Value| message["role"] == "system";
        (messages.iter().skip(1).any(|message| is_system(&message)))
            .then(|| error("System message must be at the beginning."))
            .flatten()
    }
    let provider = Provider::start_checked(check).await;
    let model = fit(OpenAi::chat(options(&provider, "")).unwrap());
    let request = ModelRequest {
        system: vec!["Be brief.".to_owned()],
        current: vec!["The page shows a map.".to_owned()],
        steps: vec![user("hi"), ModelStep::Instructions("Be kind.".to_owned()), user("and?")],
        ..ModelRequest::default()
    };
    let sent = asked_twice(&provider, &*model, "chat", &request).await;
    let messages = &sent[1].body["messages"];
    let first = messages[0]["content"].as_str().unwrap();
    assert!(
        ["Be brief.", "Be kind.", "a map."].iter().all(|text| first.contains(text)),
        "{messages}"
    );
    assert!(messages.as_array().unwrap()[1..].iter().all(|it| it["role"] == "user"), "{messages}");
    assert_eq!(sent.len(), 2);
}

#[tokio::test]
async fn instructions_are_in_the_users_message_if_the_model_has_no_role_for_them() {
    fn check(request: &Recorded) -> Option<String> {
        let is_gemini = request.body.get("systemInstruction").is_some();
        if is_gemini {
            return error("Developer instruction is not enabled for models/gemma-3-27b-it");
        }
        request.text.contains("\"role\":\"system\"").then(|| error("System role not supported"))?
    }
    for api in ["chat", "gemini"] {
        let provider = Provider::start_checked(check).await;
        let model = match api {
            "chat" => fit(OpenAi::chat(options(&provider, "")).unwrap()),
            _ => fit(Gemini::new(options(&provider, "")).unwrap()),
        };
        let request = ModelRequest {
            system: vec!["Be brief.".to_owned()],
            steps: vec![user("hi")],
            ..ModelRequest::default()
        };
        let sent = asked_twice(&provider, &*model, api, &request).await;
        assert_eq!(sent.len(), 2, "{api}");
        let text = &sent[1].text;
        assert!(text.contains("<system-instructions>\\nBe brief."), "{text}");
    }
}

#[tokio::test]
async fn empty_contents_and_repeated_roles_are_written_as_the_server_takes_them() {
    let checks: [Check; 2] = [
        |request| {
            let messages = request.body["messages"].as_array()?;
            let is_null = messages.iter().any(|message| message["content"].is_null());
            is_null.then(|| error("'content' field must be a string or an array of objects."))?
        },
        |request| {
            let body = &request.body;
            let messages = body.get("messages").or(body.get("input"))?.as_array()?;
            // The second role is absent of a call and its result in the Responses API.
            let repeats = messages
                .windows(2)
                .any(|pair| pair[1]["role"].is_string() && pair[0]["role"] == pair[1]["role"]);
            repeats.then(|| {
                error("Conversation roles must alternate user/assistant/user/assistant/...")
            })?
        },
    ];
    for (check, api) in [(checks[0], "chat"), (checks[1], "chat"), (checks[1], "responses")] {
        let provider = Provider::start_checked(check).await;
        let model = match api {
            "chat" => fit(OpenAi::chat(options(&provider, "")).unwrap()),
            _ => fit(OpenAi::responses(options(&provider, "")).unwrap()),
        };
        let mut steps = vec![user("hi"), user("are you there?")];
        steps.extend(called(ModelReasoning::default(), None));
        let request = ModelRequest { steps, ..ModelRequest::default() };
        let sent = asked_twice(&provider, &*model, api, &request).await;
        assert_eq!(sent.len(), 2, "{api}");
        assert!(sent[1].text.contains("hi") && sent[1].text.contains("are you there?"), "{api}");
    }
}

#[tokio::test]
async fn reasoning_that_a_server_wants_back_is_sent_after_the_tool_has_run() {
    fn check(request: &Recorded) -> Option<String> {
        let messages = request.body["messages"].as_array()?;
        let mut own = messages.iter().filter(|message| message["role"] == "assistant");
        own.any(|message| message.get("reasoning_content").is_none()).then(|| {
            error("The reasoning_content in the thinking mode must be passed back to the API.")
        })?
    }
    let provider = Provider::start_checked(check).await;
    let model = fit(OpenAi::chat(options(&provider, "")).unwrap());
    let thought = ModelReasoning { text: "hm".to_owned(), ..ModelReasoning::default() };
    let mut steps = vec![user("hi")];
    steps.extend(called(thought, None));
    let request = ModelRequest { steps, ..ModelRequest::default() };
    let sent = asked_twice(&provider, &*model, "chat", &request).await;
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].body["messages"][1]["reasoning_content"], "hm");
}

#[tokio::test]
async fn a_key_that_is_not_accepted_and_a_proxys_page_begin_no_ladder() {
    let checks: [Check; 2] = [
        |_| {
            let error =
                json!({"message": "No connected db.", "type": "no_db_connection", "code": "400"});
            Some(json!({ "error": error }).to_string())
        },
        |_| {
            Some(
                json!({"error": {"message": "billing: your credit balance is too low"}})
                    .to_string(),
            )
        },
    ];
    for check in checks {
        let provider = Provider::start_checked(check).await;
        let model = fit(OpenAi::chat(options(&provider, "fireworks")).unwrap());
        let mut steps = vec![user("hi")];
        steps.extend(called(ModelReasoning { text: "hm".to_owned(), ..Default::default() }, None));
        assert!(ask(&*model, ModelRequest { steps, ..ModelRequest::default() }).await.is_err());
        assert_eq!(provider.requests().len(), 1);
    }
}
