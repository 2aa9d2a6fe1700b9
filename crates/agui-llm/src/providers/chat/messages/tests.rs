use crate::{
    Block, ModelOptions, ModelReasoning, ModelRequest, ModelStep,
    providers::chat::{
        request,
        request::tests::{answer, body, data, file, known, messages, options, result, user},
    },
    transport::ProviderRequest,
};
use agui_protocol::{ContentPart, PartSource, ToolCall};
use serde_json::{Value, json};

#[test]
fn parts_are_sent_as_the_server_takes_them_and_others_are_told() {
    let mut named = data("application/pdf");
    named.metadata = Some(json!({"filename": "a.pdf"}));
    let url = PartSource::Url { value: "https://a/b.png".to_owned(), mime_type: None };
    let csv = PartSource::Data { value: "YSxi".to_owned(), mime_type: "text/csv".to_owned() };
    let parts = vec![
        ContentPart::text("see"),
        ContentPart::Image(data("image/png; x=y")),
        ContentPart::image(url.clone()),
        ContentPart::Audio(data("audio/x-wav")),
        ContentPart::Audio(data("audio/mpeg")),
        ContentPart::Document(named),
        ContentPart::Document(csv.into()),
        ContentPart::Document(file(Some("openai"))),
        ContentPart::Audio(data("audio/ogg")),
        ContentPart::Video(data("video/mp4")),
        ContentPart::Document(data("application/zip")),
        ContentPart::Document(url.into()),
        ContentPart::Document(file(Some("anthropic"))),
    ];
    let request = ModelRequest { steps: vec![ModelStep::User(parts)], ..ModelRequest::default() };
    let detail = ModelOptions { image_detail: Some("low".to_owned()), ..options() };
    let ProviderRequest { json: mut sent, skipped, .. } =
        request::body(&detail, &known("compatible"), &request);
    let sent = sent["messages"][0]["content"].take();
    let told = |at: usize| sent[at]["text"].as_str().unwrap_or_default();
    assert_eq!(sent[0], json!({"type": "text", "text": "see"}));
    let image = json!({"url": "data:image/png;base64,AA==", "detail": "low"});
    assert_eq!(sent[1], json!({"type": "image_url", "image_url": image}));
    assert_eq!(sent[2]["image_url"]["url"], "https://a/b.png");
    assert_eq!(
        sent[3],
        json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}})
    );
    assert_eq!(sent[4]["input_audio"]["format"], "mp3");
    let pdf = json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="});
    assert_eq!(sent[5], json!({"type": "file", "file": pdf}));
    assert_eq!(told(6), "Attached document (text/csv):\na,b\n(End of the attachment.)");
    assert_eq!(sent[7], json!({"type": "file", "file": {"file_id": "file-1"}}));
    for (at, part) in
        [(8, "audio (audio/ogg)"), (9, "video (video/mp4)"), (10, "document (application/zip)")]
    {
        assert!(
            told(at).starts_with(&format!("(Attached: {part}. You cannot read it: ")),
            "{}",
            told(at)
        );
    }
    let reasons: Vec<_> =
        skipped.iter().map(|skipped| (skipped.kind, skipped.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            ("audio", "this model takes audio as WAV or MP3 only"),
            ("video", "this model takes no videos"),
            ("document", "this model takes no documents of this type"),
            ("document", "this model takes documents as data only, not as URLs"),
            ("document", "this model takes no documents of this type"),
        ]
    );
    let url = PartSource::Url { value: "https://a/b".to_owned(), mime_type: None };
    let step = || {
        vec![ModelStep::User(vec![
            ContentPart::Document(url.clone().into()),
            ContentPart::image(url.clone()),
        ])]
    };
    let mistral = messages(step(), "mistral");
    assert_eq!(mistral[0]["content"][0]["document_url"], "https://a/b");
    assert_eq!(mistral[0]["content"][1]["image_url"]["url"], "https://a/b");
    let deepseek = messages(step(), "deepseek")[0]["content"].take();
    assert_eq!(deepseek.as_str().unwrap().matches("You cannot read it").count(), 2, "{deepseek}");
}

#[test]
fn invalid_ids_and_arguments_of_calls_are_replaced() {
    let calls =
        ["", "{", "[1]", "{\"a\": 1}"].map(|text| Block::Call(ToolCall::new("a:b", "f", text)));
    let sent = messages(vec![answer(calls)], "compatible");
    assert_eq!(sent[0]["content"], Value::Null);
    let arguments: Vec<_> =
        (0..4).map(|at| sent[0]["tool_calls"][at]["function"]["arguments"].clone()).collect();
    assert_eq!(arguments, ["{}", "{}", "{}", "{\"a\": 1}"]);
    assert_eq!(sent[0]["tool_calls"][0]["id"], crate::providers::wire::call_id(&"a:b".into()));
    let mut call = ToolCall::new("a", "f", "{}");
    call.encrypted_value = Some("opaque".to_owned());
    let sent = messages(vec![answer([Block::Call(call)])], "compatible");
    assert!(sent[0]["tool_calls"][0].get("extra_content").is_none());
}

