use std::sync::Mutex;

use async_trait::async_trait;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};

use super::*;
use crate::{
    agent::emit::TextMessage,
    llm::{
        AssistantTurn, Block, BlockStart, ModelError, ModelEvent, ModelRequest, ModelStream, ReasoningBlock,
        StopReason, Turn,
    },
    protocol::{ContentPart, Event, JsonObject, Message, MessageContent, TokenUsage},
    run::{Run, Transcript},
    tools::{Approval, Tool, ToolContext, ToolError, ToolSpec},
};

/// A model that says what it is told to, and remembers what it was asked.
#[derive(Clone)]
struct Scripted {
    answers: Arc<Mutex<Vec<Vec<ModelEvent>>>>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Vec<ModelEvent>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().unwrap().clone()
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
        self.asked.lock().unwrap().push(request);
        let mut answers = self.answers.lock().unwrap();
        assert!(!answers.is_empty(), "the model was asked too often");
        stream::iter(answers.remove(0).into_iter().map(Ok)).boxed()
    }
}

fn text(index: usize, text: &str) -> Vec<ModelEvent> {
    vec![
        ModelEvent::Start { index, block: BlockStart::Text },
        ModelEvent::Delta { index, text: text.to_owned() },
        ModelEvent::End { index, artefact: None },
    ]
}

fn call(index: usize, id: &str, name: &str, arguments: &str) -> Vec<ModelEvent> {
    let block = BlockStart::Call { id: id.into(), name: name.to_owned() };
    vec![
        ModelEvent::Start { index, block },
        ModelEvent::Delta { index, text: arguments.to_owned() },
        ModelEvent::End { index, artefact: None },
    ]
}

fn done(blocks: impl IntoIterator<Item = Vec<ModelEvent>>) -> Vec<ModelEvent> {
    let mut events = blocks.into_iter().collect::<Vec<_>>().concat();
    events.push(ModelEvent::Stop(StopReason::Done));
    events
}

/// Adds one to `n`. `approval` says whether somebody has to agree.
struct Increment(ToolSpec, Approval);

fn increment(approval: Approval) -> Toolbox {
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

    async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        assert_eq!((cx.thread_id().as_str(), cx.tool_name()), ("t", "increment"));
        match arguments["n"].as_i64() {
            Some(13) => Err(ToolError::new("unlucky")),
            Some(99) => std::future::pending().await,
            n => Ok((n.unwrap() + 1).to_string().into()),
        }
    }
}

struct Played {
    /// The events but for the run's frame and its steps, each as short as it can be told.
    told: Vec<String>,
    /// How the run ended.
    end: Value,
    /// What the client holds.
    messages: Vec<Message>,
    state: Value,
}

fn play(agent: LlmAgent, input: RunAgentInput) -> Played {
    let mut transcript = Transcript::new(input.messages.clone(), input.state_or_empty());
    let run = Run::alone(Arc::new(agent), input);
    let events: Vec<Event> = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(run.into_events().collect());
    events.iter().for_each(|event| transcript.apply(event));
    let mut told: Vec<_> = events.iter().map(tell).filter(|line| !line.contains("STEP_")).collect();
    told.remove(0);
    told.pop();
    let end = serde_json::to_value(events.last().unwrap()).unwrap();
    Played { told, end, messages: transcript.messages().to_vec(), state: transcript.state().clone() }
}

fn tell(event: &Event) -> String {
    let json = serde_json::to_value(event).unwrap();
    let what =
        ["toolCallName", "delta", "content", "snapshot", "name", "message", "encryptedValue"].map(|key| json.get(key));
    let by = if event.subagent_run_id().is_some() { "> " } else { "" };
    let what: String = what.into_iter().flatten().map(|value| format!(" {value}")).collect();
    format!("{by}{}{what}", event.event_type().as_str())
}

fn says(text: &str) -> Vec<String> {
    vec!["TEXT_MESSAGE_START".into(), format!("TEXT_MESSAGE_CONTENT {text:?}"), "TEXT_MESSAGE_END".into()]
}

