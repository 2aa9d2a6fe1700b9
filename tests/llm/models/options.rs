//! Options of an agent as its provider sees them.

use std::process::Command;

use serde_json::{Value, json};

use super::{
    KEY, Models, call, chunk, finish,
    provider::{Answer, Provider},
    server::BINARY,
    text_and_error,
};

#[tokio::test]
async fn keys_prompts_and_headers_reach_the_provider() {
    let provider = Provider::start().await;
    let backup = format!(
        "[agents.other]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n\
         api_key_file = \"key\"\nsystem_prompt_file = \"prompt.md\"\n\
         headers = {{ X-Team = \"web\", X-Api-Token = \"1\" }}\nheaders_env = {{ X-Tenant = \"TEST_KEY\" }}\n",
        provider.url()
    );
    let files = [("key", " sk-from-a-file\n"), ("prompt.md", "\nBe kind.\nBe brief.\n\n")];
    let models = Models::start_with_files(&provider, &backup, &files);
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Hello." })), finish("stop")]));
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    let url = format!("{}/agents/other/send-message", models.process.url);
    client.post(url).json(&super::input("Hi")).send().await.unwrap().text().await.unwrap();
    let request = &provider.requests()[0];
    let header = |name: &str| request.headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("authorization"), "Bearer sk-from-a-file");
    assert_eq!([header("x-team"), header("x-api-token"), header("x-tenant")], ["web", "1", KEY]);
    assert_eq!(
        request.body["messages"][0],
        json!({ "role": "system", "content": "Be kind.\nBe brief." })
    );
    let Models { process, .. } = models;
    process.signal("-TERM");
    let log = process.ended().1;
    assert!(!log.contains("sk-from-a-file"), "{log}");
}

#[tokio::test]
async fn a_key_that_a_command_prints_is_used_until_it_is_refused() {
    let provider = Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count").display().to_string();
    let command = format!("echo x >> '{count}'; echo \"words-of-a-secret-$(wc -l < '{count}')\"");
    let agent = format!(
        "[agents.other]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n\
         api_key_command = [\"sh\", \"-c\", {}]\n",
        provider.url(),
        json!(command)
    );
    let models = Models::start(&provider, &agent);
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    let url = format!("{}/agents/other/send-message", models.process.url);
    let ask = async || {
        client.post(&url).json(&super::input("Hi")).send().await.unwrap().text().await.unwrap()
    };
    let hello = || Answer::openai(&[chunk(json!({ "content": "Hello." })), finish("stop")]);
    let refusal =
        |key: &str| Answer::new(401, [format!("{{\"error\":{{\"message\":\"expired: {key}\"}}}}")]);
    provider.answer(hello());
    provider.answer(refusal("words-of-a-secret-1"));
    provider.answer(hello());
    for _ in 0..2 {
        let stream = ask().await;
        assert!(stream.contains("Hello."), "{stream}");
    }
    provider.answer(refusal("words-of-a-secret-2"));
    provider.answer(refusal("words-of-a-secret-3"));
    let stream = ask().await;
    assert!(stream.contains("model_unauthorized"), "{stream}");
    let keys = provider
        .requests()
        .into_iter()
        .map(|request| request.headers["authorization"].to_str().unwrap().to_owned());
    let expected = [1, 1, 2, 2, 3].map(|number| format!("Bearer words-of-a-secret-{number}"));
    assert_eq!(keys.collect::<Vec<_>>(), expected);
    models.process.signal("-TERM");
    let log = models.process.ended().1;
    assert!(log.contains("expired") && !log.contains("words-of-a-secret"), "{log}");
}

#[tokio::test]
async fn calls_beyond_the_limit_are_not_run() {
    let provider = Provider::start().await;
    let options =
        format!("tools = [\"calculator\"]\nmax_calls_per_step = 1\n{}", provider.calculator());
    let models = Models::start(&provider, &options);
    let sum = |index| call(index, "calculator", r#"{"expression":"1+1"}"#);
    provider.answer(Answer::openai(&[sum(0), sum(1), finish("tool_calls")]));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "2" })), finish("stop")]));
    assert_eq!(text_and_error(&models.ask("?").await), ("2".to_owned(), None));
    let sent = provider.requests()[1].body["messages"].clone();
    let results: Vec<_> =
        sent.as_array().unwrap().iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results[0]["content"], "2");
    assert!(results[1]["content"].as_str().unwrap().contains("at most 1 calls"), "{sent}");
}