#[test]
fn ids_of_calls_have_the_length_that_the_server_requires() {
    let call = |id: &str| Block::Call(ToolCall::new(id, "f", "{}"));
    let results = ModelStep::ToolResults(vec![
        result("call_123456789", "1"),
        result("abcDEF123", "2"),
        result("call_2", "3"),
    ]);
    let sent = messages(
        vec![answer([call("call_123456789"), call("abcDEF123"), call("call_2")]), results],
        "mistral",
    );
    let calls = sent
        .as_array()
        .unwrap()
        .iter()
        .find(|message| message["role"] == "assistant")
        .unwrap()["tool_calls"]
        .clone();
    let ids: Vec<_> = (0..3).map(|at| calls[at]["id"].as_str().unwrap().to_owned()).collect();
    assert!(
        ids.iter().all(|id| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())),
        "{ids:?}"
    );
    assert_eq!(ids[1], "abcDEF123");
    assert_ne!(ids[0], ids[2]);
    let answered: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["tool_call_id"].as_str())
        .collect();
    assert_eq!(answered, ids);
}

#[test]
fn reasoning_returns_in_the_servers_own_member() {
    let thought = |artefact: Option<&str>, provider: Option<&str>| {
        Block::Reasoning(ModelReasoning {
            text: "hm".to_owned(),
            artefact: artefact.map(str::to_owned),
            redacted: false,
            provider: provider.map(str::to_owned),
        })
    };
    let call = || Block::Call(ToolCall::new("a", "f", "{}"));
    let text = || Block::Text("a".to_owned());
    let sent = |profile: &str, blocks: [Block; 2]| {
        let messages = messages(vec![user("hi"), answer(blocks)], profile);
        messages
            .as_array()
            .unwrap()
            .iter()
            .find(|message| message["role"] == "assistant")
            .unwrap()
            .clone()
    };
    for (profile, member) in [
        ("zai", "reasoning_content"),
        ("llama-cpp", "reasoning_content"),
        ("vllm", "reasoning"),
        ("ollama", "reasoning"),
    ] {
        assert_eq!(sent(profile, [thought(None, None), call()])[member], "hm", "{profile}");
        assert_eq!(
            sent(profile, [thought(None, Some("openai")), call()])[member],
            "hm",
            "{profile}"
        );
        assert_eq!(
            sent(profile, [thought(Some("x"), None), call()]).get(member),
            None,
            "{profile}"
        );
        assert_eq!(
            sent(profile, [thought(None, Some(profile)), call()])[member],
            "hm",
            "{profile}"
        );
        for other in ["anthropic", "deepseek"] {
            assert_eq!(
                sent(profile, [thought(None, Some(other)), call()]).get(member),
                None,
                "{profile}, of {other}"
            );
        }
        assert_eq!(sent(profile, [thought(None, None), text()]).get(member), None, "{profile}");
    }
    assert_eq!(sent("compatible", [thought(None, None), call()]).as_object().unwrap().len(), 3);
    // DeepSeek requires reasoning in each message, also in a message of another model.
    assert_eq!(sent("deepseek", [thought(None, None), text()])["reasoning_content"], "hm");
    assert_eq!(
        sent("deepseek", [thought(None, Some("anthropic")), text()])["reasoning_content"],
        ""
    );
    let off = ModelRequest {
        steps: vec![answer([text()])],
        thinking: Some(false),
        ..ModelRequest::default()
    };
    assert!(!body(&options(), "deepseek", &off).to_string().contains("reasoning_content"));
    let details = r#"[{"type":"reasoning.text","text":"hm","signature":"s"}]"#;
    for block in [call(), text()] {
        let returned = sent("openrouter", [thought(Some(details), Some("openai")), block]);
        assert_eq!(returned["reasoning_details"].to_string(), details);
    }
    let parts = sent("mistral", [thought(None, None), call()]);
    assert_eq!(
        parts["content"],
        json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}])
    );
}