fn calls(name: &str, arguments: &str) -> Vec<String> {
    vec![format!("TOOL_CALL_START {name:?}"), format!("TOOL_CALL_ARGS {arguments:?}"), "TOOL_CALL_END".into()]
}

fn result(text: &str) -> Vec<String> {
    vec![format!("TOOL_CALL_RESULT {text:?}")]
}

fn ask(text: &str) -> RunAgentInput {
    RunAgentInput::new("t", "r", vec![Message::user("u", text)])
}

/// The run that follows, with everything that the client holds.
fn next(played: &Played, resume: Value) -> RunAgentInput {
    let mut input = RunAgentInput::new("t", "r2", played.messages.clone());
    input.resume = serde_json::from_value(resume).unwrap();
    input
}

fn results(request: &ModelRequest) -> Vec<(String, bool)> {
    let results = request.turns.iter().filter_map(|turn| match turn {
        Turn::ToolResults(results) => Some(results),
        _ => None,
    });
    results.flatten().map(|result| (result.content.text().into_owned(), result.failed)).collect()
}

#[test]
fn a_model_is_asked_and_what_it_says_is_told() {
    let model = Scripted::new([done([text(0, "Hello!")])]);
    let mut input = ask("Hi");
    input.context = vec![crate::protocol::Context { description: "page".into(), value: "42".into() }];
    input.forwarded_props = Some(json!({ "enableDeepThinking": true }));
    let played = play(LlmAgent::new(model.clone()).system_prompt("Be kind."), input);
    assert_eq!(played.told, says("Hello!"));
    assert_eq!(played.end["outcome"], json!({ "type": "success" }));
    let [request] = &model.asked()[..] else { panic!() };
    assert_eq!(request.system, ["Be kind.", "What the application says about the situation:\n- page: 42"]);
    assert_eq!(request.turns, [Turn::User(vec![ContentPart::text("Hi")])]);
    assert_eq!(request.thinking, Some(true));
}

