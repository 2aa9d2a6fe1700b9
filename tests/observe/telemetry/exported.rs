//! The spans that the command sends: a conversation with a subagent, a tool and an approval over two requests.

use serde_json::{Value, json};

use super::{
    Command, PARENT, TRACE_ID, call,
    collector::{Collector, Span},
    provider::{Answer, Provider},
    text,
};

const SECRETS: [&str; 5] =
    ["Where is order", "Ask the archive", "The archive says", "order-seven", "It was sent"];

struct Conversation {
    provider: Provider,
    service: Provider,
    collector: Collector,
    command: Command,
}

impl Conversation {
    async fn start(more: &str) -> Self {
        let (provider, service, collector) =
            (Provider::start().await, Provider::start().await, Collector::start().await);
        let model = format!(
            "kind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"",
            provider.url()
        );
        let config = format!(
            "default_agent = \"assistant\"\n[log]\nformat = \"json\"\nlevel = \"debug\"\n{more}\n\
             [agents.assistant]\n{model}\nsystem_prompt = \"You are a clerk.\"\ntools = [\"look_up\", \"agent:archivist\"]\n\
             [agents.archivist]\n{model}\ndescription = \"Knows the archive\"\n\
             [tools.look_up]\nkind = \"http\"\nurl = \"{}/orders/{{id}}\"\ndescription = \"An order\"\napproval = \"always\"\n",
            service.url(),
        );
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=abc"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ];
        let command = Command::start(&config, &environment);
        Self { provider, service, collector, command }
    }

