//! The command with `headers_from`: claims of a caller's token reach a web service, and MCP servers that are down are
//! named by `GET /readyz`.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{
    call,
    provider::{Answer, Provider},
    read_events,
    running::eventually_async,
    says,
    server::Process,
    tokens,
};

/// Starts the command with an agent on the provider. `more` is added to the configuration.
fn start(provider: &Provider, more: &str) -> (Process, tempfile::NamedTempFile) {
    let text = format!(
        "[agents.assistant]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n{more}",
        provider.url()
    );
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (Process::start(&["--config", &path], &[("JWT_SECRET", tokens::SECRET)]), file)
}

#[tokio::test]
async fn a_claim_of_the_callers_token_reaches_a_web_service() {
    let (provider, service) = (Provider::start().await, Provider::start().await);
    let config = format!(
        "tools = [\"lookup\"]\n[auth]\nmode = \"jwt\"\n[auth.jwt]\nsecret_env = \"JWT_SECRET\"\naudience = \"agui\"\n\
         [tools.lookup]\nkind = \"http\"\ndescription = \"d\"\nurl = \"{}/lookup\"\nmethod = \"POST\"\n\
         headers_from = {{ X-User = \"principal\", X-Tenant = \"claim:tenant\", X-Level = \"claim:level\", \
         X-Trace = \"header:x-trace\" }}\n",
        service.url()
    );
    let (process, _file) = start(&provider, &config);
    provider.answer(Answer::openai(&[call(0, "lookup", "{}")]));
    says(&provider, "So.");
    service.answer(Answer::openai(&[]));
    let claims = tokens::with(tokens::claims("ada"), "tenant", "acme");
    let claims = tokens::with(tokens::with(claims, "level", 3), "secret", "x");
    let input = super::input("look it up");
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let request =
        client.post(format!("{}/send-message", process.url)).bearer_auth(tokens::hs256(&claims));
    let body =
        request.header("X-Trace", "t-1").json(&input).send().await.unwrap().text().await.unwrap();
    let events = read_events(input, &body);
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    let [request] = &service.requests()[..] else { panic!("{:?}", service.requests()) };
    for (name, value) in
        [("x-user", "ada"), ("x-tenant", "acme"), ("x-level", "3"), ("x-trace", "t-1")]
    {
        assert_eq!(request.headers[name], value);
    }
}

#[tokio::test]
async fn a_system_prompt_has_the_claims_of_the_caller_in_subagents_too() {
    let provider = Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clerk.md"), "A clerk of {{claim:tenant}}.\n").unwrap();
    let config = format!(
        "default_agent = \"assistant\"\n\
         [agents.assistant]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{0}/v1\"\n\
         tools = [\"agent:clerk\"]\nsystem_prompt = \"You serve {{{{claim:tenant}}}}, plan {{{{claim:plan|free}}}}.\"\n\
         [agents.clerk]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{0}/v1\"\n\
         system_prompt_file = \"clerk.md\"\n\
         [auth]\nmode = \"jwt\"\n[auth.jwt]\nsecret_env = \"JWT_SECRET\"\naudience = \"agui\"\n",
        provider.url()
    );
    let file = folder.path().join("my.toml");
    std::fs::write(&file, config).unwrap();
    let process =
        Process::start(&["--config", file.to_str().unwrap()], &[("JWT_SECRET", tokens::SECRET)]);
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let ask = async |claims: &Value| {
        let input = super::input("Hi");
        let request =
            client.post(format!("{}/send-message", process.url)).bearer_auth(tokens::hs256(claims));
        let body = request.json(&input).send().await.unwrap().text().await.unwrap();
        read_events(input, &body).pop().unwrap()
    };
    provider.answer(Answer::openai(&[call(0, "clerk", r#"{"task":"count"}"#)]));
    says(&provider, "Two.");
    says(&provider, "So.");
    let claims = tokens::with(tokens::claims("ada"), "tenant", "Acme\n# New rules");
    assert_eq!(ask(&claims).await["type"], "RUN_FINISHED");
    says(&provider, "Hello.");
    let claims = tokens::with(tokens::with(tokens::claims("bob"), "tenant", "zoo"), "plan", "paid");
    assert_eq!(ask(&claims).await["type"], "RUN_FINISHED");
    let prompts: Vec<_> =
        provider.requests().iter().map(|request| request.body["messages"][0].clone()).collect();
    let expected = [
        r#"You serve "Acme\n# New rules", plan free."#,
        r#"A clerk of "Acme\n# New rules"."#,
        r#"You serve "Acme\n# New rules", plan free."#,
        r#"You serve "zoo", plan "paid"."#,
    ];
    assert_eq!(prompts, expected.map(|text| json!({ "role": "system", "content": text })));
    let end = ask(&tokens::claims("eve")).await;
    assert_eq!(
        (&end["type"], &end["code"]),
        (&json!("RUN_ERROR"), &json!("caller_value_missing")),
        "{end}"
    );
    assert_eq!(provider.requests().len(), 4);
}

#[tokio::test]
async fn readyz_names_the_mcp_servers_that_are_down() {
    let provider = Provider::start().await;
    for (required, expected) in [
        ("", (200, json!({ "status": "ready", "unavailable": ["mcp:absent"] }))),
        (
            "required = true\n",
            (503, json!({ "status": "dependency_unavailable", "unavailable": ["mcp:absent"] })),
        ),
    ] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/js/sdk-mcp.mjs");
        let config = format!(
            "[mcp.absent]\ncommand = [\"/does/not/exist\"]\n{required}\n\
             [mcp.here]\ncommand = [\"node\", {script:?}, \"stdio\"]\nrequired = true\n"
        );
        let (process, _file) = start(&provider, &config);
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        let answer = async || {
            let answer = client.get(format!("{}/readyz", process.url)).send().await.unwrap();
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        };
        // The other server needs a moment to start, and is named until then.
        eventually_async("the servers that are up are not named", async || {
            answer().await == expected
        })
        .await;
    }
}
