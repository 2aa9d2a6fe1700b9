//! Logins of people at MCP servers and web services, also with a hostile page, server or login.

mod fakes;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Json, Router, routing::any};
use futures::future::join_all;
use serde_json::{Value, json};

use self::fakes::{Authority, Browser, Parameters, serve, start_mcp};
use crate::support::{
    provider::{Answer, Provider},
    running::{events, input},
    server::{BINARY, Process},
};

/// The server as people have it, with a model that calls one tool in each run.
struct Assistant {
    process: Process,
    provider: Provider,
    client: reqwest::Client,
    _config: tempfile::NamedTempFile,
}

fn write_config(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), format!("[secrets]\nkey_env = \"SECRETS_KEY\"\n{text}")).unwrap();
    file
}

const KEY: (&str, &str) = ("SECRETS_KEY", "a-key-for-tests-0123456789-0123456789");

impl Assistant {
    async fn start(tools: &[&str], tables: &str) -> Self {
        let provider = Provider::start().await;
        let config = write_config(&format!(
            "{tables}\n[agents.assistant]\nkind = \"llm\"\nprovider = \"openai\"\napi = \"chat\"\nmodel = \"m\"\n\
             base_url = \"{}/v1\"\ntools = {tools:?}\n",
            provider.url()
        ));
        let process = Process::start(&["--config", config.path().to_str().unwrap()], &[KEY]);
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        Self { process, provider, client, _config: config }
    }

    /// Runs a thread. `delta` is the model's next answer.
    async fn run(&self, delta: Value, input: &Value) -> Vec<Value> {
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
        self.provider.answer(Answer::openai(&[chunk]));
        let request = self.client.post(format!("{}/send-message", self.process.url)).json(input);
        events(&request.send().await.unwrap().text().await.unwrap())
    }

    /// Lets the model call a tool that needs a login. Returns the thread's input and the interrupt.
    async fn ask(&self, tool: &str) -> (Value, Value) {
        let input = input("Do it.");
        let function = json!({ "name": tool, "arguments": "{}" });
        let call = json!({ "tool_calls": [{ "index": 0, "id": "c0", "function": function }] });
        let events = self.run(call, &input).await;
        let interrupt = events.last().unwrap()["outcome"]["interrupts"][0].clone();
        assert_eq!(interrupt["reason"], "authorization", "{events:?}");
        (input, interrupt)
    }

    /// Returns a new link to log in.
    async fn link(&self, tool: &str) -> String {
        let (_, interrupt) = self.ask(tool).await;
        interrupt["metadata"]["agui-server.visitUrl"].as_str().unwrap().to_owned()
    }

    /// Answers an interrupt. Returns the result of the call.
    async fn answer(&self, input: &Value, reply: Value) -> String {
        let mut input = input.clone();
        (input["runId"], input["messages"], input["resume"]) =
            ("r2".into(), json!([]), json!([reply]));
        let events = self.run(json!({ "content": "Well." }), &input).await;
        let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT");
        result.unwrap_or_else(|| panic!("{events:?}"))["content"].as_str().unwrap().to_owned()
    }

    async fn accounts(&self) -> usize {
        let response =
            self.client.get(format!("{}/accounts", self.process.url)).send().await.unwrap();
        response.json::<Value>().await.unwrap()["accounts"].as_array().unwrap().len()
    }
}

async fn with_mcp(authority: &Authority) -> Assistant {
    let mcp = start_mcp(authority).await;
    Assistant::start(&["mcp:notes"], &format!("[mcp.notes]\nurl = \"{mcp}\"\nlogin = \"person\"\n"))
        .await
}

