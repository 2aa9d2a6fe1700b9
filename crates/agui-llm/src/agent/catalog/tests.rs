use serde_json::json;

use super::super::tests::{Scripted, ask, call, done, increment, next, play, text};
use crate::{LlmAgent, ToolChoice};
use agui_protocol::Message;
use agui_tools::Approval;

#[test]
fn a_call_is_forced_only_right_after_a_users_message() {
    let answers = || {
        [
            done([call(0, "c", "increment", r#"{"n":1}"#)]),
            done([text(0, "2")]),
            done([text(0, "3")]),
        ]
    };
    for (configured, expected) in [
        (ToolChoice::Required, [ToolChoice::Required, ToolChoice::Auto, ToolChoice::Required]),
        (ToolChoice::Tool("increment".into()), {
            let forced = ToolChoice::Tool("increment".into());
            [forced.clone(), ToolChoice::Auto, forced]
        }),
        (
            ToolChoice::Tool("unknown".into()),
            [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::Auto],
        ),
        (ToolChoice::None, [ToolChoice::None, ToolChoice::None, ToolChoice::None]),
    ] {
        let model = Scripted::new(answers());
        let agent = LlmAgent::new(model.clone())
            .tools(increment(Approval::NotNeeded))
            .tool_choice(configured);
        let mut played = play(agent.clone(), ask("1+1?"));
        played.messages.push(Message::user("v", "And 1 more?"));
        play(agent, next(&played, json!([])));
        assert_eq!(
            model.requests().iter().map(|request| request.tool_choice.clone()).collect::<Vec<_>>(),
            expected
        );
    }
    let model = Scripted::new([done([text(0, "2")])]);
    play(LlmAgent::new(model.clone()).tool_choice(ToolChoice::Required), ask("1+1?"));
    assert_eq!(model.requests()[0].tool_choice, ToolChoice::Auto, "there are no tools");
}

#[test]
fn the_application_can_force_a_call_of_its_own_tool() {
    let choice = |name: &str| {
        let model = Scripted::new([done([text(0, "2")])]);
        let mut input = ask("Suggest something.");
        let tool =
            json!({ "name": "suggest", "description": "", "parameters": { "type": "object" } });
        input.tools = vec![serde_json::from_value(tool).unwrap()];
        input.forwarded_props =
            Some(json!({ "toolChoice": { "type": "function", "function": { "name": name } } }));
        play(LlmAgent::new(model.clone()).tools(increment(Approval::NotNeeded)), input);
        model.requests()[0].tool_choice.clone()
    };
    assert_eq!(choice("suggest"), ToolChoice::Tool("suggest".into()));
    assert_eq!(choice("increment"), ToolChoice::Auto, "the server decides about its own tools");
    assert_eq!(choice("unknown"), ToolChoice::Auto);
}

#[test]
fn no_call_is_forced_after_an_approved_one() {
    let model =
        Scripted::new([done([call(0, "c", "increment", r#"{"n":1}"#)]), done([text(0, "2")])]);
    let agent = LlmAgent::new(model.clone())
        .tools(increment(Approval::Needed))
        .tool_choice(ToolChoice::Required);
    let asked = play(agent.clone(), ask("1+1?"));
    let id = &asked.end["outcome"]["interrupts"][0]["id"];
    let entry =
        json!([{ "interruptId": id, "status": "resolved", "payload": { "approved": true } }]);
    play(agent, next(&asked, entry));
    assert_eq!(model.requests()[1].tool_choice, ToolChoice::Auto);
}
