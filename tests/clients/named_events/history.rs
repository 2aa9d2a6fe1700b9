//! Clients that send their whole list without ids, as the guide's front ends show it, and the
//! demo's answers.

use serde_json::{Value, json};

use super::{CHAT, Frame, TestServer, named, names, on, said, thread, user};

impl TestServer {
    async fn stored(&self, thread: &str) -> Vec<Value> {
        let url = format!("{}/threads/{thread}", self.process.url);
        let thread: Value = self.client.get(url).send().await.unwrap().json().await.unwrap();
        thread["messages"].as_array().unwrap().clone()
    }
}

/// A page that shows texts alone, and sends all of them with each request.
#[derive(Default)]
struct Page {
    list: Vec<Value>,
    thread: Option<String>,
}

impl Page {
    async fn say(&mut self, server: &TestServer, content: impl Into<Value>) -> Vec<Frame> {
        self.list.push(json!({ "role": "user", "content": content.into() }));
        let frames =
            server.ask(CHAT, &json!({ "messages": self.list, "thread_id": self.thread })).await;
        self.thread = Some(thread(&frames));
        let text = said(&frames);
        if !text.is_empty() {
            self.list.push(json!({ "role": "assistant", "content": text }));
        }
        frames
    }
}

#[tokio::test]
async fn a_whole_list_without_ids_continues_the_thread() {
    let (server, mut page) = (TestServer::demo(), Page::default());
    for stored in [4, 8, 10] {
        page.say(
            &server,
            if stored == 10 { "hello" } else { "What's the weather in Tokyo today?" },
        )
        .await;
        assert_eq!(
            server.stored(page.thread.as_ref().unwrap()).await.len(),
            stored,
            "{:?}",
            page.list
        );
    }
}

#[tokio::test]
async fn a_whole_list_with_answers_to_interrupts_continues_the_thread() {
    let (server, mut page) = (TestServer::demo(), Page::default());
    page.say(&server, "approve").await;
    page.say(&server, "well").await;
    assert!(said(&page.say(&server, "approve").await).contains("sent to ada"));
    let before = server.stored(page.thread.as_ref().unwrap()).await;
    assert_eq!(said(&page.say(&server, "hello").await), "Hello! How can I help you?");
    let after = server.stored(page.thread.as_ref().unwrap()).await;
    assert_eq!((&after[..before.len()], after.len()), (&before[..], before.len() + 2));

    // Decisions in the list are answers of earlier requests.
    let frames = page.say(&server, "approve two").await;
    let actions = frames.last().unwrap().1["action_requests"].as_array().unwrap().clone();
    let decision = |action: &Value| json!({ "actionId": action["actionId"], "type": "approve" });
    page.say(&server, json!({ "decisions": actions.iter().map(decision).collect::<Vec<_>>() }))
        .await;
    let before = server.stored(page.thread.as_ref().unwrap()).await;
    page.say(&server, "hello").await;
    assert_eq!(server.stored(page.thread.as_ref().unwrap()).await.len(), before.len() + 2);
}

/// A question that comes without a text of the agent, so that the page has nothing between the person's texts.
#[tokio::test]
async fn an_unclear_answer_in_a_whole_list_asks_again_although_the_question_has_no_text() {
    let script = r#"
[[answer]]
when.user = '^mail'
play = [{ call = "send", args = {} }, { interrupts = [{ call = "send", message = "Send it?" }] }]
[[answer]]
when.replies = "send"
play = [{ result_of = "send", approved = "sent", declined = "not sent" }, { text = "It was {results}." }]
[[answer]]
play = [{ text = "Hello!" }]
"#;
    let (server, mut page) = (TestServer::from_script(script), Page::default());
    page.say(&server, "hi").await;
    let asked = page.say(&server, "mail it").await;
    let question = named(&asked, "interrupt")[0]["content"].as_str().unwrap().to_owned();
    let before = server.stored(page.thread.as_ref().unwrap()).await;
    for unclear in ["well", "perhaps"] {
        let frames = page.say(&server, unclear).await;
        let again = named(&frames, "interrupt");
        assert!(again[0]["content"].as_str().unwrap().ends_with(&question), "{frames:?}");
        assert_eq!(said(&frames), "");
        assert_eq!(server.stored(page.thread.as_ref().unwrap()).await, before);
    }
    assert_eq!(said(&page.say(&server, "yes").await), "It was sent.");
    let after = server.stored(page.thread.as_ref().unwrap()).await;
    assert_eq!(
        (&after[..before.len()], after.len()),
        (&before[..], before.len() + 2),
        "the answers are no messages"
    );

    // The same from a page that gives its messages ids.
    let mut list = vec![json!({ "id": "u1", "role": "user", "content": "mail it" })];
    let thread = thread(&server.ask(CHAT, &json!({ "messages": list })).await);
    for (answer, asks) in [("well", true), ("yes", false)] {
        list.truncate(1);
        list.push(json!({ "id": answer, "role": "user", "content": answer }));
        let frames = server.ask(CHAT, &json!({ "messages": list, "thread_id": thread })).await;
        assert_eq!(!named(&frames, "interrupt").is_empty(), asks, "{frames:?}");
    }
}

