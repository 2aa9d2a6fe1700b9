//! An MCP server made with the official SDK (`tests/js/sdk-mcp.mjs`): headers of the caller, access tokens, progress,
//! questions to a person, resources and prompts.

use std::{path::PathBuf, process::Stdio, time::Duration};

use agui_server::{
    Server,
    agent::Principal,
    auth::ApiKey,
    llm::{LlmAgent, Model, ModelRequest, ModelStream},
    protocol::{Event, MessageContent},
    tools::{
        Approval, ApprovalRule, Repeat, ToolContext, ToolError, Toolbox,
        mcp::{McpApproval, McpServer, McpServerOptions},
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{
    support::running::{Running, TEST_TIMEOUT, events, eventually},
    tools::support::{McpFixture, context_of, error_message, text},
};

fn sdk_script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/js/sdk-mcp.mjs")
}

/// A server over HTTP that runs until it is dropped.
struct SdkServer {
    address: String,
    _process: Child,
}

impl SdkServer {
    async fn start(mode: &str) -> Self {
        let mut process = Command::new("node")
            .args([sdk_script().to_str().unwrap(), mode])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port =
            tokio::time::timeout(TEST_TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
        Self { address: format!("http://127.0.0.1:{port}"), _process: process }
    }

    fn options(&self) -> McpServerOptions {
        McpServerOptions::url(format!("{}/mcp", self.address))
    }

    async fn connect(&self, change: impl FnOnce(&mut McpServerOptions)) -> McpFixture {
        let mut options = self.options();
        change(&mut options);
        McpFixture::new(options).ready().await
    }

    async fn get(&self, path: &str) -> String {
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        client.get(format!("{}{path}", self.address)).send().await.unwrap().text().await.unwrap()
    }

    /// Returns the requests to the token endpoint.
    async fn record(&self) -> Vec<Value> {
        serde_json::from_str(&self.get("/record").await).unwrap()
    }
}

async fn call_in(
    mcp: &McpFixture,
    tool: &str,
    arguments: Value,
    cx: &ToolContext,
) -> Result<MessageContent, ToolError> {
    let arguments = arguments.as_object().unwrap().clone();
    tokio::time::timeout(TEST_TIMEOUT, mcp.tool(tool).tool.call(arguments, cx)).await.unwrap()
}

#[tokio::test]
async fn each_call_in_a_shared_session_has_the_headers_of_its_caller() {
    let server = SdkServer::start("http").await;
    let mcp = server
        .connect(|options| {
            options.headers.insert("X-App".to_owned(), "agui".into());
            options.headers_from = serde_json::from_value(json!({
                "X-User": "principal",
                "X-Tenant": { "from": "claim:tenant", "required": true },
                "X-Trace": "header:x-trace"
            }))
            .unwrap();
        })
        .await;
    let caller = |name: &str, tenant: &str| {
        let claims = json!({ "tenant": tenant }).as_object().unwrap().clone();
        context_of(Some(Principal::new("jwt:id", name).with_claims(claims)), &[("x-trace", name)])
    };
    let (ada, bob) = (caller("ada", "acme"), caller("bob", "umbrella"));
    let calls =
        (0..20).map(|n| call_in(&mcp, "headers", json!({}), if n % 2 == 0 { &ada } else { &bob }));
    for (n, result) in futures::future::join_all(calls).await.into_iter().enumerate() {
        let headers: Value = serde_json::from_str(&text(result)).unwrap();
        let (name, tenant) = if n % 2 == 0 { ("ada", "acme") } else { ("bob", "umbrella") };
        let expected =
            [("x-app", "agui"), ("x-user", name), ("x-tenant", tenant), ("x-trace", name)];
        for (header, value) in expected {
            assert_eq!(headers[header], value, "{headers}");
        }
    }
    // A required value that is missing refuses the call; the model cannot bring it.
    let outsider = context_of(Some(Principal::new("key", "eve")), &[]);
    let refused = call_in(&mcp, "headers", json!({ "X-Tenant": "acme" }), &outsider).await;
    assert_eq!(
        error_message(refused),
        "the tool was not called: the request has no claim \"tenant\" of a token"
    );
    // Values that a header cannot have are refused, and not sent in another form.
    let forger = caller("eve\r\nX-Tenant: acme", "x");
    let refused = error_message(call_in(&mcp, "headers", json!({}), &forger).await);
    assert!(refused.contains("characters that a header cannot have"), "{refused}");
}

#[tokio::test]
async fn a_request_of_a_page_has_the_headers_of_its_caller() {
    let server = SdkServer::start("http").await;
    let mcp = server
        .connect(|options| {
            options.apps = true;
            options
                .headers_from
                .insert("X-User".to_owned(), serde_json::from_value(json!("principal")).unwrap());
        })
        .await;
    let keys = [ApiKey::from_secret("ada", "open sesame"), ApiKey::from_secret("eve", "let me in")];
    let agent = LlmAgent::new(NoModel).tools(Toolbox::new().source(mcp.server.clone()));
    let running = Running::start(Server::new().agent("a", agent).api_keys(keys)).await;
    let call =
        json!({ "serverHash": "test", "method": "tools/call", "params": { "name": "headers" } });
    let input = json!({ "threadId": "t", "runId": "r", "messages": [], "forwardedProps": { "__proxiedMCPRequest": call } });
    for (secret, user) in [("open sesame", "ada"), ("let me in", "eve")] {
        let response =
            running.post("/send-message").bearer_auth(secret).json(&input).send().await.unwrap();
        let answered = events(&response.text().await.unwrap());
        let headers = answered[1]["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(headers).unwrap()["x-user"], user);
    }
}

struct NoModel;

impl Model for NoModel {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        panic!("a request of a page asks no model")
    }
}

async fn connect_with_oauth(server: &SdkServer, token_path: &str) -> McpFixture {
    // PATH is in every environment, and has characters that need escapes.
    let text = format!(
        "url = \"{0}/mcp\"\n[oauth]\ntoken_url = \"{0}{token_path}\"\nclient_id = \"agui\"\n\
         client_secret_env = \"PATH\"\nscopes = [\"read\", \"write\"]\n",
        server.address
    );
    McpFixture::new(toml::from_str(&text).unwrap()).ready().await
}

async fn token_in_use(mcp: &McpFixture) -> String {
    let headers = text(mcp.call("headers", json!({})).await);
    assert!(!headers.contains("token-number"), "a token is in a result: {headers}");
    assert!(headers.contains("Bearer [redacted]"), "{headers}");
    headers
}

#[tokio::test]
async fn an_access_token_is_kept_and_replaced_after_a_401() {
    let server = SdkServer::start("oauth").await;
    let mcp = connect_with_oauth(&server, "/token").await;
    for _ in 0..3 {
        token_in_use(&mcp).await;
    }
    let record = server.record().await;
    assert_eq!(record.len(), 1, "{record:?}");
    let resource = format!("{}/mcp", server.address);
    let expected =
        json!({ "grant_type": "client_credentials", "resource": resource, "scope": "read write" });
    assert_eq!(record[0], expected);
    mcp.server.stop().await;
    let mcp = mcp.connected().await;
    token_in_use(&mcp).await;
    assert_eq!(server.record().await.len(), 1, "another session asks for no token");
    server.get("/revoke").await;
    let calls = (0..5).map(|_| token_in_use(&mcp));
    futures::future::join_all(calls).await;
    assert_eq!(server.record().await.len(), 2, "concurrent calls share a renewal");
}

#[tokio::test]
async fn an_access_token_is_renewed_before_it_expires_with_the_refresh_token_if_there_is_one() {
    let server = SdkServer::start("oauth").await;
    let mcp = connect_with_oauth(&server, "/token?short&refresh").await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    token_in_use(&mcp).await;
    let record = server.record().await;
    let grants: Vec<_> =
        record.iter().map(|request| request["grant_type"].as_str().unwrap()).collect();
    assert!(
        grants.len() > 1 && grants[1..].iter().all(|grant| *grant == "refresh_token"),
        "{grants:?}"
    );
}

#[tokio::test]
async fn a_refused_secret_is_in_no_error() {
    let server = SdkServer::start("oauth").await;
    let text = format!(
        "url = \"{0}/mcp\"\n[oauth]\ntoken_url = \"{0}/token\"\nclient_id = \"agui\"\n\
         client_secret_env = \"HOME\"\n",
        server.address
    );
    let mcp = McpFixture::new(toml::from_str(&text).unwrap()).ready().await;
    assert!(mcp.names().is_empty() && !mcp.server.is_connected());
}

#[tokio::test]
async fn progress_is_shown_and_extends_the_time_limit_up_to_its_maximum() {
    for stdio in [true, false] {
        let server = SdkServer::start("http").await;
        let change = |options: &mut McpServerOptions| {
            options.timeout = Duration::from_secs(4);
            options.max_timeout = Duration::from_secs(8);
        };
        let mcp = match stdio {
            true => McpFixture::node(&sdk_script(), &["stdio"], change).ready().await,
            false => server.connect(change).await,
        };
        let cx = context_of(None, &[]);
        let done = call_in(&mcp, "steps", json!({ "count": 10, "millis": 500 }), &cx).await;
        assert_eq!(text(done), "done", "the call takes 5 s");
        let shown: Vec<_> = cx.take_events().into_iter().map(activity).collect();
        assert!((2..=10).contains(&shown.len()), "{shown:?}");
        assert_eq!(shown[0]["message"], "step 1");
        assert_eq!(shown[0]["fraction"], 0.1);
        let error = error_message(
            call_in(&mcp, "steps", json!({ "count": 1, "millis": 10_000 }), &cx).await,
        );
        assert_eq!(error, "The MCP server `test` did not answer within 4 s.");
        let error = error_message(
            call_in(&mcp, "steps", json!({ "count": 100, "millis": 300 }), &cx).await,
        );
        assert_eq!(error, "The MCP server `test` did not answer within 8 s.");
    }
}

#[tokio::test]
async fn progress_shows_no_access_token() {
    let server = SdkServer::start("oauth").await;
    let mcp = connect_with_oauth(&server, "/token").await;
    let cx = context_of(None, &[]);
    assert_eq!(text(call_in(&mcp, "echoing_steps", json!({}), &cx).await), "done");
    let shown: Vec<_> = cx.take_events().into_iter().map(activity).collect();
    assert_eq!(shown[0]["message"], "sent Bearer [redacted]");
}

fn activity(event: Event) -> Value {
    let Event::ActivitySnapshot(event) = event else { panic!("{event:?}") };
    assert_eq!(event.activity_type, "agui-server.tool_progress");
    Value::Object(event.content)
}

#[tokio::test]
async fn a_question_of_the_server_is_one_for_a_person() {
    for stdio in [true, false] {
        let server = SdkServer::start("http").await;
        let mcp = match stdio {
            true => McpFixture::node(&sdk_script(), &["stdio"], |_| {}).ready().await,
            false => server.connect(|_| {}).await,
        };
        let cx = context_of(None, &[]);
        let asked = call_in(&mcp, "book", json!({ "day": "Monday" }), &cx).await.unwrap_err();
        assert!(asked.is_question(), "{asked:?}");
        let questions = cx.take_questions();
        let [question] = &questions[..] else { panic!("{questions:?}") };
        assert_eq!(question.message.as_deref(), Some("test asks: Who travels?"));
        let metadata = serde_json::to_value(question.metadata.as_ref().unwrap()).unwrap();
        assert_eq!(metadata, json!({ "agui-server.mcpServer": "test", "toolName": "tool" }));
        let schema = Value::Object(question.response_schema.clone().unwrap());
        assert_eq!(schema["properties"]["name"]["minLength"], 1);
        // Other calls continue.
        assert!(text(mcp.call("headers", json!({})).await).starts_with('{'));
    }
}

#[tokio::test]
async fn a_server_that_may_not_ask_is_told_so() {
    let server = SdkServer::start("http").await;
    let mcp = server.connect(|options| options.elicitation = false).await;
    let cx = context_of(None, &[]);
    let result = call_in(&mcp, "book", json!({ "day": "Monday" }), &cx).await;
    assert!(cx.take_questions().is_empty());
    // The SDK refuses to ask a client without the capability.
    assert!(result.is_err() || text(result).contains("cancel"));
}

#[tokio::test]
async fn resources_and_prompts_are_tools_if_they_are_listed() {
    let mcp = McpFixture::node(&sdk_script(), &["stdio"], |options| {
        options.approval = McpApproval::Annotations;
        options.approval_of.insert("prompts/get".to_owned(), ApprovalRule::Always.into());
    });
    let toolbox = Toolbox::new()
        .source(McpServer::resources(&mcp.server))
        .source(McpServer::prompts(&mcp.server));
    tokio::time::timeout(TEST_TIMEOUT, toolbox.ready()).await.unwrap();
    let names: Vec<_> = toolbox.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(
        names,
        ["test_list_resources", "test_read_resource", "test_list_prompts", "test_get_prompt"]
    );
    let mcp = McpFixture { toolbox, ..mcp };
    let listed = text(mcp.call("test_list_resources", json!({})).await);
    assert_eq!(listed, "- house://rules (House rules) [text/markdown]: What is allowed");
    assert_eq!(
        text(mcp.call("test_read_resource", json!({ "uri": "house://rules" })).await),
        "house://rules:\nNo shoes."
    );
    let missing =
        error_message(mcp.call("test_read_resource", json!({ "uri": "house://attic" })).await);
    assert!(missing.starts_with("The MCP server `test` refuses the call"), "{missing}");
    assert_eq!(
        text(mcp.call("test_list_prompts", json!({})).await),
        "- greet: Greets; arguments: who (required)"
    );
    let prompt = mcp
        .call("test_get_prompt", json!({ "name": "greet", "arguments": { "who": "Ada" } }))
        .await;
    assert_eq!(text(prompt), "user:\nSay hello to Ada.");
    let approval = |name: &str| mcp.tool(name).tool.approval(&Default::default());
    assert_eq!(
        (approval("test_read_resource"), approval("test_get_prompt")),
        (Approval::NotNeeded, Approval::Needed)
    );
}

#[tokio::test]
async fn the_servers_annotations_decide_on_approval_if_the_configuration_says_so() {
    let mcp = McpFixture::node(&sdk_script(), &["stdio"], |options| {
        options.approval = McpApproval::Annotations;
        options.approval_of.insert("steps".to_owned(), ApprovalRule::Never.into());
    });
    let mcp = mcp.ready().await;
    let approval = |name: &str| mcp.tool(name).tool.approval(&Default::default());
    assert_eq!(approval("headers"), Approval::NotNeeded);
    assert_eq!(approval("book"), Approval::Needed, "it has no annotations");
    assert_eq!(approval("steps"), Approval::NotNeeded);
}

#[tokio::test]
async fn the_servers_annotations_say_whether_a_call_may_run_again_unless_the_configuration_does() {
    let repeat = async |name: &str, configured: Option<Repeat>| {
        let mcp =
            McpFixture::node(&sdk_script(), &["stdio"], |options| options.repeat = configured)
                .ready()
                .await;
        mcp.tool(name).tool.repeat(&Default::default())
    };
    assert_eq!(repeat("headers", None).await, Repeat::Safe);
    assert_eq!(repeat("book", None).await, Repeat::Never, "it has no annotations");
    assert_eq!(repeat("book", Some(Repeat::Keyed)).await, Repeat::Keyed);
}

#[tokio::test]
async fn a_server_that_is_down_is_known_to_be() {
    let server = SdkServer::start("http").await;
    let mcp = server.connect(|_| {}).await;
    assert!(mcp.server.is_connected());
    drop(server);
    // The stream of notifications ends, or a call fails.
    eventually("the server is known to be down", || {
        let echo = mcp.tool("headers");
        tokio::spawn(async move { crate::tools::support::call(&echo, json!({})).await.is_ok() });
        !mcp.server.is_connected()
    })
    .await;
}

#[tokio::test]
async fn a_result_of_many_small_values_is_refused_and_the_session_is_kept() {
    for mode in ["stdio", "http", "json"] {
        let server = SdkServer::start(if mode == "stdio" { "http" } else { mode }).await;
        let mcp = match mode {
            "stdio" => McpFixture::node(&sdk_script(), &["stdio"], |_| {}).ready().await,
            _ => server.connect(|_| {}).await,
        };
        // 14 MB, of which the parsed form took 1.6 GB.
        let error = error_message(mcp.call("dense", json!({ "count": 1_700_000 })).await);
        let expected =
            "The MCP server `test` refuses the call: its answer has more than 100000 JSON values";
        assert_eq!(error, expected, "{mode}");
        let few = text(mcp.call("dense", json!({ "count": 10 })).await);
        assert!(few.ends_with("[cut here: the result is larger than 1048576 bytes]"), "{mode}");
    }
}