#[tokio::test]
async fn a_call_is_forced_after_the_users_message_only() {
    let provider = Provider::start().await;
    let options = format!(
        "tools = [\"calculator\"]\ntool_choice = \"calculator\"\n{}",
        provider.calculator()
    );
    let models = Models::start(&provider, &options);
    provider.answer(Answer::openai(&[
        call(0, "calculator", r#"{"expression":"1+1"}"#),
        finish("tool_calls"),
    ]));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "2" })), finish("stop")]));
    assert_eq!(text_and_error(&models.ask("?").await), ("2".to_owned(), None));
    let choices: Vec<_> =
        provider.requests().iter().map(|request| request.body["tool_choice"].clone()).collect();
    let forced = json!({ "type": "function", "function": { "name": "calculator" } });
    assert_eq!(choices, [forced, Value::Null]);
}

#[test]
fn options_that_cannot_be_used_are_reported_with_their_place() {
    let base = "[agents.a]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\n";
    for (options, expected) in [
        ("system_prompt_file = \"none.md\"", "my.toml:6:1: agents.a.system_prompt_file: the file "),
        ("system_prompt_file = \"none.md\"", "none.md cannot be read: No such file"),
        (
            "system_prompt = \"For {{claim.b}}\"",
            "my.toml:6:17: `{{claim.b}}` is unknown: expected {{principal}}, ",
        ),
        (
            "system_prompt_file = \"prompt.md\"",
            "prompt.md:3:7: `{{` is not closed by `}}`: expected ",
        ),
        ("api_key_file = \"empty\"", "empty is empty"),
        ("response_schema_file = \"list.json\"", "list.json: not a JSON object"),
        ("response_schema = { type = \"list\" }", "agents.a.response_schema: "),
        (
            "response_schema = {}\nresponse_schema_file = \"x\"",
            "agents.a.response_schema_file: `response_schema` is set",
        ),
        (
            "system_prompt = \"x\"\nsystem_prompt_file = \"x\"",
            "my.toml:7:1: agents.a.system_prompt_file: `system_prompt`",
        ),
        (
            "api_key_env = \"X\"\napi_key_file = \"x\"",
            "my.toml:7:1: agents.a.api_key_file: `api_key_env` is set, too",
        ),
        (
            "api_key_file = \"x\"\napi_key_command = [\"x\"]",
            "agents.a.api_key_command: `api_key_file` is set, too",
        ),
        (
            "api_key_env = \"X\"\ncredentials = \"gcp\"",
            "agents.a.credentials: `api_key_env` is set, too",
        ),
        ("credentials = \"ibm\"", "my.toml:6:15: "),
        (
            "headers_env = { X-A = \"A\" }\nheaders = { x-a = \"a\" }",
            "my.toml:7:1: agents.a.headers: `headers_env` has `x-a`, too",
        ),
        ("headers = { \"x y\" = \"a\" }", "agents.a: the header \"x y\" has an invalid name"),
        (
            "fallback = [\"a\"]",
            "my.toml:6:1: agents.a.fallback: agent `a` cannot be its own fallback",
        ),
        (
            "fallback = [\"b\"]",
            "my.toml:6:1: agents.a.fallback: there is no agent `b` with kind = \"llm\"",
        ),
        (
            "fallback = [\"b\"]\n[agents.b]\nkind = \"echo\"",
            "there is no agent `b` with kind = \"llm\"",
        ),
        ("models = [\"\"]", "my.toml:6:1: agents.a.models: the name of a model is empty"),
        ("max_calls_per_step = 0", "my.toml:6:22: expected a whole number of at least 1, found 0"),
        ("tool_choice = 1", "my.toml:6:15: "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("my.toml", &format!("{base}{options}"));
        write("empty", " \n");
        write("prompt.md", "\nYou\nserve {{principal");
        write("list.json", "[]");
        let mut command = Command::new(BINARY);
        let file = folder.path().join("my.toml");
        let output =
            command.args(["check", "--default-agent", "a", "--config"]).arg(file).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options}: {stderr}");
        assert!(stderr.contains(expected), "{options}: {stderr}");
    }
}

