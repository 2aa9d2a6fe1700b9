mod failures;
mod subagents;

use std::sync::Mutex;

use async_trait::async_trait;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};

use super::*;
use crate::{
    Artefact, Block, BlockStart, ModelEvent, ModelReasoning, ModelRequest, ModelStep, ModelStream,
    StopReason,
};
use agui_protocol::{ContentPart, Event, JsonObject, Message, MessageContent};
use agui_run::{Run, Transcript};
use agui_tools::{Approval, Tool, ToolContext, ToolError, ToolSpec};

#[derive(Clone)]
pub(super) struct Scripted {
    answers: Arc<Mutex<Vec<Vec<ModelEvent>>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Scripted {
    pub(super) fn new(answers: impl IntoIterator<Item = Vec<ModelEvent>>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            requests: Arc::default(),
        }
    }

    pub(super) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Model for Scripted {
    fn provider(&self) -> &str {
        "scripted"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let mut answers = self.answers.lock().unwrap();
        assert!(!answers.is_empty(), "the model got more requests than answers are scripted");
        stream::iter(answers.remove(0).into_iter().map(Ok)).boxed()
    }
}

pub(super) fn text(index: usize, text: &str) -> Vec<ModelEvent> {
    vec![
        ModelEvent::Start { index, block: BlockStart::Text },
        ModelEvent::Delta { index, text: text.to_owned() },
        ModelEvent::End { index, artefact: None },
    ]
}

pub(super) fn call(index: usize, id: &str, name: &str, arguments: &str) -> Vec<ModelEvent> {
    let block = BlockStart::Call { id: id.into(), name: name.to_owned() };
    vec![
        ModelEvent::Start { index, block },
        ModelEvent::Delta { index, text: arguments.to_owned() },
        ModelEvent::End { index, artefact: None },
    ]
}

pub(super) fn done(blocks: impl IntoIterator<Item = Vec<ModelEvent>>) -> Vec<ModelEvent> {
    let mut events = blocks.into_iter().collect::<Vec<_>>().concat();
    events.push(ModelEvent::Stop(StopReason::Done));
    events
}

struct Increment(ToolSpec, Approval);

pub(super) fn increment(approval: Approval) -> Toolbox {
    let parameters = json!({
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"]
    });
    let spec = ToolSpec { name: "increment".into(), description: "Adds one.".into(), parameters };
    Toolbox::new().tool(Increment(spec, approval))
}

#[async_trait]
impl Tool for Increment {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn approval(&self, _: &JsonObject) -> Approval {
        self.1.clone()
    }