#[tokio::test]
async fn two_messages_of_a_run_are_told_apart() {
    let server = TestServer::demo();
    let frames = server.ask(CHAT, &user("What's the weather in Tokyo today?")).await;
    assert_eq!(said(&frames), "Let me check\n\nTokyo is sunny today with a temperature of 25°C.");
    assert!(named(&frames, "message")[0]["content"] == "Let me check", "{frames:?}");
}

#[tokio::test]
async fn the_demo_answers_every_prompt_of_the_documents() {
    let server = TestServer::demo();
    let image = json!([
        { "type": "text", "text": "What do you see in this image?" },
        { "type": "image", "url": "https://example.com/photo.jpg" },
    ]);
    let prompts = [
        "Hello",
        "Hello!",
        "你好",
        "What's the weather like in Beijing today?",
        "今天北京天气怎么样?",
        "What's the weather like in Beijing?",
        "北京天气怎么样?",
        "What's the weather in New York?",
        "Help me search for report files locally",
        "帮我搜索本地的报告文件",
        "Delete all temporary files",
        "删除所有临时文件",
        "Solve this step by step...",
        "Describe this image",
        "Describe this",
        "What's in this image?",
        "ACCEPTED",
        "Please also include humidity data in the analysis.",
    ];
    for prompt in prompts.into_iter().map(Value::from).chain([image]) {
        let answer = said(&server.ask(CHAT, &user(prompt.clone())).await);
        let is_help = answer.contains("demo agent without a model")
            || answer.contains("没有模型的演示 Agent");
        assert!(!answer.is_empty() && !is_help, "{prompt}: {answer}");
    }
}

#[tokio::test]
async fn the_demo_thinks_as_the_request_says() {
    let server = TestServer::demo();
    for (prompt, by_default) in
        [("Solve this step by step...", false), ("你好", false), ("think about lunch", true)]
    {
        for (asked, thinks) in
            [(json!(null), by_default), (json!(true), true), (json!(false), false)]
        {
            let mut body = user(prompt);
            body["enable_deep_thinking"] = asked.clone();
            let frames = server.ask(CHAT, &body).await;
            assert_eq!(names(&frames).contains(&"reasoning_start"), thinks, "{prompt} {asked}");
            assert_eq!(named(&frames, "reasoning_start").len(), usize::from(thinks));
            assert!(!said(&frames).is_empty());
        }
    }
    // An answer to an interrupt needs no thought of its own.
    let first = server.ask(CHAT, &user("approve")).await;
    let mut body = on(&thread(&first), "approve");
    body["enable_deep_thinking"] = true.into();
    assert!(said(&server.ask(CHAT, &body).await).contains("sent to ada"));
}

/// `cargo doc` finds the guide's names by these aliases, and a search in the file to copy.
#[test]
fn the_names_of_the_guide_are_found_in_the_documentation() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut sources = String::new();
    for folder in ["src/clients/named_events", "examples/named_events"] {
        for file in std::fs::read_dir(format!("{root}/{folder}"))
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| path.is_file())
        {
            sources += &std::fs::read_to_string(file).unwrap();
        }
    }
    for name in [
        "_make_event",
        "make_ag_ui_event",
        "to_ag_ui_start_event",
        "to_ag_ui_args_event",
        "to_ag_ui_end_event",
        "to_ag_ui_event",
        "from_langraph_interrupt",
        "to_langraph_resume",
        "create_hitl_interrupt_event",
        "extract_reasoning_from_content_blocks",
        "HITLDecisionType",
        "HITLDecision",
        "HITLRequest",
        "HITLResponse",
        "HITLState",
        "ToolCall",
        "ToolResult",
        "ToolCallTracker",
        "ReasoningTracker",
    ] {
        assert!(sources.contains(&format!("#[doc(alias = \"{name}\")]")), "{name} is no alias");
    }
    for name in [
        "fn from_langchain",
        "fn to_langchain_format",
        "fn start_reasoning",
        "fn end_reasoning",
        "fn start_tool_call",
        "fn append_args",
        "fn complete_tool_call",
        "ActionRequest",
        "ReviewConfig",
        "AgentMessage",
        "ChatMessage",
        "MessageRole",
        "TextBlock",
        "ImageBlock",
        "AudioBlock",
        "ReasoningBlock",
        "ReasoningState",
        "ToolCallState",
    ] {
        assert!(sources.contains(name), "{name} does not exist");
    }
}
