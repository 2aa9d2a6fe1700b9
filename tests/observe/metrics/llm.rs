//! Agents with a model: calls, tokens, cost, tools, and the log lines of each.

use serde_json::{Value, json};

use super::{
    provider::{Answer, Provider},
    server::Process,
    support::{eventually_async, input},
    value,
};

fn chunk(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn call(name: &str, arguments: &str) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    chunk(&json!({ "tool_calls": [{ "index": 0, "id": "call-1", "function": function }] }))
}

fn usage(input: u64, output: u64, cached: u64) -> Value {
    let details = json!({ "cached_tokens": cached });
    json!({ "choices": [], "usage": {
        "prompt_tokens": input, "completion_tokens": output, "prompt_tokens_details": details
    } })
}

/// The command with an agent on the provider, with metrics and with all log lines as JSON.
fn start(provider: &Provider, more: &str) -> (Process, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    let text = format!(
        "[metrics]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"debug\"\nformat = \"json\"\n\
         [prices]\nm = {{ input = 1.0, cached_input = 0.5, output = 10.0 }}\n\
         [agents.assistant]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n\
         max_retries = 1\ntools = [\"calculator\"]\n{more}\n{}",
        provider.url(),
        provider.calculator()
    );
    std::fs::write(&path, text).unwrap();
    (Process::start(&["--config", path.to_str().unwrap()], &[]), folder)
}

async fn run(process: &Process, text: &str) {
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let run = client.post(format!("{}/send-message", process.url)).json(&input(text));
    run.send().await.unwrap().text().await.unwrap();
}