    async fn call(
        &self,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<MessageContent, ToolError> {
        assert_eq!((cx.thread_id().as_str(), cx.tool_name()), ("t", "increment"));
        match arguments["n"].as_i64() {
            Some(13) => Err(ToolError::new("unlucky")),
            Some(99) => std::future::pending().await,
            n => Ok((n.unwrap() + 1).to_string().into()),
        }
    }
}

pub(super) struct PlayedRun {
    /// Without the run's frame and its steps, each as a short text.
    pub(super) events: Vec<String>,
    pub(super) end: Value,
    pub(super) messages: Vec<Message>,
    pub(super) state: Value,
}

pub(super) fn play(agent: LlmAgent, input: RunAgentInput) -> PlayedRun {
    let mut transcript = Transcript::new(input.messages.clone(), input.state_or_empty());
    let run = Run::alone(Arc::new(agent), input);
    let events: Vec<Event> = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(run.into_events().collect());
    events.iter().for_each(|event| transcript.apply(event));
    let mut shown: Vec<_> =
        events.iter().map(short).filter(|line| !line.contains("STEP_")).collect();
    shown.remove(0);
    shown.pop();
    let end = serde_json::to_value(events.last().unwrap()).unwrap();
    PlayedRun {
        events: shown,
        end,
        messages: transcript.messages().to_vec(),
        state: transcript.state().clone(),
    }
}

fn short(event: &Event) -> String {
    let json = serde_json::to_value(event).unwrap();
    let what =
        ["toolCallName", "delta", "content", "snapshot", "name", "message", "encryptedValue"]
            .map(|key| json.get(key));
    let by = if event.subagent_run_id().is_some() { "> " } else { "" };
    let what: String = what.into_iter().flatten().map(|value| format!(" {value}")).collect();
    format!("{by}{}{what}", event.event_type().as_str())
}

pub(super) fn says(text: &str) -> Vec<String> {
    vec![
        "TEXT_MESSAGE_START".into(),
        format!("TEXT_MESSAGE_CONTENT {text:?}"),
        "TEXT_MESSAGE_END".into(),
    ]
}

pub(super) fn calls(name: &str, arguments: &str) -> Vec<String> {
    vec![
        format!("TOOL_CALL_START {name:?}"),
        format!("TOOL_CALL_ARGS {arguments:?}"),
        "TOOL_CALL_END".into(),
    ]
}

pub(super) fn result(text: &str) -> Vec<String> {
    vec![format!("TOOL_CALL_RESULT {text:?}")]
}

pub(super) fn ask(text: &str) -> RunAgentInput {
    RunAgentInput::new("t", "r", vec![Message::user("u", text)])
}

pub(super) fn next(played: &PlayedRun, resume: Value) -> RunAgentInput {
    let mut input = RunAgentInput::new("t", "r2", played.messages.clone());
    input.resume = serde_json::from_value(resume).unwrap();
    input
}

pub(super) fn results(request: &ModelRequest) -> Vec<(String, bool)> {
    let results = request.steps.iter().filter_map(|step| match step {
        ModelStep::ToolResults(results) => Some(results),
        _ => None,
    });
    results.flatten().map(|result| (result.content.text().into_owned(), result.failed)).collect()
}

#[test]
fn a_model_gets_prompt_context_and_conversation_and_its_text_is_streamed() {
    let model = Scripted::new([done([text(0, "Hello!")])]);
    let mut input = ask("Hi");
    input.context = vec![agui_protocol::Context { description: "page".into(), value: "42".into() }];
    input.forwarded_props = Some(json!({ "enableDeepThinking": true }));
    let played = play(LlmAgent::new(model.clone()).system_prompt("Be kind."), input);
    assert_eq!(played.events, says("Hello!"));
    assert_eq!(played.end["outcome"], json!({ "type": "success" }));
    let [request] = &model.requests()[..] else { panic!() };
    assert_eq!(request.system, ["Be kind."]);
    assert_eq!(request.current, ["What the application says about the situation:\n- page: 42"]);
    assert_eq!(request.steps, [ModelStep::User(vec![ContentPart::text("Hi")])]);
    assert_eq!(request.thinking, Some(true));
}

#[test]
fn after_a_tools_result_the_model_is_asked_again() {
    let model = Scripted::new([
        done([text(0, "Let me see."), call(1, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "It is 2.")]),
    ]);
    let played =
        play(LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded)), ask("1+1?"));
    let expected =
        [says("Let me see."), calls("increment", r#"{"n":1}"#), result("2"), says("It is 2.")];
    assert_eq!(played.events, expected.concat());
    assert_eq!(played.end["outcome"], json!({ "type": "success" }));
    let asked = model.requests();
    assert_eq!(asked[0].tools[0].name, "increment");
    assert_eq!(results(&asked[1]), [("2".to_owned(), false)]);
    assert_eq!(played.messages.len(), 4);
    assert_eq!(asked[1].steps, history(&played.messages[..3]));
}

fn history(messages: &[Message]) -> Vec<ModelStep> {
    crate::history::steps(messages)
}

#[test]
fn calls_of_an_applications_tool_are_left_to_the_application() {
    let model = Scripted::new([done([
        call(0, "c", "pick", "{}"),
        call(1, "d", "increment", r#"{"n":1}"#),
    ])]);
    let mut input = ask("pick");
    input.tools = serde_json::from_value(json!([{ "name": "pick", "description": "" }])).unwrap();
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), input);
    assert_eq!(
        played.events,
        [calls("pick", "{}"), calls("increment", r#"{"n":1}"#), result("2")].concat()
    );
    assert_eq!(played.end["outcome"], json!({ "type": "success", "pendingToolCallIds": ["c"] }));
}

#[test]
fn an_applications_tool_goes_before_the_servers_of_the_same_name() {
    let model = Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)])]);
    let mut input = ask("1+1?");
    input.tools =
        serde_json::from_value(json!([{ "name": "increment", "description": "mine" }])).unwrap();
    let played = play(LlmAgent::new(model.clone()).tools(increment(Approval::Needed)), input);
    assert_eq!(played.end["outcome"]["pendingToolCallIds"], json!(["c"]));
    assert_eq!(
        model.requests()[0].tools.iter().map(|tool| &*tool.description).collect::<Vec<_>>(),
        ["mine"]
    );
}

