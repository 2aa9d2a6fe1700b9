//! Tasks of subagents.

use super::*;
use agui_agent::emit::TextMessage;

#[test]
fn a_subagents_events_are_streamed_and_its_last_message_is_the_result() {
    let inner = Scripted::new([
        done([call(0, "x", "increment", r#"{"n":1}"#)]),
        done([text(0, "It is 2.")]),
    ]);
    let helper = LlmAgent::new(inner.clone()).tools(increment(Approval::NotNeeded));
    let model =
        Scripted::new([done([call(0, "c", "adder", r#"{"task":"1+1"}"#)]), done([text(0, "2!")])]);
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
    assert_eq!(played.events, expected.concat());
    assert_eq!(inner.requests()[0].steps, [ModelStep::User(vec![ContentPart::text("1+1")])]);
    assert_eq!(results(&model.requests()[1]), [("It is 2.".to_owned(), false)]);
}

#[test]
fn a_subagent_that_fails_fails_only_its_task() {
    let failing: Arc<dyn Agent> = Arc::new(|_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            yield TextMessage::with_id("open").start();
            Err(agui_agent::AgentError::new("broken", "it broke"))?;
        })
    });
    let model = Scripted::new([
        done([call(0, "c", "helper", r#"{"task":"?"}"#)]),
        done([text(0, "Sorry.")]),
    ]);
    let agent = LlmAgent::new(model.clone()).subagent("helper", "Helps.", failing);
    let played = play(agent, ask("?"));
    assert_eq!(played.end["outcome"], json!({ "type": "success" }), "{:?}", played.events);
    let [(text, true)] = &results(&model.requests()[1])[..] else { panic!() };
    assert!(text.contains("it broke"), "{text}");
}

#[test]
fn two_tasks_and_their_agent_may_number_their_calls_alike() {
    let numbered = || {
        let inner = Scripted::new(
            [(); 2]
                .map(|()| {
                    [
                        done([call(0, "call_0", "increment", r#"{"n":1}"#)]),
                        done([text(0, "It is 2.")]),
                    ]
                })
                .into_iter()
                .flatten(),
        );
        Arc::new(LlmAgent::new(inner).tools(increment(Approval::NotNeeded)))
    };
    // An agent that is no model, and uses the ids of messages again as well.
    let fixed: Arc<dyn Agent> = Arc::new(|_: RunAgentInput, _: RunContext| {
        let call = agui_agent::emit::ToolCallEvents::with_id("call_0", "f");
        let message = TextMessage::with_id("m");
        let events = [
            call.start(),
            call.end(),
            call.result("1"),
            message.start(),
            message.delta("One."),
            message.end(),
        ];
        agui_agent::events(events)
    });
    for (helper, last) in [(numbered() as Arc<dyn Agent>, "It is 2."), (fixed, "One.")] {
        let task = |index, id| call(index, id, "helper", r#"{"task":"?"}"#);
        let model = Scripted::new([
            done([task(0, "call_0"), task(1, "call_1")]),
            done([call(0, "call_0", "increment", r#"{"n":5}"#)]),
            done([text(0, "Done.")]),
        ]);
        let agent = LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded));
        let played = play(agent.subagent("helper", "Helps.", helper), ask("?"));
        assert_eq!(played.end["outcome"], json!({ "type": "success" }), "{:?}", played.events);
        let [first, second, third] = &results(&model.requests()[2])[..] else { panic!() };
        assert_eq!([first, second], [&(last.to_owned(), false); 2]);
        assert_eq!(third, &("6".to_owned(), false));
    }
}