async fn metrics(process: &Process) -> String {
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    client.get(process.metrics_url.as_deref().unwrap()).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn calls_tokens_cost_retries_and_tools_are_counted_and_logged() {
    let provider = Provider::start().await;
    provider.answer(Answer::new(503, ["busy"]));
    let sum = call("calculator", r#"{"expression":"1+1"}"#);
    provider.answer(
        Answer::openai(&[sum, end("tool_calls"), usage(1000, 20, 400)])
            .header("x-request-id", "req-one"),
    );
    let nonsense = call("made_up_tool", "{}");
    provider.answer(Answer::openai(&[nonsense, end("tool_calls"), usage(1100, 20, 0)]));
    let text = chunk(&json!({ "content": "two" }));
    provider.answer(
        Answer::openai(&[text, end("stop"), usage(1200, 10, 0)])
            .header("x-request-id", "req-three"),
    );
    let (process, _folder) = start(&provider, "");
    run(&process, "1+1?").await;
    provider.answer(Answer::new(401, ["no"]));
    run(&process, "again").await;
    let text = metrics(&process).await;
    let of_model = |name: &str, more: &str| {
        value(&text, &format!("agui_model_{name}{{provider=\"openai\",model=\"m\"{more}}}"))
    };
    assert_eq!(of_model("calls_total", ",outcome=\"ok\""), 3.0, "{text}");
    assert_eq!(of_model("calls_total", ",outcome=\"error\""), 1.0);
    assert_eq!(of_model("errors_total", ",code=\"model_unauthorized\""), 1.0);
    assert_eq!(of_model("retries_total", ""), 1.0);
    let tokens = |kind: &str| of_model("tokens_total", &format!(",kind=\"{kind}\""));
    assert_eq!((tokens("input"), tokens("output"), tokens("cached_input")), (3300.0, 50.0, 400.0));
    let cost = (2900.0 * 1.0 + 400.0 * 0.5 + 50.0 * 10.0) / 1e6;
    assert!((of_model("cost_total", "") - cost).abs() < 1e-9, "{text}");
    assert_eq!(
        (of_model("call_duration_seconds_count", ""), of_model("first_token_seconds_count", "")),
        (4.0, 3.0)
    );
    assert_eq!(
        value(&text, "agui_tool_calls_total{tool=\"calculator\",outcome=\"ok\"}"),
        1.0,
        "{text}"
    );
    assert_eq!(value(&text, "agui_tool_calls_total{tool=\"other\",outcome=\"refused\"}"), 1.0);
    assert!(!text.contains("made_up_tool"));
    let failed =
        "agui_runs_total{agent=\"assistant\",outcome=\"failed\",code=\"model_unauthorized\"}";
    assert_eq!(value(&text, failed), 1.0, "{text}");

    process.signal("-TERM");
    let (_, log) = process.ended();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of =
        |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    let calls = of("model call ended");
    assert_eq!(calls.len(), 4, "{log}");
    let first = calls[0];
    assert_eq!(
        (&first["level"], &first["provider"], &first["model"]),
        (&"DEBUG".into(), &"openai".into(), &"m".into())
    );
    assert_eq!(
        (&first["request_id"], &first["retries"], &first["input_tokens"]),
        (&"req-one".into(), &1.into(), &1000.into())
    );
    assert_eq!(calls[2]["request_id"], "req-three");
    assert_eq!(
        (&calls[3]["outcome"], &calls[3]["code"]),
        (&"error".into(), &"model_unauthorized".into())
    );
    let tools = of("tool call ended");
    assert_eq!((&tools[0]["tool"], &tools[0]["outcome"]), (&"calculator".into(), &"ok".into()));
    assert_eq!(tools[0]["call"], "call-1");
    let ended = of("run ended");
    assert_eq!(ended.len(), 2, "{log}");
    let good = ended[0];
    assert_eq!((&good["outcome"], &good["model"]), (&"success".into(), &"m".into()));
    assert_eq!((&good["input_tokens"], &good["output_tokens"]), (&3300.into(), &50.into()));
    assert!(
        (good["cost"].as_f64().unwrap() - cost).abs() < 1e-9 && good["first_token_millis"].is_u64(),
        "{good}"
    );
    assert_eq!(
        (&ended[1]["outcome"], &ended[1]["code"]),
        (&"failed".into(), &"model_unauthorized".into())
    );
}

#[tokio::test]
async fn the_calls_for_titles_are_counted() {
    let provider = Provider::start().await;
    for text in ["two", "A sum"] {
        provider.answer(Answer::openai(&[
            chunk(&json!({ "content": text })),
            end("stop"),
            usage(100, 10, 0),
        ]));
    }
    let (process, _folder) = start(&provider, "[threads]\ntitle_agent = \"assistant\"\n");
    run(&process, "1+1?").await;
    let calls = "agui_model_calls_total{provider=\"openai\",model=\"m\",outcome=\"ok\"}";
    eventually_async("two calls are counted", async || {
        value(&metrics(&process).await, calls) == 2.0
    })
    .await;
}

#[tokio::test]
async fn repairs_are_counted_by_partner_and_kind() {
    let provider = Provider::start().await;
    provider.answer(Answer::openai(&[end("stop")]));
    provider
        .answer(Answer::openai(&[call("calculator", "{'expression': '1+1'}"), end("tool_calls")]));
    let half = chunk(&json!({ "content": "two HALF" })).to_string().replace("HALF", "\\ud83d");
    provider.answer(Answer::stream([format!(
        "data: {half}\n\ndata: {}\n\ndata: [DONE]\n\n",
        end("stop")
    )]));
    let (process, _folder) = start(&provider, "");
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let body = input("HALF").to_string().replace("HALF", "\\ud83d");
    let run = client
        .post(format!("{}/send-message", process.url))
        .header("content-type", "application/json")
        .body(body);
    let run = run.send().await.unwrap().text().await.unwrap();
    assert!(run.contains("two ") && run.contains('\u{fffd}'), "{run}");
    let text = metrics(&process).await;
    for (partner, kind) in
        [("page", "half"), ("model", "half"), ("model", "asked_again"), ("model", "arguments")]
    {
        let name = format!("agui_repairs_total{{partner=\"{partner}\",kind=\"{kind}\"}}");
        assert_eq!(value(&text, &name), 1.0, "{name}: {text}");
    }
}