#[test]
fn messages_are_merged_and_ordered_for_a_chat_template() {
    let request = ModelRequest {
        system: vec!["one".to_owned(), "two".to_owned()],
        current: vec!["noon".to_owned(), "state".to_owned()],
        steps: vec![
            answer([Block::Text("hello".to_owned())]),
            user("a"),
            ModelStep::Instructions("three".to_owned()),
            user("b"),
            answer([Block::Call(ToolCall::new("c", "f", "{}"))]),
            ModelStep::ToolResults(vec![result("c", "r")]),
            ModelStep::User(vec![ContentPart::text("d"), ContentPart::Image(data("image/png"))]),
            user("e"),
            answer([Block::Text("f".to_owned())]),
            answer([Block::Text("g".to_owned()), Block::Call(ToolCall::new("h", "f", "{}"))]),
            ModelStep::ToolResults(vec![result("h", "r")]),
        ],
        ..ModelRequest::default()
    };
    let call = |id: &str| json!([{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let told = "[Note of the server: you called these tools, and gave no answer after them.]\nf with {} returned: r";
    let expected = json!([
        {"role": "system", "content": "one\n\ntwo\n\nthree"},
        {"role": "user", "content": "(The conversation begins.)"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": [
            {"type": "text", "text": format!("a\n\nb\n\n{told}")},
            {"type": "text", "text": "d"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "text", "text": "e"},
            {"type": "text", "text": "noon\n\nstate"},
        ]},
        {"role": "assistant", "content": "f\n\ng", "tool_calls": call("h")},
        {"role": "tool", "tool_call_id": "h", "content": "r"},
    ]);
    assert_eq!(body(&options(), "vllm", &request)["messages"], expected);
    let ended = vec![user("a"), answer([Block::Text("b".to_owned())])];
    assert_eq!(
        messages(ended.clone(), "llama-cpp")[2],
        json!({"role": "user", "content": "Continue."})
    );
    assert_eq!(messages(ended.clone(), "compatible").as_array().unwrap().len(), 2);
    let request =
        ModelRequest { steps: ended, current: vec!["noon".to_owned()], ..ModelRequest::default() };
    assert_eq!(
        body(&options(), "mistral", &request)["messages"][2],
        json!({"role": "user", "content": "noon"})
    );
}

#[test]
fn images_of_a_result_follow_in_a_message_that_names_the_tool() {
    let image = || ContentPart::Image(data("image/png"));
    let results = || {
        vec![
            result("a", vec![ContentPart::text("one "), image(), ContentPart::text("two")]),
            result("b", vec![image()]),
            result("c", vec![ContentPart::Video(data("video/mp4"))]),
            result("d", Vec::new()),
        ]
    };
    let sent_image =
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let video = "(Attached: video (video/mp4). You cannot read it: this model takes no videos.)";
    let expected = json!([
        {"role": "tool", "tool_call_id": "a", "content": "one two"},
        {"role": "tool", "tool_call_id": "b", "content": "(The result follows in the next message.)"},
        {"role": "tool", "tool_call_id": "c", "content": video},
        {"role": "tool", "tool_call_id": "d", "content": ""},
        {"role": "user", "content": [
            {"type": "text", "text": "Returned by shot (a):"}, sent_image,
            {"type": "text", "text": "Returned by shot (b):"}, sent_image,
        ]},
    ]);
    assert_eq!(messages(vec![ModelStep::ToolResults(results())], "compatible"), expected);
    // A chat template refuses a user's message after results.
    let template = messages(vec![ModelStep::ToolResults(results())], "vllm");
    assert!(
        template[1]["content"]
            .as_str()
            .unwrap()
            .contains("this model takes no attachments of tools"),
        "{template}"
    );
}

#[test]
fn no_message_of_a_user_follows_results_where_the_server_refuses_it() {
    let call = || answer([Block::Call(ToolCall::new("aaaaaaaa1", "f", "{}"))]);
    let results = || {
        ModelStep::ToolResults(vec![result(
            "aaaaaaaa1",
            vec![ContentPart::Image(data("image/png"))],
        )])
    };
    let roles = |sent: &Value| {
        let roles: Vec<_> = sent
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        roles.join(" ")
    };
    for profile in ["mistral", "vllm"] {
        let sent = |steps: Vec<ModelStep>| {
            let request =
                ModelRequest { steps, current: vec!["noon".to_owned()], ..ModelRequest::default() };
            body(&options(), profile, &request)["messages"].take()
        };
        let after_results = sent(vec![user("hi"), call(), results()]);
        assert_eq!(roles(&after_results), "user assistant tool", "{profile}");
        assert_eq!(after_results[0]["content"], "hi\n\nnoon");
        assert!(
            after_results[2]["content"]
                .as_str()
                .unwrap()
                .contains("this model takes no attachments of tools")
        );
        // No message with the model's role has a sentence of the server: it would come back as the model's own.
        let spoken = sent(vec![user("hi"), call(), results(), user("stop")]).to_string();
        assert!(
            !spoken.contains("assistant") && !spoken.contains("tool_call"),
            "{profile}: {spoken}"
        );
        for part in ["hi", "f with {} returned: (Attached", "stop", "noon"] {
            assert!(spoken.contains(part), "{profile}: {spoken}");
        }
        let without_user = sent(vec![call(), results()]);
        assert_eq!(roles(&without_user), "user assistant tool", "{profile}");
        assert_eq!(without_user[0]["content"], "noon");
    }
}

#[test]
fn a_message_without_content_is_not_empty() {
    let empty = |parts: Vec<ContentPart>| {
        messages(vec![ModelStep::User(parts)], "compatible")[0]["content"].take()
    };
    assert_eq!(empty(vec![ContentPart::text("")]), "(This message is empty.)");
    assert_eq!(empty(Vec::new()), "(This message is empty.)");
}