#[test]
fn reasoning_is_streamed_and_its_artefact_is_sent_back() {
    let thought = vec![
        ModelEvent::Start { index: 0, block: BlockStart::Reasoning { redacted: false } },
        ModelEvent::Delta { index: 0, text: "hm".into() },
        ModelEvent::End { index: 0, artefact: Some(Artefact::new("test.signature", "sig")) },
    ];
    let hidden = vec![
        ModelEvent::Start { index: 1, block: BlockStart::Reasoning { redacted: true } },
        ModelEvent::End {
            index: 1,
            artefact: Some(Artefact::new("test.redacted_thinking", "hidden")),
        },
    ];
    let model = Scripted::new([
        done([thought, hidden, call(2, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "2")]),
        done([text(0, "Bye")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded));
    let played = play(agent.clone(), ask("?"));
    let reasoned = [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT \"hm\"",
        "REASONING_MESSAGE_END",
        "REASONING_ENCRYPTED_VALUE \"sig\"",
        "REASONING_END",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_END",
        "REASONING_ENCRYPTED_VALUE \"hidden\"",
        "REASONING_END",
    ];
    assert_eq!(played.events[..reasoned.len()], reasoned);
    let types: Vec<_> =
        played.messages.iter().filter_map(|message| message.encrypted_value().1).collect();
    assert_eq!(types, ["test.signature", "test.redacted_thinking"]);
    let block = |text: &str, artefact: &str, redacted| {
        let (artefact, provider) = (Some(artefact.to_owned()), Some("scripted".to_owned()));
        Block::Reasoning(ModelReasoning { text: text.to_owned(), artefact, redacted, provider })
    };
    play(agent, next(&played, json!([])));
    for request in &model.requests()[1..] {
        let ModelStep::Assistant(blocks) = &request.steps[1] else { panic!("{request:?}") };
        assert_eq!(blocks[..2], [block("hm", "sig", false), block("", "hidden", true)]);
        assert!(matches!(&blocks[2], Block::Call(call) if call.id == "c"));
    }
}

#[test]
fn the_model_changes_the_state_and_sees_the_change() {
    let model = Scripted::new([
        done([call(0, "c", "update_state", r#"{"patch":[{"op":"add","path":"/n","value":1}]}"#)]),
        done([text(0, "Done.")]),
    ]);
    let played = play(LlmAgent::new(model.clone()).updates_state(true), ask("?"));
    assert!(
        played.events.iter().any(|line| line.starts_with("STATE_DELTA")),
        "{:?}",
        played.events
    );
    assert_eq!(played.state, json!({ "n": 1 }));
    assert!(model.requests()[0].current[0].ends_with("{}"));
    assert!(model.requests()[1].current[0].ends_with(r#"{"n":1}"#));
}

#[test]
fn a_call_waits_for_an_approval_and_runs_as_decided() {
    for (answer, expected, failed) in [
        (json!({ "approved": true }), "2", false),
        (json!({ "approved": true, "editedArgs": { "n": 41 } }), "42", false),
        (json!({ "approved": true, "editedArgs": { "n": "x" } }), "Error: ", true),
        (
            json!({ "approved": false, "reason": "no sums" }),
            "The user declined this call: no sums",
            true,
        ),
        (json!({ "approved": false }), "The user declined this call.", true),
        (
            json!({ "approved": "true" }),
            "The call was not run: the user's answer was unclear.",
            true,
        ),
    ] {
        let model = Scripted::new([
            done([call(0, "c", "increment", r#"{"n":1}"#)]),
            done([text(0, "So.")]),
        ]);
        let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
        let asked = play(agent.clone(), ask("1+1?"));
        assert_eq!(asked.events.last().unwrap(), "TOOL_CALL_END", "the call ran without approval");
        let interrupt = &asked.end["outcome"]["interrupts"][0];
        assert_eq!(
            (&interrupt["reason"], &interrupt["toolCallId"]),
            (&json!("tool_call"), &json!("c"))
        );
        let again = play(agent.clone(), next(&asked, json!([])));
        assert_eq!((again.events.len(), &again.end["outcome"]), (0, &asked.end["outcome"]));
        let entry =
            json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": answer }]);
        let played = play(agent, next(&asked, entry));
        assert!(
            played.events[0].starts_with(&format!("TOOL_CALL_RESULT \"{expected}")),
            "{:?}",
            played.events
        );
        assert_eq!(played.events[1..], says("So."));
        assert_eq!(results(&model.requests()[1])[0].1, failed);
        if expected == "42" {
            let ModelStep::Assistant(said) = &model.requests()[1].steps[1] else { panic!() };
            assert!(
                matches!(&said[0], Block::Call(call) if call.function.arguments == r#"{"n":41}"#)
            );
        }
    }
}

#[test]
fn an_approval_that_is_also_in_the_conversation_runs_the_call_once() {
    let model = Scripted::new([
        done([call(0, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "So.")]),
        done([text(0, "Again.")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
    let mut asked = play(agent.clone(), ask("1+1?"));
    // Some pages send the answer like this.
    let echo = json!({ "id": "echo", "role": "tool", "toolCallId": "c", "content": r#"{"approved":true}"# });
    asked.messages.push(serde_json::from_value(echo).unwrap());
    let id = &asked.end["outcome"]["interrupts"][0]["id"];
    let entry =
        json!([{ "interruptId": id, "status": "resolved", "payload": { "approved": true } }]);
    let played = play(agent.clone(), next(&asked, entry.clone()));
    assert_eq!(played.events, [result("2"), says("So.")].concat());
    assert_eq!(results(&model.requests()[1]), [("2".to_owned(), false)]);
    let again = play(agent, next(&played, entry));
    assert_eq!(again.events, says("Again."));
}

#[test]
fn a_call_without_approval_runs_at_once_and_a_cancelled_one_never() {
    let model = Scripted::new([
        done([call(0, "c", "increment", r#"{"n":1}"#), call(1, "d", "add_state", "{}")]),
        done([text(0, "So.")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
    let asked = play(agent.clone(), ask("?"));
    assert_eq!(
        asked.events.last().unwrap(),
        &result("Error: there is no tool \\\"add_state\\\"")[0].replace("\\\\\\", "\\")
    );
    let id = &asked.end["outcome"]["interrupts"][0]["id"];
    let entry = json!([{ "interruptId": id, "status": "cancelled" }, { "interruptId": "approval:other:c", "status": "cancelled" }]);
    let played = play(agent, next(&asked, entry));
    assert_eq!(played.events[0], result("The call was not run: the user did not approve it.")[0]);
}