#[test]
fn a_tool_of_the_server_is_called_and_the_model_asked_again() {
    let model = Scripted::new([
        done([text(0, "Let me see."), call(1, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "It is 2.")]),
    ]);
    let played = play(LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded)), ask("1+1?"));
    let expected = [says("Let me see."), calls("increment", r#"{"n":1}"#), result("2"), says("It is 2.")];
    assert_eq!(played.told, expected.concat());
    assert_eq!(played.end["outcome"], json!({ "type": "success" }));
    let asked = model.asked();
    assert_eq!(asked[0].tools[0].name, "increment");
    assert_eq!(results(&asked[1]), [("2".to_owned(), false)]);
    // The text and the call are one message, and what the model is asked is what the client holds.
    assert_eq!(played.messages.len(), 4);
    assert_eq!(asked[1].turns, history(&played.messages[..3]));
}

fn history(messages: &[Message]) -> Vec<Turn> {
    crate::llm::history::turns(messages)
}

#[test]
fn a_tool_of_the_application_is_left_to_it() {
    let model = Scripted::new([done([call(0, "c", "pick", "{}"), call(1, "d", "increment", r#"{"n":1}"#)])]);
    let mut input = ask("pick");
    input.tools = serde_json::from_value(json!([{ "name": "pick", "description": "" }])).unwrap();
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), input);
    assert_eq!(played.told, [calls("pick", "{}"), calls("increment", r#"{"n":1}"#), result("2")].concat());
    assert_eq!(played.end["outcome"], json!({ "type": "success", "pendingToolCallIds": ["c"] }));
}

#[test]
fn of_two_tools_of_a_name_the_applications_is_called() {
    let model = Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)])]);
    let mut input = ask("1+1?");
    input.tools = serde_json::from_value(json!([{ "name": "increment", "description": "mine" }])).unwrap();
    let played = play(LlmAgent::new(model.clone()).tools(increment(Approval::Needed)), input);
    assert_eq!(played.end["outcome"]["pendingToolCallIds"], json!(["c"]));
    assert_eq!(model.asked()[0].tools.iter().map(|tool| &*tool.description).collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn what_is_wrong_with_a_call_goes_back_to_the_model() {
    for (name, arguments, problem) in [
        ("increment", "{", "Error: "),
        ("increment", r#"{"n":"one"}"#, "Error: "),
        ("decrement", r#"{"n":1}"#, "Error: there is no tool \"decrement\""),
        ("increment", r#"{"n":13}"#, "Error: unlucky"),
        ("increment", r#"{"n":99}"#, "Error: the tool took longer than 60 s and was stopped"),
    ] {
        let model = Scripted::new([done([call(0, "c", name, arguments)]), done([text(0, "Sorry.")])]);
        let played = play(LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded)), ask("?"));
        assert_eq!(played.end["outcome"], json!({ "type": "success" }));
        let [(told, failed)] = &results(&model.asked()[1])[..] else { panic!() };
        assert!(told.starts_with(problem) && *failed, "{name} {arguments}: {told}");
    }
}

#[test]
fn an_agent_takes_no_more_steps_than_it_may() {
    let again = || done([call(0, "same id", "increment", r#"{"n":1}"#)]);
    let agent = LlmAgent::new(Scripted::new([again(), again()])).tools(increment(Approval::NotNeeded)).max_steps(2);
    let played = play(agent, ask("?"));
    assert_eq!((&played.end["type"], &played.end["code"]), (&json!("RUN_ERROR"), &json!("max_steps")));
    // Models that number their calls anew get away with it.
    assert_eq!(played.told.iter().filter(|line| line.starts_with("TOOL_CALL_RESULT")).count(), 2);
}

#[test]
fn an_answer_that_breaks_off_is_an_error_and_so_is_a_refusal() {
    let mut cut = text(0, "I think");
    cut.pop();
    for (answer, code) in [(cut, "model_interrupted"), (vec![ModelEvent::Stop(StopReason::Refused)], "model_refused")] {
        let played = play(LlmAgent::new(Scripted::new([answer])), ask("?"));
        assert_eq!((&played.end["type"], &played.end["code"]), (&json!("RUN_ERROR"), &json!(code)));
    }
}

#[test]
fn a_models_failure_is_the_runs() {
    struct Failing;
    impl Model for Failing {
        fn provider(&self) -> &str {
            "failing"
        }
        fn name(&self) -> &str {
            "m"
        }
        fn stream(&self, _: ModelRequest) -> ModelStream {
            let error = ModelError::new("model_rate_limited", "too many questions").caused_by("secret");
            futures::future::ready(Err(error)).into_stream().boxed()
        }
    }
    let played = play(LlmAgent::new(Failing), ask("?"));
    assert_eq!(
        played.end,
        json!({ "type": "RUN_ERROR", "message": "too many questions", "code": "model_rate_limited" })
    );
}

#[test]
fn reasoning_is_told_and_its_artefact_returns() {
    let thought = vec![
        ModelEvent::Start { index: 0, block: BlockStart::Reasoning { redacted: false } },
        ModelEvent::Delta { index: 0, text: "hm".into() },
        ModelEvent::End { index: 0, artefact: Some("sig".into()) },
    ];
    let hidden = vec![
        ModelEvent::Start { index: 1, block: BlockStart::Reasoning { redacted: true } },
        ModelEvent::End { index: 1, artefact: Some("hidden".into()) },
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
    assert_eq!(played.told[..reasoned.len()], reasoned);
    let block = |text: &str, artefact: &str, redacted| {
        let (artefact, provider) = (Some(artefact.to_owned()), Some("scripted".to_owned()));
        Block::Reasoning(ReasoningBlock { text: text.to_owned(), artefact, redacted, provider })
    };
    // In the same run, and in the next one.
    play(agent, next(&played, json!([])));
    for request in &model.asked()[1..] {
        let Turn::Assistant(AssistantTurn { blocks }) = &request.turns[1] else { panic!("{request:?}") };
        assert_eq!(blocks[..2], [block("hm", "sig", false), block("", "hidden", true)]);
        assert!(matches!(&blocks[2], Block::Call(call) if call.id == "c"));
    }
}

#[test]
fn what_it_costs_is_counted_once_and_also_when_it_fails() {
    let cost = |output| {
        ModelEvent::Usage(TokenUsage {
            model: Some("m".into()),
            input_tokens: Some(5),
            output_tokens: Some(output),
            ..TokenUsage::default()
        })
    };
    let mut first = vec![cost(1)];
    first.extend(call(0, "c", "increment", r#"{"n":1}"#));
    first.extend([cost(7), ModelEvent::Stop(StopReason::Calls)]);
    let model = Scripted::new([first, vec![cost(2)]]);
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), ask("?"));
    assert_eq!(played.end["type"], "RUN_ERROR");
    assert_eq!(played.end["usage"], json!([{ "model": "m", "inputTokens": 10, "outputTokens": 9 }]));
}

#[test]
fn a_state_is_changed_and_known() {
    let model = Scripted::new([
        done([call(0, "c", "update_state", r#"{"patch":[{"op":"add","path":"/n","value":1}]}"#)]),
        done([text(0, "Done.")]),
    ]);
    let played = play(LlmAgent::new(model.clone()).updates_state(true), ask("?"));
    assert!(played.told.iter().any(|line| line.starts_with("STATE_DELTA")), "{:?}", played.told);
    assert_eq!(played.state, json!({ "n": 1 }));
    assert!(model.asked()[0].system[0].ends_with("{}"));
    assert!(model.asked()[1].system[0].ends_with(r#"{"n":1}"#));
}

#[test]
fn a_call_waits_for_an_approval_and_is_carried_out_as_decided() {
    for (answer, expected, failed) in [
        (json!({ "approved": true }), "2", false),
        (json!({ "approved": true, "editedArgs": { "n": 41 } }), "42", false),
        (json!({ "approved": true, "editedArgs": { "n": "x" } }), "Error: ", true),
        (json!({ "approved": false, "reason": "no sums" }), "The user declined this call: no sums", true),
        (json!({ "approved": false }), "The user declined this call.", true),
        (json!({ "approved": "true" }), "The call was not run: the user's answer was unclear.", true),
    ] {
        let model = Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)]), done([text(0, "So.")])]);
        let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
        let asked = play(agent.clone(), ask("1+1?"));
        assert_eq!(asked.told.last().unwrap(), "TOOL_CALL_END", "nothing is carried out yet");
        let interrupt = &asked.end["outcome"]["interrupts"][0];
        assert_eq!((&interrupt["reason"], &interrupt["toolCallId"]), (&json!("tool_call"), &json!("c")));
        // Asking again without an answer is answered the same.
        let again = play(agent.clone(), next(&asked, json!([])));
        assert_eq!((again.told.len(), &again.end["outcome"]), (0, &asked.end["outcome"]));
        let entry = json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": answer }]);
        let played = play(agent, next(&asked, entry));
        assert!(played.told[0].starts_with(&format!("TOOL_CALL_RESULT \"{expected}")), "{:?}", played.told);
        assert_eq!(played.told[1..], says("So."));
        assert_eq!(results(&model.asked()[1])[0].1, failed);
        if expected == "42" {
            let Turn::Assistant(said) = &model.asked()[1].turns[1] else { panic!() };
            assert!(matches!(&said.blocks[0], Block::Call(call) if call.function.arguments == r#"{"n":41}"#));
        }
    }
}

#[test]
fn an_answer_that_stands_in_the_conversation_too_is_carried_out_once() {
    let model = Scripted::new([
        done([call(0, "c", "increment", r#"{"n":1}"#)]),
        done([text(0, "So.")]),
        done([text(0, "Again.")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
    let mut asked = play(agent.clone(), ask("1+1?"));
    // As CopilotKit does.
    let echo = json!({ "id": "echo", "role": "tool", "toolCallId": "c", "content": r#"{"approved":true}"# });
    asked.messages.push(serde_json::from_value(echo).unwrap());
    let entry = json!([{ "interruptId": "approval-c", "status": "resolved", "payload": { "approved": true } }]);
    let played = play(agent.clone(), next(&asked, entry.clone()));
    assert_eq!(played.told, [result("2"), says("So.")].concat());
    assert_eq!(results(&model.asked()[1]), [("2".to_owned(), false)]);
    // The same answer once more changes nothing.
    let again = play(agent, next(&played, entry));
    assert_eq!(again.told, says("Again."));
}

#[test]
fn what_needs_no_approval_is_done_at_once_and_an_abandoned_call_never() {
    let model = Scripted::new([
        done([call(0, "c", "increment", r#"{"n":1}"#), call(1, "d", "add_state", "{}")]),
        done([text(0, "So.")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
    let asked = play(agent.clone(), ask("?"));
    assert_eq!(
        asked.told.last().unwrap(),
        &result("Error: there is no tool \\\"add_state\\\"")[0].replace("\\\\\\", "\\")
    );
    let entry = json!([{ "interruptId": "approval-c", "status": "cancelled" }, { "interruptId": "other", "status": "cancelled" }]);
    let played = play(agent, next(&asked, entry));
    assert_eq!(played.told[0], result("The call was not run: the user did not approve it.")[0]);
}

#[test]
fn a_subagent_works_in_sight_and_its_last_words_are_the_result() {
    let inner = Scripted::new([done([call(0, "x", "increment", r#"{"n":1}"#)]), done([text(0, "It is 2.")])]);
    let helper = LlmAgent::new(inner.clone()).tools(increment(Approval::NotNeeded));
    let model = Scripted::new([done([call(0, "c", "adder", r#"{"task":"1+1"}"#)]), done([text(0, "2!")])]);
    let agent = LlmAgent::new(model.clone()).subagent("adder", "Adds.", Arc::new(helper));
    let played = play(agent, ask("1+1?"));
    let expected = [
        calls("adder", r#"{"task":"1+1"}"#),
        vec!["SUBAGENT_STARTED \"adder\"".into()],
        [calls("increment", r#"{"n":1}"#), result("2"), says("It is 2.")]
            .concat()
            .iter()
            .map(|line| format!("> {line}"))
            .collect(),
        vec!["SUBAGENT_FINISHED".into()],
        result("It is 2."),
        says("2!"),
    ];
    assert_eq!(played.told, expected.concat());
    assert_eq!(inner.asked()[0].turns, [Turn::User(vec![ContentPart::text("1+1")])]);
    assert_eq!(results(&model.asked()[1]), [("It is 2.".to_owned(), false)]);
}

#[test]
fn a_subagent_that_fails_or_asks_people_fails_its_task_alone() {
    let asking = LlmAgent::new(Scripted::new([done([call(0, "x", "increment", r#"{"n":1}"#)])]));
    let asking: Arc<dyn Agent> = Arc::new(asking.tools(increment(Approval::Needed)));
    let failing: Arc<dyn Agent> = Arc::new(|_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            yield TextMessage::with_id("open").start();
            Err(crate::agent::AgentError::new("broken", "it broke"))?;
        })
    });
    for (helper, problem) in [(asking, "approval"), (failing, "it broke")] {
        let model = Scripted::new([done([call(0, "c", "helper", r#"{"task":"?"}"#)]), done([text(0, "Sorry.")])]);
        let agent = LlmAgent::new(model.clone()).subagent("helper", "Helps.", helper);
        let played = play(agent, ask("?"));
        assert_eq!(played.end["outcome"], json!({ "type": "success" }), "{:?}", played.told);
        let [(told, true)] = &results(&model.asked()[1])[..] else { panic!() };
        assert!(told.contains(problem), "{told}");
    }
}
