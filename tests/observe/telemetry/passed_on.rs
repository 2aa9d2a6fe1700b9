//! `traceparent` and `tracestate` reach the provider, web services, MCP servers and remote agents, also without an exporter.

use serde_json::{Value, json};

use super::{
    Command, PARENT, TRACE_ID, call,
    provider::{Answer, Provider, Recorded},
    running::input,
    text,
};

const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";

fn remote_answer() -> Answer {
    let events = [
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r" }),
        json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r" }),
    ];
    Answer::stream(events.map(|event| format!("data: {event}\n\n")))
}

fn trace_of(request: &Recorded) -> (Option<&str>, Option<&str>) {
    let header = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap());
    (header("traceparent"), header("tracestate"))
}

struct Servers {
    provider: Provider,
    service: Provider,
    remote: Provider,
    command: Command,
}

impl Servers {
    async fn start() -> Self {
        Self::start_with("").await
    }

    async fn start_with(further: &str) -> Self {
        let (provider, service, remote) =
            (Provider::start().await, Provider::start().await, Provider::start().await);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/fake-mcp.mjs");
        let config = format!(
            "default_agent = \"assistant\"\n[log]\nformat = \"json\"\n[store]\nurl = \"memory:\"\n\
             [agents.assistant]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n\
             tools = [\"look_up\", \"mcp:fake\", \"agent:far\"]\n\
             [agents.far]\nkind = \"remote\"\nurl = \"{}/run\"\ndescription = \"Elsewhere\"\n\
             [tools.look_up]\nkind = \"http\"\nurl = \"{}/orders/{{id}}\"\ndescription = \"An order\"\n\
             [mcp.fake]\ncommand = [\"node\", {script:?}, \"plain\", \"{{folder}}/record\", \"word\"]\nrequired = true\n{further}",
            provider.url(),
            remote.url(),
            service.url(),
        );
        let command = Command::start(&config, &[]);
        let ready = format!("{}/readyz", command.process.url);
        super::running::eventually_async("the MCP server is connected", async || {
            command.client.get(&ready).send().await.unwrap().status() == 200
        })
        .await;
        Self { provider, service, remote, command }
    }

    async fn run(&self, headers: &[(&str, &str)]) {
        self.provider.answer(call("c1", "look_up", &json!({ "id": "7" })));
        self.service.answer(Answer::new(200, ["{}"]).header("content-type", "application/json"));
        self.provider.answer(call("c2", "echo", &json!({ "a": 1 })));
        self.provider.answer(call("c3", "far", &json!({ "task": "go" })));
        self.remote.answer(remote_answer());
        self.provider.answer(text("Done."));
        let events = self.command.run(&input("Go"), headers).await;
        let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").count();
        assert_eq!(
            (results, &events.last().unwrap()["type"]),
            (3, &"RUN_FINISHED".into()),
            "{events:#?}"
        );
    }

    /// The headers that the provider, the web service and the remote agent got.
    fn headers(&self) -> Vec<(Option<String>, Option<String>)> {
        let requests =
            [self.provider.requests(), self.service.requests(), self.remote.requests()].concat();
        let owned = |request: &Recorded| {
            let (parent, state) = trace_of(request);
            (parent.map(str::to_owned), state.map(str::to_owned))
        };
        requests.iter().map(owned).collect()
    }

    /// The `_meta` of the calls of the MCP server's tools.
    fn mcp_meta(&self) -> Vec<Value> {
        let record = std::fs::read_to_string(self.command.folder.path().join("record")).unwrap();
        let messages = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let calls = messages.filter(|message| message["method"] == "tools/call");
        calls.map(|message| message["params"]["_meta"].clone()).collect()
    }
}

#[tokio::test]
async fn the_trace_of_a_request_reaches_every_server_that_the_run_asks() {
    let servers = Servers::start().await;
    servers.run(&[("traceparent", PARENT), ("tracestate", STATE)]).await;
    let expected = (Some(PARENT.to_owned()), Some(STATE.to_owned()));
    assert_eq!(
        servers.headers(),
        vec![expected; 6],
        "four requests to the model, one to the service, one to the agent"
    );
    let meta = servers.mcp_meta();
    assert_eq!(
        (&meta[0]["traceparent"], &meta[0]["tracestate"]),
        (&PARENT.into(), &STATE.into()),
        "{meta:?}"
    );
    let log = servers.command.stop().await;
    let ended: Vec<_> = log.iter().filter(|line| line["message"] == "run ended").collect();
    assert_eq!((ended.len(), &ended[0]["trace_id"]), (1, &TRACE_ID.into()), "{log:#?}");
    assert!(
        log.iter().any(|line| line["trace_id"].is_null()),
        "lines outside of requests have no trace"
    );
}

#[tokio::test]
async fn a_server_can_ignore_the_traces_of_its_callers() {
    let servers = Servers::start_with("[server]\naccept_traceparent = false\n").await;
    servers.run(&[("traceparent", PARENT), ("tracestate", STATE)]).await;
    assert_eq!(servers.headers(), vec![(None, None); 6]);
    assert!(servers.command.stop().await.iter().all(|line| line["trace_id"].is_null()));
}

#[tokio::test]
async fn an_invalid_trace_is_not_passed_on() {
    let servers = Servers::start().await;
    servers.run(&[("traceparent", &PARENT.to_uppercase()), ("tracestate", STATE)]).await;
    servers.run(&[("traceparent", PARENT), ("traceparent", PARENT)]).await;
    servers.run(&[]).await;
    assert_eq!(servers.headers(), vec![(None, None); 18]);
    assert!(
        servers
            .mcp_meta()
            .iter()
            .all(|meta| meta["traceparent"].is_null() && meta["tracestate"].is_null())
    );
    assert!(servers.command.stop().await.iter().all(|line| line["trace_id"].is_null()));
}
