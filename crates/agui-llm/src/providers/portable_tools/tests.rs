use futures::stream;
use serde_json::{Value, json};

use super::*;
use crate::{StopReason, ToolResult, known_models::KnownModels};
use agui_protocol::ToolCall;

fn openai() -> PortableTools {
    PortableTools::new(KnownModels::default().tool_limits("openai"))
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec::new(name, "Does it.", json!({"type": "object", "properties": {}}))
}

fn with_tools(tools: impl IntoIterator<Item = ToolSpec>) -> ModelRequest {
    ModelRequest { tools: tools.into_iter().collect(), ..ModelRequest::default() }
}

async fn called(names: SentNames, sent: &str) -> String {
    let start = ModelEvent::Start {
        index: 0,
        block: BlockStart::Call { id: "c".into(), name: sent.to_owned() },
    };
    let answer = stream::iter([Ok(start), Ok(ModelEvent::Stop(StopReason::Calls))]).boxed();
    match names.restore(answer).next().await {
        Some(Ok(ModelEvent::Start { block: BlockStart::Call { name, .. }, .. })) => name,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_name_becomes_one_that_is_taken_and_comes_back_as_its_own() {
    let long = "l".repeat(80);
    let names = ["shop.search", "shop search", "查询天气", "", "a/b", &long, "-x", "ok_name-1"];
    for limits in [openai(), PortableTools::new(KnownModels::default().tool_limits("gemini"))] {
        let mut request = with_tools(names.map(tool));
        let sent = limits.prepare(&mut request);
        let portable: Vec<_> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        assert!(portable.iter().all(|name| limits.limits.takes_name(name)), "{portable:?}");
        assert_eq!(portable.iter().collect::<HashSet<_>>().len(), names.len(), "{portable:?}");
        assert_eq!(portable[7], "ok_name-1");
        drop(sent);
        for (name, portable) in names.iter().zip(&portable) {
            let sent = limits.prepare(&mut with_tools(names.map(tool)));
            assert_eq!(called(sent, portable).await, *name);
        }
    }
}

#[tokio::test]
async fn a_name_that_another_tool_has_already_is_not_given_twice() {
    let tools = openai();
    let mut request = with_tools([tool("a.b")]);
    tools.prepare(&mut request);
    let taken = request.tools[0].name.clone();
    let mut request = with_tools([tool("a.b"), tool(&taken)]);
    let sent = tools.prepare(&mut request);
    assert_ne!(request.tools[0].name, taken);
    assert_eq!(called(sent, &taken).await, taken);
}

#[test]
fn the_names_of_the_history_and_of_the_choice_are_those_of_the_tools() {
    let calls = ["shop.search", "functions.made_up", "fine"];
    let blocks = calls.iter().map(|name| Block::Call(ToolCall::new(*name, *name, "{}"))).collect();
    let results = calls.iter().map(|name| ToolResult {
        call_id: (*name).into(),
        name: (*name).to_owned(),
        content: "r".into(),
        failed: false,
    });
    let mut request = with_tools([tool("shop.search"), tool("fine")]);
    request.steps = vec![ModelStep::Assistant(blocks), ModelStep::ToolResults(results.collect())];
    request.tool_choice = ToolChoice::Tool("shop.search".to_owned());
    openai().prepare(&mut request);
    let [ModelStep::Assistant(blocks), ModelStep::ToolResults(results)] = &request.steps[..] else {
        panic!()
    };
    let named = blocks.iter().map(|block| match block {
        Block::Call(call) => call.function.name.as_str(),
        other => panic!("{other:?}"),
    });
    let named: Vec<_> = named.collect();
    assert_eq!(named, results.iter().map(|result| result.name.as_str()).collect::<Vec<_>>());
    assert_eq!((named[0], named[2]), (&*request.tools[0].name, "fine"));
    assert!(openai().limits.takes_name(named[1]), "{named:?}");
    assert_eq!(request.tool_choice, ToolChoice::Tool(request.tools[0].name.clone()));
}

#[test]
fn a_tool_without_a_form_is_left_out_and_the_others_stay() {
    let mut strange = tool("strange");
    strange.parameters = json!({"oneOf": [{"type": "string"}]});
    let tools = openai();
    let mut request = with_tools([strange.clone(), tool("fine")]);
    request.tool_choice = ToolChoice::Tool("strange".to_owned());
    request.thread = Some(ThreadKey::default());
    tools.prepare(&mut request);
    assert_eq!(request.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["fine"]);
    assert_eq!(request.tool_choice, ToolChoice::Auto);
    let mut alone = ModelRequest { tool_choice: ToolChoice::Required, ..with_tools([strange]) };
    tools.prepare(&mut alone);
    assert!(alone.tools.is_empty() && alone.tool_choice == ToolChoice::Auto);
    assert_eq!(tools.warned.get(request.thread.as_ref(), "strange"), Some(()));
}

#[test]
fn tools_that_the_provider_takes_are_not_touched() {
    let parameters = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "type": {"type": "string", "enum": ["a"]}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let mut request = with_tools([ToolSpec::new("one", "d", parameters.clone())]);
    let before = request.tools.clone();
    let names = openai().prepare(&mut request);
    assert!(names.sent.is_empty());
    let after: &Value = &request.tools[0].parameters;
    assert_eq!(after, &before[0].parameters);
}