    /// Runs the conversation, stops the command, and returns the spans and the log.
    async fn play(self) -> (Vec<Span>, Vec<Value>, Servers) {
        let Self { provider, service, collector, command } = self;
        provider.answer(call("c1", "archivist", &json!({ "task": "Ask the archive" })));
        provider.answer(text("The archive says: order-seven"));
        provider.answer(call("c2", "look_up", &json!({ "id": "order-seven" })));
        let user = json!({ "id": "m1", "role": "user", "content": "Where is order 7?" });
        let first = json!({ "threadId": "thread-1", "runId": "run-1", "messages": [user] });
        let headers = [("traceparent", PARENT), ("tracestate", "rojo=1")];
        let events = command.run(&first, &headers).await;
        let interrupt = &events.last().unwrap()["outcome"]["interrupts"][0]["id"];
        assert!(interrupt.is_string(), "{events:#?}");
        service.answer(
            Answer::new(200, [r#"{"state":"It was sent"}"#])
                .header("content-type", "application/json"),
        );
        provider.answer(text("It was sent."));
        let answer = json!({ "interruptId": interrupt, "status": "resolved", "payload": { "approved": true } });
        let second =
            json!({ "threadId": "thread-1", "runId": "run-2", "messages": [], "resume": [answer] });
        let events = command.run(&second, &headers).await;
        assert_eq!(events.last().unwrap()["outcome"]["type"], "success", "{events:#?}");
        let log = command.stop().await;
        (collector.spans(), log, Servers { provider, service, collector })
    }
}

/// The servers of a conversation that has ended.
struct Servers {
    provider: Provider,
    service: Provider,
    collector: Collector,
}

/// The names of the spans below a parent in the order of their beginnings, as a tree.
fn tree(spans: &[Span], parent: &str) -> Value {
    let mut children: Vec<_> = spans.iter().filter(|span| span.parent_id == parent).collect();
    children.sort_by_key(|span| span.begin);
    children.iter().map(|span| json!([span.name, tree(spans, &span.span_id)])).collect()
}

fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    let mut found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    found.sort_by_key(|span| span.begin);
    found
}

#[tokio::test]
async fn a_conversation_is_a_tree_of_spans_in_the_trace_of_its_requests() {
    let (spans, log, servers) = Conversation::start("").await.play().await;
    let parent = &PARENT[36..52];
    let expected = json!([
        [
            "POST /send-message",
            [[
                "invoke_agent assistant",
                [
                    ["chat m", []],
                    ["execute_tool archivist", [["invoke_agent archivist", [["chat m", []]]]]],
                    ["chat m", []],
                ]
            ]]
        ],
        [
            "POST /send-message",
            [["invoke_agent assistant", [["execute_tool look_up", []], ["chat m", []]]]]
        ],
    ]);
    assert_eq!(tree(&spans, parent), expected, "{spans:#?}");
    assert!(
        spans.iter().all(|span| span.trace_id == TRACE_ID
            && span.state == "rojo=1"
            && span.begin <= span.end)
    );
    let resource = &spans[0].resource;
    assert_eq!(resource["service.name"], "agui-server");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(servers.collector.headers().iter().all(|headers| headers["x-collector-key"] == "abc"));

    let http = named(&spans, "POST /send-message");
    assert_eq!((http[0].kind, &http[0].attributes["http.response.status_code"]), (2, &200.into()));
    assert_eq!(http[0].attributes["http.route"], "/send-message");
    let agents = named(&spans, "invoke_agent assistant");
    for (agent, outcome) in agents.iter().zip(["interrupt", "success"]) {
        assert_eq!(agent.attributes["gen_ai.conversation.id"], "thread-1");
        assert_eq!((&agent.attributes["agui.outcome"], agent.kind), (&outcome.into(), 1));
    }
    assert_eq!(agents[0].attributes["gen_ai.usage.input_tokens"], 300);
    let chat = named(&spans, "chat m")[0];
    assert_eq!((chat.kind, &chat.attributes["gen_ai.provider.name"]), (3, &"openai".into()));
    assert_eq!(chat.attributes["gen_ai.usage.output_tokens"], 7);
    assert_eq!(chat.attributes["gen_ai.response.finish_reasons"], json!(["tool_call"]));
    assert_eq!(chat.attributes["agui.provider.request_id"], "req-of-provider");
    assert_eq!(named(&spans, "execute_tool look_up")[0].attributes["gen_ai.tool.call.id"], "c2");

    // Each server gets the id of the span that calls it.
    let chats = named(&spans, "chat m");
    let sent: Vec<_> = servers
        .provider
        .requests()
        .iter()
        .map(|request| request.headers["traceparent"].clone())
        .collect();
    let expected: Vec<_> =
        chats.iter().map(|chat| format!("00-{TRACE_ID}-{}-01", chat.span_id)).collect();
    assert_eq!(sent, expected);
    let tool = named(&spans, "execute_tool look_up")[0];
    assert_eq!(
        servers.service.requests()[0].headers["traceparent"],
        format!("00-{TRACE_ID}-{}-01", tool.span_id)
    );
    let ended: Vec<_> = log.iter().filter(|line| line["message"] == "run ended").collect();
    assert_eq!((ended.len(), &ended[0]["trace_id"]), (2, &TRACE_ID.into()));
    let calls = log.iter().filter(|line| line["message"] == "model call ended");
    assert!(
        calls.clone().count() == 4 && calls.clone().all(|line| line["trace_id"] == TRACE_ID),
        "{log:#?}"
    );
    // Spans have no texts of messages, and log lines have no spans.
    let all = format!("{spans:?}");
    assert!(SECRETS.iter().all(|secret| !all.contains(secret)), "{all}");
    assert!(log.iter().all(|line| !line.to_string().contains("gen_ai")));
}

#[tokio::test]
async fn content_is_in_spans_if_the_configuration_says_so() {
    let (spans, ..) = Conversation::start("[telemetry]\ncontent = true").await.play().await;
    let all = format!("{spans:?}");
    assert!(SECRETS.iter().all(|secret| all.contains(secret)), "{all}");
    let json_of = |span: &Span, name: &str| -> Value {
        serde_json::from_str(span.attributes[name].as_str().unwrap()).unwrap()
    };
    let chats = named(&spans, "chat m");
    let part = |text: &str| json!([{ "type": "text", "content": text }]);
    assert_eq!(json_of(chats[0], "gen_ai.system_instructions"), part("You are a clerk."));
    let user = json!([{ "role": "user", "parts": part("Where is order 7?") }]);
    assert_eq!(json_of(chats[0], "gen_ai.input.messages"), user);
    let called = json!({ "type": "tool_call", "id": "c2", "name": "look_up", "arguments": { "id": "order-seven" } });
    let answer = json!([{ "role": "assistant", "parts": [called], "finish_reason": "tool_call" }]);
    assert_eq!(json_of(chats[2], "gen_ai.output.messages"), answer);
    let tool = named(&spans, "execute_tool look_up")[0];
    assert_eq!(json_of(tool, "gen_ai.tool.call.arguments"), json!({ "id": "order-seven" }));
    assert_eq!(json_of(tool, "gen_ai.tool.call.result"), json!({ "state": "It was sent" }));
}

#[tokio::test]
async fn a_failed_call_and_its_run_are_errors() {
    let talk = Conversation::start("").await;
    talk.provider.answer(Answer::new(401, ["no"]));
    let events = talk.command.run(&super::running::input("Hello"), &[]).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_ERROR");
    talk.command.stop().await;
    let spans = talk.collector.spans();
    for name in ["chat m", "invoke_agent assistant"] {
        let span = named(&spans, name)[0];
        assert_eq!(
            (span.status, &span.attributes["error.type"]),
            (2, &"model_unauthorized".into()),
            "{span:?}"
        );
    }
    let roots: Vec<_> = spans.iter().filter(|span| span.parent_id.is_empty()).collect();
    assert_eq!((roots.len(), &*roots[0].name), (1, "POST /send-message"), "{spans:#?}");
}

#[tokio::test]
async fn the_variables_of_opentelemetry_turn_traces_off() {
    for variable in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
    ] {
        let collector = Collector::start().await;
        let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()), variable];
        let command =
            Command::start("[log]\nformat = \"json\"\n[agents.e]\nkind = \"echo\"\n", &environment);
        command.run(&super::running::input("Hello"), &[]).await;
        command.stop().await;
        assert!(collector.spans().is_empty(), "{variable:?}");
    }
}
