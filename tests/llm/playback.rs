//! `provider = "replay"`: the recorded answers of a provider, under the agent's own loop.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{
    provider::{Answer, Provider},
    recordings::recordings,
    running::{events, input},
    server::{BINARY, Process},
};

/// A call of the calculator, and the answer to its result.
fn chat() -> [Answer; 2] {
    let chunk = |delta: Value, reason: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    let function = json!({ "name": "calculator", "arguments": "{\"expression\":\"6*7\"}" });
    let call = json!({ "tool_calls": [{ "index": 0, "id": "call-1", "function": function }] });
    let (calls, stop) = (chunk(json!({}), "tool_calls".into()), chunk(json!({}), "stop".into()));
    let text = chunk(json!({ "content": "It is 42." }), Value::Null);
    [Answer::openai(&[chunk(call, Value::Null), calls]), Answer::openai(&[text, stop])]
}

fn anthropic() -> [Answer; 2] {
    let answer = |block: Value, delta: Value, reason: &str| {
        Answer::anthropic(&[
            json!({ "type": "message_start", "message": { "id": "m", "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": block }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 5 } }),
            json!({ "type": "message_stop" }),
        ])
    };
    [
        answer(
            json!({ "type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": "{\"expression\":\"6*7\"}" }),
            "tool_use",
        ),
        answer(
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "It is 42." }),
            "end_turn",
        ),
    ]
}

fn gemini() -> [Answer; 2] {
    let answer = |part: Value| {
        let content = json!({ "role": "model", "parts": [part] });
        Answer::gemini(&[json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] })])
    };
    let call = json!({ "name": "calculator", "args": { "expression": "6*7" } });
    [
        answer(json!({ "functionCall": call, "thoughtSignature": "signed" })),
        answer(json!({ "text": "It is 42." })),
    ]
}

fn responses() -> [Answer; 2] {
    let answer = |events: &[Value]| {
        let completed = json!({ "type": "response.completed", "response": { "id": "r", "status": "completed", "output": [] } });
        let events: Vec<_> = events.iter().chain([&completed]).cloned().collect();
        Answer::anthropic(&events)
    };
    let item = |arguments: &str| json!({ "type": "function_call", "id": "fc_1", "call_id": "call-1", "name": "calculator", "arguments": arguments });
    let arguments = "{\"expression\":\"6*7\"}";
    let message = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [] });
    [
        answer(&[
            json!({ "type": "response.output_item.added", "output_index": 0, "item": item("") }),
            json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": arguments }),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": item(arguments) }),
        ]),
        answer(&[
            json!({ "type": "response.output_item.added", "output_index": 0, "item": message }),
            json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "It is 42." }),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": message }),
        ]),
    ]
}

/// Starts a server whose agent has these options.
fn serve(folder: &Path, options: &str, calculator: &Provider) -> Process {
    let config = folder.join("my.toml");
    let text = format!(
        "[agents.assistant]\nkind = \"llm\"\ntools = [\"calculator\"]\n{options}{}",
        calculator.calculator()
    );
    fs::write(&config, text).unwrap();
    let recorded = folder.join("recordings");
    let environment = [("AGUI_STORE__URL", "memory:"), ("TEST_KEY", "a-key-of-the-provider")];
    let arguments = ["--config", config.to_str().unwrap()];
    match options.contains("replay") {
        true => Process::start(&arguments, &environment),
        false => Process::start(
            &[&arguments[..], &["--record", recorded.to_str().unwrap()]].concat(),
            &environment,
        ),
    }
}

/// Runs the agent. Returns the texts, the results of tools, and the code of an error.
async fn run(process: &Process, text: &str) -> (String, Vec<Value>, Value) {
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let request = client.post(format!("{}/send-message", process.url)).json(&input(text));
    let events = events(&request.send().await.unwrap().text().await.unwrap());
    let text = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    let text = text.map(|event| event["delta"].as_str().unwrap()).collect();
    let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    (
        text,
        results.map(|event| event["content"].clone()).collect(),
        events[events.len() - 1]["code"].clone(),
    )
}

#[tokio::test]
async fn the_loop_of_an_agent_runs_on_the_recorded_answers_of_each_provider() {
    for (provider, model, answers) in [
        ("openai", "m", chat()),
        ("anthropic", "claude-haiku-4-5", anthropic()),
        ("gemini", "gemini-3-pro", gemini()),
        ("openai-responses", "gpt-5.4", responses()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (upstream, calculator) = (Provider::start().await, Provider::start().await);
        answers.into_iter().for_each(|answer| upstream.answer(answer));
        let client = format!("base_url = \"{}/v1\"\napi_key_env = \"TEST_KEY\"\n", upstream.url());
        let live = serve(
            folder.path(),
            &format!("provider = \"{provider}\"\nmodel = \"{model}\"\n{client}"),
            &calculator,
        );
        let expected = ("It is 42.".to_owned(), vec![json!("42")], Value::Null);
        assert_eq!(run(&live, "6*7?").await, expected, "{provider}");
        let recorded = recordings(&folder.path().join("recordings"), 1).await;
        assert_eq!(
            recorded[0].iter().filter(|line| line.get("exchange").is_some()).count(),
            2,
            "{provider}"
        );
        drop((live, upstream));

        // Another system prompt plays the same recording.
        let replay = format!(
            "provider = \"replay\"\ndir = \"recordings\"\nmodel = \"{model}\"\nsystem_prompt = \"Calculate.\"\n"
        );
        let replayed = serve(folder.path(), &replay, &calculator);
        assert_eq!(run(&replayed, "6*7?").await, expected, "{provider}");
        assert_eq!(
            run(&replayed, "7*7?").await,
            (String::new(), vec![], json!("no_recorded_exchange")),
            "{provider}"
        );
        drop(replayed);

        // The recording is also played if the result of a tool differs.
        let file = folder.path().join("recordings");
        let file = fs::read_dir(file).unwrap().next().unwrap().unwrap().path();
        let lines = fs::read_to_string(&file).unwrap();
        let changed: String = lines
            .lines()
            .map(|line| if line.contains("\"exchange\"") { line.replace("\"42\"", "\"41\"") } else { line.to_owned() } + "\n")
            .collect();
        assert_ne!(lines, changed, "{provider}");
        fs::write(&file, changed).unwrap();
        assert_eq!(
            run(&serve(folder.path(), &replay, &calculator), "6*7?").await,
            expected,
            "{provider}"
        );
    }
}

#[test]
fn options_of_a_connection_and_folders_without_exchanges_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("my.toml");
    let refused = |options: &str| {
        let text = format!("[agents.x]\nkind = \"llm\"\nmodel = \"m\"\nprovider = {options}\n");
        fs::write(&config, text).unwrap();
        let check = ["check", "--config", config.to_str().unwrap()];
        let output = std::process::Command::new(BINARY).args(check).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let error = refused("\"replay\"\ndir = \"r\"\nbase_url = \"http://h\"");
    assert!(
        error.contains("agents.x.base_url: provider = \"replay\" sends no requests"),
        "{error}"
    );
    assert!(refused("\"replay\"").contains("needs `dir`"));
    assert!(
        refused("\"openai\"\napi_key_env = \"PATH\"\ndir = \"r\"")
            .contains("agents.x.dir: only kind")
    );
    fs::create_dir(folder.path().join("r")).unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/recordings/hello.jsonl");
    fs::copy(demo, folder.path().join("r/hello.jsonl")).unwrap();
    let error = refused("\"replay\"\ndir = \"r\"");
    assert!(error.contains("agents.x.dir: the recordings have no whole exchange"), "{error}");
}
