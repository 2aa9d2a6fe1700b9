//! Conversations that are longer than the model's context window: refused, trimmed or summarised, over HTTP. The stored
//! thread keeps everything.

use serde_json::{Value, json};

use super::{
    Models, ask, chunk,
    provider::{Answer, Provider, Recorded},
    says, text_and_error,
};

/// About 250 tokens, which name their number.
fn long(number: usize) -> String {
    format!("{}message {number}.", "a long word ".repeat(80))
}

/// The refusal of https://platform.openai.com/docs/guides/error-codes with the code `context_length_exceeded`.
fn too_long() -> Answer {
    let error = json!({ "error": {
        "message": "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
    } });
    Answer::new(400, [error.to_string()]).header("content-type", "application/json")
}

struct Thread<'m> {
    models: &'m Models,
    messages: Vec<Value>,
    runs: usize,
}

impl<'m> Thread<'m> {
    fn new(models: &'m Models) -> Self {
        Self { models, messages: Vec::new(), runs: 0 }
    }

    /// Sends a new message, and all messages that the client knows: the users' and the answers.
    async fn say(&mut self, text: &str) -> Vec<Value> {
        self.runs += 1;
        let id = format!("m{}", self.runs);
        self.messages.push(json!({ "id": id, "role": "user", "content": text }));
        let input = json!({ "threadId": "t", "runId": format!("r{}", self.runs), "messages": self.messages });
        let events = ask(&self.models.process.url, input).await;
        if let Some(start) = events.iter().find(|event| event["type"] == "TEXT_MESSAGE_START") {
            let (text, _) = text_and_error(&events);
            self.messages
                .push(json!({ "id": start["messageId"], "role": "assistant", "content": text }));
        }
        events
    }

    async fn stored(&self) -> Vec<Value> {
        let client = agui_base::upstream::client(&Default::default()).unwrap();
        let thread =
            client.get(format!("{}/threads/t", self.models.process.url)).send().await.unwrap();
        thread.json::<Value>().await.unwrap()["messages"].as_array().unwrap().clone()
    }
}

/// The texts of a request's conversation, without instructions.
fn conversation(request: &Recorded) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let text = |content: &Value| match content {
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let steps = messages
        .iter()
        .filter(|message| message["role"] != "system" && message["role"] != "developer");
    steps.map(|message| text(&message["content"])).collect()
}

fn mentions(request: &Recorded, number: usize) -> bool {
    conversation(request).iter().any(|text| text.contains(&format!("message {number}.")))
}

const NOTE: &str = "earlier parts of this conversation were left out";

#[tokio::test]
async fn a_conversation_that_surely_does_not_fit_is_refused_before_the_request() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "context = { window = 1000, policy = \"fail\" }\n");
    let mut thread = Thread::new(&models);
    let events = thread.say(&"a long word ".repeat(2000)).await;
    assert_eq!(text_and_error(&events), (String::new(), Some("context_too_long".to_owned())));
    assert!(
        events.last().unwrap()["message"].as_str().unwrap().contains("at most 1000"),
        "{events:?}"
    );
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(thread.stored().await.len(), 1, "the stored thread keeps the message");
}

#[tokio::test]
async fn the_providers_own_refusal_has_the_same_code() {
    let provider = Provider::start().await;
    for more in ["", "context = { window = 100000 }\n"] {
        let models = Models::start(&provider, more);
        provider.answer(too_long());
        let (_, code) = text_and_error(&models.ask("Hello").await);
        assert_eq!(code.as_deref(), Some("context_too_long"), "{more}");
    }
    assert_eq!(provider.requests().len(), 2, "such a request is not repeated");
}

#[tokio::test]
async fn the_oldest_steps_are_left_out_and_stay_stored() {
    let provider = Provider::start().await;
    let models = Models::start(
        &provider,
        "system_prompt = \"You are brief.\"\nmax_tokens = 100\ncontext = { window = 1200, policy = \"trim\" }\n",
    );
    let mut thread = Thread::new(&models);
    for number in 1..=6 {
        says(&provider, "Yes.");
        assert_eq!(text_and_error(&thread.say(&long(number)).await), ("Yes.".to_owned(), None));
    }
    let requests = provider.requests();
    assert!(
        mentions(&requests[2], 1) && !conversation(&requests[2])[0].contains(NOTE),
        "three messages fit"
    );
    let last = conversation(&requests[5]);
    assert!(last[0].contains(NOTE) && last.last().unwrap().contains("message 6."), "{last:?}");
    assert!(!mentions(&requests[5], 1) && !mentions(&requests[5], 2));
    assert!(
        requests[5].body["messages"][0].to_string().contains("You are brief."),
        "the instructions stay"
    );
    let roles: Vec<_> = requests[5].body["messages"].as_array().unwrap()[1..]
        .iter()
        .map(|it| it["role"].clone())
        .collect();
    assert!(roles.iter().step_by(2).all(|role| role == "user"), "{roles:?}");
    assert_eq!(thread.stored().await.len(), 12);
}