/// Returns the exit code and the output of `agui-server check`.
fn check(text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(BINARY);
    let command = command
        .args(["check", "--config"])
        .arg(file)
        .env("SHORT", "s3cr3t")
        .env("LONG", "0123456789abcdef");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    (output.status.code(), printed.into_owned())
}

#[test]
fn a_secret_among_the_plain_headers_is_warned_about() {
    let secret = "headers = { Authorization = \"Basic c2VjcmV0\", X-Title = \"Support\" }\n";
    let (code, printed) = check(&format!(
        "[agents.a]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\n{secret}\
         [tools.t]\nkind = \"http\"\ndescription = \"d\"\nurl = \"https://h\"\n{secret}[mcp.m]\nurl = \"http://h\"\n{secret}"
    ));
    assert_eq!(code, Some(0), "{printed}");
    for place in ["agents.a", "tools.t", "mcp.m"] {
        assert!(
            printed.contains(&format!("{place}: the header Authorization looks like a secret: ")),
            "{printed}"
        );
    }
    assert!(!printed.contains("c2VjcmV0") && !printed.contains("X-Title"), "{printed}");
}

#[test]
fn what_has_no_effect_or_can_be_guessed_is_warned_about() {
    let agent = "kind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\n";
    let prompt = "system_prompt = \"For {{claim:tenant}}.\"\n";
    let keys = "[auth]\nmode = \"api_key\"\napi_keys = [{ name = \"web\", env = \"SHORT\" }, { name = \"app\", env = \"LONG\" }]\n";
    let (code, printed) =
        check(&format!("[agents.a]\n{agent}{prompt}[limits]\nruns_per_minute = 3\n"));
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("names claims (tenant), which only tokens have: set [auth] mode"),
        "{printed}"
    );
    assert!(printed.contains("[limits] has no effect without authentication"), "{printed}");
    let (code, printed) =
        check(&format!("[agents.a]\n{agent}[limits]\nruns_per_minute = 3\n{keys}"));
    assert_eq!((code, printed.matches("warning").count()), (Some(0), 1), "{printed}");
    assert!(
        printed.contains("auth.api_keys: the key \"web\" has fewer than 16 characters"),
        "{printed}"
    );
    assert!(!printed.contains("s3cr3t"), "{printed}");
}

#[test]
fn a_base_url_that_is_an_endpoint_is_answered_with_the_one_to_write() {
    for (provider, url, base) in [
        ("openai", "http://h/v1/chat/completions", Some("http://h/v1")),
        ("openai", "http://h/v1/responses/", Some("http://h/v1")),
        ("anthropic", "http://h/v1/messages", Some("http://h")),
        ("openai", "http://h/v1", None),
    ] {
        let agent = format!(
            "[agents.a]\nkind = \"llm\"\nprovider = {provider:?}\nmodel = \"gpt-5\"\nbase_url = {url:?}\n"
        );
        let (code, printed) = check(&agent);
        let expected = base.map(|base| format!("which requests add: write base_url = {base:?}"));
        let is_said = expected.as_ref().is_none_or(|expected| printed.contains(expected));
        assert_eq!(
            (code, is_said, printed.contains("base_url")),
            (Some(0), true, base.is_some()),
            "{url}: {printed}"
        );
    }
}

#[test]
fn all_agents_with_an_error_are_named_and_each_error_once() {
    let script =
        |name: &str| format!("[agents.{name}]\nkind = \"script\"\nscript = \"{name}.toml\"\n");
    let agent = "[agents.a]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ntools = [\"agent:b\"]\n";
    let (code, printed) =
        check(&format!("default_agent = \"a\"\n{agent}{}{}", script("b"), script("c")));
    assert_eq!((code, printed.matches("cannot be read").count()), (Some(2), 2), "{printed}");
}