#[tokio::test]
async fn nobody_continues_without_the_page_of_the_login() {
    let authority = Authority::start().await;
    let server = with_mcp(&authority).await;
    let mut browser = Browser::new();
    // The person has just logged in with another link.
    let (status, page) = browser.log_in(&server.link("notes_connect").await).await;
    assert_eq!((status, page.contains("Connected")), (200, true), "{page}");
    let clients = || authority.known().clients.len();
    assert_eq!(clients(), 1);

    let link = server.link("notes_connect").await;
    let skipped = browser.request("GET", &format!("{link}&go=1")).send().await.unwrap();
    assert_eq!(skipped.status(), 200, "a link leads to the page alone");
    let header = |name: &str| skipped.headers()[name].to_str().unwrap();
    assert_eq!(header("cross-origin-opener-policy"), "same-origin");
    assert!(header("content-security-policy").contains("frame-ancestors 'none'"));
    // A link that this browser never opened, with the button of another page.
    let used = browser.open(&link).await;
    let (_, button) = used.split_once("&button=").unwrap();
    let unopened = server.link("notes_connect").await;
    for guess in [String::new(), format!("&button={button}"), "&go=1".to_owned()] {
        assert_eq!(browser.press(&format!("{unopened}{guess}"), &[]).await.0, 403, "{guess}");
    }
    // Another page sends the form: also one of the same site, and one that knows the button.
    for foreign in [
        [("sec-fetch-site", "same-site"), ("origin", "http://localhost:3000")],
        [("sec-fetch-site", "cross-site"), ("origin", "null")],
        [("x", "x"), ("origin", "http://localhost:3000")],
    ] {
        assert_eq!(browser.press(&used, &foreign).await.0, 403, "{foreign:?}");
    }
    assert_eq!(Browser::new().press(&used, &[]).await.0, 403, "another browser");
    assert_eq!(clients(), 1, "nobody was registered for these");

    let own = [("sec-fetch-site", "same-origin")];
    let (status, url) = browser.press(&used, &own).await;
    assert_eq!((status, url.starts_with(&authority.origin())), (303, true), "{url}");
    assert_eq!(browser.press(&used, &own).await.0, 403, "a button works once");
    // The person comes back, and presses the button of the page again.
    let again = browser.open(&link).await;
    let (status, url) = browser.press(&again, &own).await;
    assert_eq!((status, clients()), (303, 2), "with the same client");
    assert_eq!(browser.follow(url).await.0, 200);
}

#[tokio::test]
async fn one_link_registers_one_client_also_when_it_is_used_200_times_at_once() {
    let authority = Authority::start().await;
    let server = with_mcp(&authority).await;
    let mut browser = Browser::new();
    let button = browser.open(&server.link("notes_connect").await).await;
    let pressed = join_all((0..200).map(|_| browser.press(&button, &[]))).await;
    assert_eq!(pressed.iter().filter(|(status, _)| *status == 303).count(), 1);
    assert_eq!(authority.known().clients.len(), 1);
    // A login that has failed ends its link.
    authority.known().metadata.insert("token_endpoint".to_owned(), "nowhere".to_owned());
    let link = server.link("notes_connect").await;
    let button = browser.open(&link).await;
    assert_eq!(browser.press(&button, &[]).await.0, 502);
    assert_eq!(browser.request("GET", &link).send().await.unwrap().status(), 403);
    assert_eq!(authority.known().clients.len(), 1);
}

#[tokio::test]
async fn a_hostile_mcp_server_gets_neither_the_code_nor_the_verifier_of_an_honest_authorization_server()
 {
    let (honest, hostile) = (Authority::start().await, Authority::start().await);
    let (good, evil) = (start_mcp(&honest).await, start_mcp(&hostile).await);
    let tables = format!(
        "[mcp.good]\nurl = \"{good}\"\nlogin = \"person\"\n[mcp.evil]\nurl = \"{evil}\"\nlogin = \"person\"\n"
    );
    let server = Assistant::start(&["mcp:good", "mcp:evil"], &tables).await;
    let (status, page) = Browser::new().log_in(&server.link("good_connect").await).await;
    assert_eq!((status, server.accounts().await), (200, 1), "{page}");
    // Everybody who has logged in there knows the client and its address.
    let (client, registered) =
        honest.known().clients.iter().map(|(id, uri)| (id.clone(), uri.clone())).next().unwrap();
    let of_issuer =
        registered.rsplit_once("/connections/callback/").map(|(_, digest)| digest.len());
    assert_eq!(of_issuer, Some(32), "{registered}");

    let page_of_honest = format!("{}/auth", honest.origin());
    let parameter = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let metadata = |name: &str| Parameters::from([parameter(name, &page_of_honest)]);
    let same = Parameters::new();
    let as_honest = Parameters::from([parameter("redirect_uri", &registered)]);
    for (what, metadata, page, expected) in [
        (
            "its metadata name the page of the honest one",
            metadata("authorization_endpoint"),
            None,
            "sends people to another one",
        ),
        (
            "its page leads to that of the honest one",
            same.clone(),
            Some(same.clone()),
            "not registered",
        ),
        (
            "and with the address of the honest one",
            same.clone(),
            Some(as_honest),
            "another authorization server has answered",
        ),
    ] {
        {
            let mut known = hostile.known();
            known.client = Some(client.clone());
            known.metadata = metadata;
            known.page = page.map(|parameters| (page_of_honest.clone(), parameters));
        }
        let (status, page) = Browser::new().log_in(&server.link("evil_connect").await).await;
        assert!(status >= 400 && page.contains(expected), "{what}: {status} {page}");
        assert_eq!(hostile.known().token_requests, Vec::<Parameters>::new(), "{what}");
        assert_eq!(server.accounts().await, 1, "{what}");
    }
}