#[tokio::test]
async fn after_a_refusal_shorter_requests_are_tried_a_few_times() {
    let provider = Provider::start().await;
    // The window of this model is not known.
    let models = Models::start(&provider, "context = { policy = \"trim\" }\n");
    let mut thread = Thread::new(&models);
    for number in 1..=5 {
        says(&provider, "Yes.");
        thread.say(&long(number)).await;
    }
    provider.answer(too_long());
    provider.answer(too_long());
    says(&provider, "At last.");
    let before = provider.requests().len();
    assert_eq!(text_and_error(&thread.say(&long(6)).await), ("At last.".to_owned(), None));
    let lengths: Vec<_> =
        provider.requests()[before..].iter().map(|request| conversation(request).len()).collect();
    assert!(
        lengths.len() == 3
            && lengths[0] == 11
            && lengths[0] > lengths[1]
            && lengths[1] > lengths[2],
        "{lengths:?}"
    );

    // The next request is short enough at once.
    says(&provider, "Yes.");
    let before = provider.requests().len();
    thread.say(&long(7)).await;
    assert_eq!(provider.requests().len(), before + 1);

    for _ in 0..10 {
        provider.answer(too_long());
    }
    let before = provider.requests().len();
    let (_, code) = text_and_error(&thread.say(&long(8)).await);
    assert_eq!(code.as_deref(), Some("context_too_long"));
    assert!(provider.requests().len() <= before + 4, "{}", provider.requests().len());
}

#[tokio::test]
async fn a_thread_that_has_outgrown_its_model_goes_on_and_the_client_is_told() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, "");
    let mut thread = Thread::new(&models);
    for number in 1..=5 {
        says(&provider, "Yes.");
        thread.say(&long(number)).await;
    }
    provider.answer(too_long());
    says(&provider, "At last.");
    let events = thread.say(&long(6)).await;
    assert_eq!(text_and_error(&events), ("At last.".to_owned(), None));
    let told = events.iter().filter(|event| event["name"] == "agui-server.context_trimmed");
    assert_eq!(told.count(), 1, "{events:?}");
    assert!(conversation(provider.requests().last().unwrap())[0].contains(NOTE));
    assert_eq!(thread.stored().await.len(), 12);
}

#[tokio::test]
async fn the_providers_token_counts_correct_the_estimate() {
    let provider = Provider::start().await;
    let models = Models::start(
        &provider,
        "max_tokens = 100\ncontext = { window = 4000, policy = \"trim\" }\n",
    );
    let mut thread = Thread::new(&models);
    let counted = |tokens: u64| {
        let usage =
            json!({ "choices": [], "usage": { "prompt_tokens": tokens, "completion_tokens": 1 } });
        Answer::openai(&[chunk(json!({ "content": "Yes." })), usage])
    };
    // The provider counts twice as many tokens as the estimate.
    for number in 1..=6 {
        provider.answer(counted(500 * number));
        thread.say(&long(number as usize)).await;
    }
    for number in 7..=9 {
        says(&provider, "Yes.");
        thread.say(&long(number)).await;
    }
    let requests = provider.requests();
    assert!(mentions(&requests[6], 1), "seven messages fit");
    assert!(!mentions(&requests[8], 1), "nine messages would have about 4500 tokens");
}

const SUMMARISE: &str = "max_tokens = 100\ncontext = { window = 1300, policy = \"summarise\", summariser = \"writer\" }\n";

fn with_writer(provider: &Provider) -> String {
    format!(
        "{SUMMARISE}[agents.writer]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"small\"\nbase_url = \"{}/v1\"\n",
        provider.url()
    )
}

/// Five messages, the last of which needs a summary.
async fn summarised<'m>(models: &'m Models, provider: &Provider) -> Thread<'m> {
    let mut thread = Thread::new(models);
    for number in 1..=4 {
        says(provider, "Yes.");
        thread.say(&long(number)).await;
    }
    says(provider, "The user sent long words.");
    says(provider, "Yes.");
    let events = thread.say(&long(5)).await;
    assert_eq!(text_and_error(&events), ("Yes.".to_owned(), None));
    thread
}

