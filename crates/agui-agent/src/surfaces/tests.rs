use serde_json::{Value, json};

use super::*;
use crate::{A2ui, A2uiAgent, emit::ToolCallEvents, events};
use agui_protocol::{ToolDefinition, event::ToolCallChunk, patch};

fn offering(tool: &str) -> RunAgentInput {
    let mut input = RunAgentInput::new("t", "r", vec![]);
    input.tools.push(ToolDefinition {
        name: tool.to_owned(),
        description: String::new(),
        parameters: None,
        metadata: None,
    });
    input
}

async fn play(agent: impl Agent, input: RunAgentInput) -> Vec<Value> {
    let (mut input, mut cx) = (input, RunContext::new("t", "r", "a"));
    let mut drawing = begin(&agent, &mut input, &mut cx);
    let events = agent.run(input, cx);
    let events = match &mut drawing {
        Some(drawing) => drawing.draw(events),
        None => events,
    };
    let mut played: Vec<_> = events
        .map(|event| event.map_or_else(|error| json!(error.code()), |event| json!(event)))
        .collect()
        .await;
    let stopped = drawing.map(|mut drawing| drawing.stop()).unwrap_or_default();
    played.extend(stopped.into_iter().map(|event| json!(event)));
    played
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().or(event.as_str()).unwrap()).collect()
}

/// Returns the content of an activity after all its events.
fn content_of(events: &[Value], id: &str) -> Value {
    let mut content = Value::Null;
    for event in events.iter().filter(|event| event["messageId"] == id) {
        if event["type"] == "ACTIVITY_SNAPSHOT" {
            content.clone_from(&event["content"]);
        } else {
            let patch: Vec<_> = serde_json::from_value(event["patch"].clone()).unwrap();
            drop(patch::apply(&mut content, &patch).unwrap());
        }
    }
    content
}

/// Calls a tool with arguments in pieces of `size` bytes.
fn calling(tool: &str, arguments: &Value, size: usize) -> Vec<Event> {
    let call = ToolCallEvents::with_id("c", tool);
    let text = arguments.to_string();
    let pieces =
        text.as_bytes().chunks(size).map(|piece| call.delta(String::from_utf8_lossy(piece)));
    [call.start()].into_iter().chain(pieces).chain([call.end()]).collect()
}

#[tokio::test]
async fn html_of_a_call_is_an_activity_that_grows_while_the_arguments_stream_in() {
    let arguments = json!({
        "initialHeight": 120, "css": "p {}", "html": "<p>\"Hi\"</p>", "jsFunctions": "", "jsExpressions": ["a()", "b()"],
        "placeholderMessages": ["Wait"], "other": [1],
    });
    for size in [1, 3, 1000] {
        let calls = calling("generateSandboxedUi", &arguments, size);
        let played = play(move |_, _| events(calls.clone()), offering("generateSandboxedUi")).await;
        let of_call = types(&played);
        assert_eq!(of_call[..2], ["ACTIVITY_SNAPSHOT", "TOOL_CALL_START"]);
        assert_eq!(of_call[of_call.len() - 2..], ["ACTIVITY_DELTA", "TOOL_CALL_END"]);
        let mut content = content_of(&played, "c-activity");
        let html = content["html"].take();
        let html: String =
            html.as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect();
        assert_eq!(html, "<p>\"Hi\"</p>");
        let expected = json!({
            "generating": false, "initialHeight": 120, "css": "p {}", "cssComplete": true, "html": null,
            "htmlComplete": true, "jsFunctions": "", "jsFunctionsComplete": true, "jsExpressions": ["a()", "b()"],
            "jsExpressionsComplete": true, "placeholderMessages": ["Wait"],
        });
        assert_eq!(content, expected);
    }
}