/// A web service with a login that is written in the configuration, and the number of its calls.
async fn web_service(authority: &Authority, more: &str) -> (String, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let respond = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Json(json!("ordered")) }
    };
    let service = serve(Router::new().route("/order", any(respond))).await;
    let origin = authority.origin();
    let table = format!(
        "[tools.order]\nkind = \"http\"\ndescription = \"Orders\"\nmethod = \"POST\"\nurl = \"{service}/order\"\n\
         login = \"person\"\nlogin_authorization_url = \"{origin}/auth\"\nlogin_token_url = \"{origin}/token\"\n\
         login_client_id = \"agui\"\n{more}"
    );
    (table, calls)
}

#[tokio::test]
async fn a_declined_login_never_runs_the_call_also_if_the_person_has_logged_in_elsewhere() {
    let authority = Authority::start().await;
    let (table, calls) = web_service(&authority, "").await;
    let server = Assistant::start(&["order"], &table).await;
    let callback = format!("{}/connections/callback", server.process.url);
    authority.known().clients.insert("agui".to_owned(), callback);
    let replies = [
        json!({ "status": "cancelled" }),
        json!({ "status": "resolved", "payload": { "approved": false } }),
    ];
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(server.ask("order").await);
    }
    let (status, page) = Browser::new().log_in(&server.link("order").await).await;
    assert_eq!(status, 200, "{page}");
    for ((input, interrupt), reply) in asked.iter().zip(&replies) {
        let mut reply = reply.clone();
        reply["interruptId"] = interrupt["id"].clone();
        let result = server.answer(input, reply).await;
        assert_eq!(
            result,
            "The call was not run: the user declined to log in or to open a page for it."
        );
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let (input, interrupt) = &asked[2];
    let done = json!({ "interruptId": interrupt["id"], "status": "resolved", "payload": { "done": true } });
    assert_eq!(
        (server.answer(input, done).await.as_str(), calls.load(Ordering::Relaxed)),
        ("\"ordered\"", 1)
    );
}

// The fakes answer while the command runs.
#[tokio::test(flavor = "multi_thread")]
async fn check_prints_the_redirect_address_of_a_configured_client() {
    let authority = Authority::start().await;
    let origin = authority.origin();
    let check = |table: &str, more: &[&str]| {
        let config = write_config(&format!(
            "[server]\npublic_url = \"https://agents.example.com/ai/\"\n{table}"
        ));
        let arguments = ["check", "--config", config.path().to_str().unwrap()];
        let output = std::process::Command::new(BINARY)
            .args(arguments)
            .args(more)
            .envs([KEY])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let shared = "https://agents.example.com/ai/connections/callback";
    let (table, _) = web_service(&authority, "").await;
    let printed = check(&table, &[]);
    let line =
        printed.lines().find(|line| line.starts_with("login at 127.0.0.1:")).expect(&printed);
    assert!(
        line.contains(&format!("the redirect URI is {shared}, as that of other logins")),
        "{line}"
    );
    let own = line.split_once("register ").unwrap().1.split_once(' ').unwrap().0;
    assert!(
        own.starts_with(&format!("{shared}/"))
            && line.ends_with(&format!("`login_issuer = {origin:?}`")),
        "{line}"
    );
    let (table, _) = web_service(&authority, &format!("login_issuer = {origin:?}\n")).await;
    assert!(check(&table, &[]).contains(&format!("the redirect URI to register is {own}\n")));
    // An MCP server is asked for its issuer.
    let mcp = start_mcp(&authority).await;
    let table =
        format!("[mcp.notes]\nurl = \"{mcp}\"\nlogin = \"person\"\nlogin_client_id = \"agui\"\n");
    assert!(check(&table, &[]).contains("`check --online` finds the issuer"));
    assert!(
        check(&table, &["--online"])
            .contains(&format!("register {own} and set `login_issuer = {origin:?}`"))
    );
    assert_eq!(authority.known().clients.len(), 0, "nothing is registered by a check");
}