fn summaries(messages: &[Value]) -> Vec<&Value> {
    messages
        .iter()
        .filter(|message| message["activityType"] == "agui-server.context_summary")
        .collect()
}

#[tokio::test]
async fn old_steps_are_replaced_by_a_summary_that_later_runs_use() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, &with_writer(&provider));
    let mut thread = summarised(&models, &provider).await;
    let requests = provider.requests();
    let (writer, main) = (&requests[4], &requests[5]);
    assert_eq!((&writer.body["model"], &main.body["model"]), (&json!("small"), &json!("m")));
    assert!(mentions(writer, 1) && !mentions(writer, 5) && writer.body.get("tools").is_none());
    assert!(
        conversation(main)[0].contains("The user sent long words.")
            && !mentions(main, 1)
            && mentions(main, 5)
    );

    let stored = thread.stored().await;
    assert_eq!(stored.len(), 11, "ten messages and the summary");
    let [summary] = summaries(&stored)[..] else { panic!("{stored:?}") };
    let content = &summary["content"];
    assert_eq!(
        (&content["summary"], &content["firstMessageId"]),
        (&json!("The user sent long words."), &json!("m1"))
    );
    assert_eq!(content["lastMessageId"], stored[5]["id"], "{stored:?}");
    assert!(mentions(writer, 3) && !mentions(writer, 4) && !mentions(main, 3) && mentions(main, 4));

    // The client does not send the activity back, and the next run uses it.
    says(&provider, "Yes.");
    thread.say("And now?").await;
    let next = provider.requests().pop().unwrap();
    assert_eq!(next.body["model"], "m");
    assert!(
        conversation(&next)[0].contains("The user sent long words.")
            && !mentions(&next, 1)
            && mentions(&next, 5)
    );
}

#[tokio::test]
async fn a_branch_without_the_messages_does_not_use_the_summary() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, &with_writer(&provider));
    let mut thread = summarised(&models, &provider).await;
    thread.messages.truncate(2);
    thread.messages.push(json!({ "id": "other", "role": "user", "content": "Something else." }));
    thread.messages.push(json!({ "id": "answer", "role": "assistant", "content": "All right." }));
    says(&provider, "Yes.");
    thread.say("What was it?").await;
    let request = provider.requests().pop().unwrap();
    assert!(mentions(&request, 1) && !mentions(&request, 2));
    assert!(!conversation(&request).iter().any(|text| text.contains("The user sent long words.")));
}

#[tokio::test]
async fn a_later_summary_contains_the_earlier_one() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, &with_writer(&provider));
    let mut thread = summarised(&models, &provider).await;
    for number in 6..=7 {
        says(&provider, "Yes.");
        thread.say(&long(number)).await;
    }
    says(&provider, "The user sent more words.");
    says(&provider, "Yes.");
    thread.say(&long(8)).await;
    let requests = provider.requests();
    let (writer, main) = (&requests[8], &requests[9]);
    assert_eq!(writer.body["model"], "small");
    assert!(conversation(writer)[0].contains("The user sent long words.") && mentions(writer, 4));
    assert!(!mentions(writer, 1), "what the earlier summary stands for is not read again");
    assert!(conversation(main)[0].contains("The user sent more words.") && mentions(main, 8));
    let stored = thread.stored().await;
    let [first, second] = summaries(&stored)[..] else { panic!("{stored:?}") };
    assert_eq!(first["content"]["firstMessageId"], second["content"]["firstMessageId"]);
}

#[tokio::test]
async fn without_a_summary_the_oldest_steps_are_left_out() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, &with_writer(&provider));
    let mut thread = Thread::new(&models);
    for number in 1..=4 {
        says(&provider, "Yes.");
        thread.say(&long(number)).await;
    }
    provider.answer(Answer::new(401, ["no"]));
    // In the second step, the summariser is not asked again.
    let call = json!({ "index": 0, "id": "c", "type": "function", "function": { "name": "unknown", "arguments": "{}" } });
    provider.answer(Answer::openai(&[chunk(json!({ "tool_calls": [call] }))]));
    says(&provider, "Yes.");
    let events = thread.say(&long(5)).await;
    assert_eq!(text_and_error(&events), ("Yes.".to_owned(), None));
    let request = provider.requests().pop().unwrap();
    assert!(
        conversation(&request)[0].contains(NOTE) && !mentions(&request, 1) && mentions(&request, 5)
    );
    let models: Vec<_> =
        provider.requests().iter().skip(4).map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["small", "m", "m"]);
    assert_eq!(summaries(&thread.stored().await).len(), 0);
}