#[tokio::test]
async fn nothing_is_made_of_a_call_if_the_page_does_not_offer_the_tool_or_its_app_asks() {
    let calls = calling("generateSandboxedUi", &json!({ "html": "x" }), 9);
    let agent = move |_: RunAgentInput, _: RunContext| events(calls.clone());
    let mut of_app = offering("generateSandboxedUi");
    of_app.forwarded_props = Some(json!({ "__proxiedMCPRequest": {} }));
    for input in [offering("other"), of_app] {
        let played = play(agent.clone(), input).await;
        assert!(types(&played).iter().all(|kind| kind.starts_with("TOOL_CALL")));
    }
}

#[tokio::test]
async fn an_activity_ends_with_its_chunks_and_with_a_failure() {
    let chunk = |id: Option<&str>, name: Option<&str>, delta: &str| {
        let (tool_call_id, tool_call_name) = (id.map(Into::into), name.map(str::to_owned));
        Event::from(ToolCallChunk {
            tool_call_id,
            tool_call_name,
            delta: Some(delta.to_owned()),
            ..Default::default()
        })
    };
    let agent = move |_: RunAgentInput, _: RunContext| {
        let first = [
            chunk(Some("c"), Some("generateSandboxedUi"), r#"{"html":"#),
            chunk(None, None, r#""<b>"#),
            chunk(Some("c"), None, r#"x"}"#),
            chunk(Some("d"), Some("generateSandboxedUi"), r#"{"html":"half"#),
        ];
        let failed = Err(crate::AgentError::new("broken", "it broke"));
        event_stream(futures::stream::iter(first.map(Ok).into_iter().chain([failed])))
    };
    let played = play(agent, offering("generateSandboxedUi")).await;
    assert_eq!(types(&played)[types(&played).len() - 2..], ["broken", "ACTIVITY_DELTA"]);
    assert_eq!(
        content_of(&played, "c-activity"),
        json!({ "generating": false, "html": ["<b>", "x"], "htmlComplete": true })
    );
    assert_eq!(content_of(&played, "d-activity"), json!({ "generating": false, "html": ["half"] }));
}

#[tokio::test]
async fn arguments_of_other_types_leave_the_page_as_it_is() {
    let arguments = json!({ "html": null, "css": 1, "jsFunctions": [], "jsExpressions": "a", "initialHeight": "1" });
    let calls = calling("generateSandboxedUi", &arguments, 5);
    let played = play(move |_, _| events(calls.clone()), offering("generateSandboxedUi")).await;
    assert_eq!(content_of(&played, "c-activity"), json!({ "generating": false }));
}

fn with_surfaces() -> RunAgentInput {
    let mut input = RunAgentInput::new("t", "r", vec![]);
    input.forwarded_props = Some(json!({ "a2uiCatalogAvailable": true }));
    input
}

fn operations(surface: &str) -> Vec<Value> {
    vec![
        json!({ "version": "v0.9", "createSurface": { "surfaceId": surface, "catalogId": "c" } }),
        json!({ "version": "v0.9", "updateComponents": { "surfaceId": surface, "components": [] } }),
    ]
}

async fn result_of(content: String, input: RunAgentInput) -> Vec<Value> {
    let call = ToolCallEvents::with_id("c", "show");
    let all = vec![call.start(), call.delta("{}"), call.end(), call.result(content)];
    play(move |_, _| events(all.clone()), input).await
}

#[tokio::test]
async fn a_result_with_operations_paints_each_of_its_surfaces_also_if_it_is_encoded_twice() {
    let one = json!({ "a2ui_operations": operations("a") });
    for content in [one.to_string(), json!(one.to_string()).to_string()] {
        let played = result_of(content, with_surfaces()).await;
        assert_eq!(types(&played)[3..], ["TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT"]);
        assert_eq!(content_of(&played, "a2ui-surface-c"), one);
        assert_eq!(
            (&played[4]["activityType"], &played[4]["replace"]),
            (&json!("a2ui-surface"), &json!(true))
        );
    }
    let two = json!({ "a2ui_operations": ([operations("a"), operations("b")].concat()) });
    let played = result_of(two.to_string(), with_surfaces()).await;
    for (id, surface) in [("a2ui-surface-c-0", "a"), ("a2ui-surface-c-1", "b")] {
        assert_eq!(content_of(&played, id), json!({ "a2ui_operations": operations(surface) }));
    }
}

#[tokio::test]
async fn other_results_and_results_of_runs_without_a2ui_paint_nothing() {
    let one = json!({ "a2ui_operations": operations("a") }).to_string();
    let mut of_app = with_surfaces();
    of_app.forwarded_props.as_mut().unwrap()["__proxiedMCPRequest"] = json!({});
    for (content, input) in [
        (one.clone(), RunAgentInput::new("t", "r", vec![])),
        (one, of_app),
        ("a2ui_operations".to_owned(), with_surfaces()),
        (r#"{"a2ui_operations": {}}"#.to_owned(), with_surfaces()),
        (r#"{"a2ui_operations": []}"#.to_owned(), with_surfaces()),
        (r#"{"other": "a2ui_operations"}"#.to_owned(), with_surfaces()),
    ] {
        assert_eq!(types(&result_of(content.clone(), input).await).len(), 4, "{content}");
    }
}

fn render(id: &str, parent: &str, surface: &str) -> Vec<Event> {
    let components = json!([{ "id": "root", "component": "Text", "text": "x" }]);
    let arguments = json!({ "surfaceId": surface, "components": components }).to_string();
    let call = ToolCallEvents::with_id(id, "render_a2ui");
    let call = call.within(&crate::emit::TextMessage::with_id(parent));
    vec![call.start(), call.delta(arguments), call.end()]
}

#[tokio::test]
async fn a_surface_that_is_rendered_within_a_tool_has_the_id_of_that_tools_call_and_is_painted_once()
 {
    let outer =
        ToolCallEvents::with_id("o", "generate").within(&crate::emit::TextMessage::with_id("m"));
    let result = outer.result(json!({ "a2ui_operations": operations("s") }).to_string());
    let all = [vec![outer.start(), outer.end()], render("i", "n", "s"), vec![result]].concat();
    let played = play(move |_, _| events(all.clone()), with_surfaces()).await;
    let painted = played.iter().filter(|event| event["content"]["a2ui_operations"].is_array());
    assert_eq!(painted.map(|event| &event["messageId"]).collect::<Vec<_>>(), ["a2ui-surface-o"]);
    // Calls of one message do not contain each other.
    let other =
        ToolCallEvents::with_id("o", "search").within(&crate::emit::TextMessage::with_id("m"));
    let all =
        [vec![other.start(), other.end()], render("i", "m", "s"), render("j", "m", "t")].concat();
    let played = play(move |_, _| events(all.clone()), with_surfaces()).await;
    assert!(content_of(&played, "a2ui-surface-i")["a2ui_operations"].is_array());
    assert!(content_of(&played, "a2ui-surface-j")["a2ui_operations"].is_array());
}

#[tokio::test]
async fn a_call_that_its_agent_leaves_to_the_front_end_is_answered_at_the_end_of_a_successful_run()
{
    let all = render("c", "m", "s");
    let interrupted = all.clone();
    let played = play(move |_, _| events(all.clone()), with_surfaces()).await;
    let last = played.last().unwrap();
    assert_eq!(
        (&last["type"], &last["content"]),
        (&json!("TOOL_CALL_RESULT"), &json!(r#"{"status":"rendered"}"#))
    );
    for outcome in [RunOutcome::Interrupt { interrupts: Vec::new() }, RunOutcome::Cancelled] {
        let finished =
            agui_protocol::event::RunFinished::new("t".into(), "r".into(), outcome).into();
        let all = [interrupted.clone(), vec![finished]].concat();
        let played = play(move |_, _| events(all.clone()), with_surfaces()).await;
        assert_eq!(types(&played)[types(&played).len() - 2..], ["TOOL_CALL_END", "RUN_FINISHED"]);
    }
}

#[tokio::test]
async fn a_faulty_surface_that_its_agent_does_not_correct_has_failed_at_the_end() {
    for arguments in ["{\"components\": [{}]}", "{\"components\": [", "nonsense", ""] {
        let call = ToolCallEvents::with_id("c", "render_a2ui");
        let all = vec![call.start(), call.delta(arguments), call.end()];
        let played = play(move |_, _| events(all.clone()), with_surfaces()).await;
        assert_eq!(content_of(&played, "a2ui-surface-c")["status"], "failed", "{arguments}");
    }
}

#[tokio::test]
async fn configured_components_and_catalogs_go_before_those_of_the_page_and_false_refuses_the_page()
{
    let schema = json!({ "catalogId": "mine", "components": { "Text": { "required": ["text"] } } });
    let echo = |input: RunAgentInput, _: RunContext| {
        let mut all = render("c", "m", "s");
        all.push(crate::emit::state::snapshot(
            json!({ "tools": input.tools, "context": input.context }),
        ));
        events(all)
    };
    let mut input = with_surfaces();
    input.tools = offering("render_a2ui").tools;
    let played = play(A2uiAgent::new(echo, A2ui::enabled(false)), input.clone()).await;
    assert_eq!(
        types(&played),
        ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "STATE_SNAPSHOT"]
    );
    input.forwarded_props = None;
    let on = A2ui::enabled(true).schema(&schema).unwrap();
    for (options, catalog) in [(on.clone(), "mine"), (on.catalog("other"), "other")] {
        let played = play(A2uiAgent::new(echo, options), input.clone()).await;
        let painted = content_of(&played, "a2ui-surface-c");
        assert_eq!(painted["a2ui_operations"][0]["createSurface"]["catalogId"], catalog);
        let state =
            &played.iter().find(|event| event["type"] == "STATE_SNAPSHOT").unwrap()["snapshot"];
        assert_eq!(
            state["tools"].as_array().unwrap().len(),
            1,
            "the page's tool of this name is replaced"
        );
        assert_eq!(state["tools"][0]["parameters"]["required"], json!(["surfaceId", "components"]));
        assert!(state["context"][0]["value"].as_str().unwrap().contains("\"mine\""));
    }
    assert!(A2ui::enabled(true).schema(&json!({ "components": {} })).is_err());
}

#[tokio::test]
async fn an_agent_in_rust_shows_a_surface_and_replaces_it_if_the_run_renders_surfaces() {
    let text = |text: &str| json!([{ "id": "root", "component": "Text", "text": text }]);
    let agent = crate::agent_fn(move |_: RunAgentInput, out: crate::Emitter| async move {
        if !out.surface("s", text("one"), json!({})).await? {
            return out.text("none").await;
        }
        out.surface("s", text("two"), json!({ "n": 1 })).await?;
        out.surface("s", json!([{ "id": "a" }]), json!({})).await.map(drop)
    });
    let played = play(agent.clone(), with_surfaces()).await;
    assert_eq!(types(&played), ["ACTIVITY_SNAPSHOT", "ACTIVITY_SNAPSHOT", "invalid_surface"]);
    assert_eq!(played[0]["messageId"], played[1]["messageId"]);
    let id = played[1]["messageId"].as_str().unwrap();
    assert_eq!(id, "a2ui-surface-r-s");
    let surface = json!({ "surfaceId": "s", "catalogId": "https://a2ui.org/specification/v0_9/basic_catalog.json" });
    let expected = json!({ "a2ui_operations": [
        { "version": "v0.9", "createSurface": surface },
        { "version": "v0.9", "updateComponents": { "surfaceId": "s", "components": text("two") } },
        { "version": "v0.9", "updateDataModel": { "surfaceId": "s", "path": "/", "value": { "n": 1 } } },
    ] });
    assert_eq!(content_of(&played, id), expected);
    assert_eq!(
        (&played[1]["activityType"], &played[1]["replace"]),
        (&json!("a2ui-surface"), &json!(true))
    );
    let played = play(agent, RunAgentInput::new("t", "r", vec![])).await;
    assert_eq!(types(&played), ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]);
}

#[test]
fn the_operations_of_a_surface_are_those_of_the_oracle() {
    use ag_ui_a2ui::{message::Component, toolkit::ops};
    let components = [json!({ "id": "root", "component": "Text", "text": { "path": "/n" } })];
    for data in [None, Some(json!({ "n": "x" }))] {
        let mut spec = ops::SurfaceSpec::new("s").with_catalog_id("c");
        spec.components =
            vec![Component::new("root", "Text").with("text", json!({ "path": "/n" }))];
        spec.data_model.clone_from(&data);
        let expected = json!({ "a2ui_operations": ops::assemble_ops(ops::Intent::Create, &spec) });
        assert_eq!(surface::operations("s", "c", &components, data), expected);
    }
}

#[tokio::test]
async fn the_bytes_of_all_snapshots_of_a_long_list_stay_in_proportion_to_the_call() {
    let components = json!([{ "id": "root", "component": "Column", "children": { "componentId": "root2", "path": "/rows" } },
        { "id": "root2", "component": "Text", "text": "x" }]);
    let rows: Vec<_> = (0..20_000).collect();
    let data = json!({ "rows": rows }).to_string();
    let arguments = format!("{{\"surfaceId\":\"s\",\"components\":{components},\"data\":{data}}}");
    let call = ToolCallEvents::with_id("c", "render_a2ui");
    let pieces =
        arguments.as_bytes().chunks(10).map(|piece| call.delta(String::from_utf8_lossy(piece)));
    let all: Vec<_> = [call.start()].into_iter().chain(pieces).chain([call.end()]).collect();
    let played = play(move |_, _| events(all.clone()), with_surfaces()).await;
    let snapshots = played.iter().filter(|event| event["type"] == "ACTIVITY_SNAPSHOT");
    let bytes: usize = snapshots.map(|event| event.to_string().len()).sum();
    assert!(bytes < 40 * arguments.len(), "{bytes} bytes for {}", arguments.len());
    let painted = content_of(&played, "a2ui-surface-c");
    assert_eq!(
        painted["a2ui_operations"][2]["updateDataModel"]["value"]["rows"].as_array().unwrap().len(),
        20_000
    );
}

proptest::proptest! {
    #[test]
    fn any_split_of_a_call_gives_the_same_last_surface(
        rows in proptest::collection::vec("\\PC{0,8}", 0..6), size in 1usize..60, data_first: bool,
    ) {
        let rows: Vec<_> = rows.iter().map(|row| json!({ "name": row })).collect();
        let components = json!([{ "id": "root", "component": "Column", "children": { "componentId": "é", "path": "/rows" } },
            { "id": "é", "component": "Text", "text": { "path": "name" } }]);
        let mut members = [format!("\"surfaceId\":\"s\",\"components\":{components}"), format!("\"data\":{}", json!({ "rows": rows }))];
        if data_first {
            members.reverse();
        }
        let arguments = format!("{{{}}}", members.join(","));
        let chars: Vec<char> = arguments.chars().collect();
        let call = ToolCallEvents::with_id("c", "render_a2ui");
        let pieces = chars.chunks(size).map(|piece| call.delta(String::from_iter(piece)));
        let all: Vec<_> = [call.start()].into_iter().chain(pieces).chain([call.end()]).collect();
        let played = futures::executor::block_on(play(move |_, _| events(all.clone()), with_surfaces()));
        let painted = content_of(&played, "a2ui-surface-c");
        proptest::prop_assert_eq!(&painted["a2ui_operations"][1]["updateComponents"]["components"], &components);
        proptest::prop_assert_eq!(&painted["a2ui_operations"][2]["updateDataModel"]["value"]["rows"], &json!(rows));
    }
}
