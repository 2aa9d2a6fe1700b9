//! The tool `update_state`, by which a model changes the state that it shares with the application.

use serde_json::{Value, json};

use super::schema::CheckedSchema;
use agui_protocol::{
    Event, JsonObject,
    event::{StateDelta, StateSnapshot},
    host::JsonPatch,
    patch,
};
use agui_tools::{
    ToolError, ToolSpec,
    host::{CallArguments, ToolSession},
};

pub(super) const UPDATE_STATE: &str = "update_state";

/// Bounds the work of a call.
const MAX_OPERATIONS: usize = 1000;

/// The new state has to fit `schema`.
pub(super) fn spec(schema: Option<&CheckedSchema>) -> ToolSpec {
    const DESCRIPTION: &str = "Changes the state that is shared with the application. Give either `patch`, a JSON Patch \
                               (RFC 6902) against the current state, or `state`, which replaces it as a whole.";
    let operation = json!({
        "type": "object",
        "properties": {
            "op": { "type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"] },
            "path": { "type": "string", "description": "A JSON Pointer, such as /plan/steps/0" },
            "from": { "type": "string", "description": "A JSON Pointer, for move and copy" },
            "value": { "description": "Any JSON, for add, replace and test" }
        },
        "required": ["op", "path"]
    });
    let patch = json!({ "type": "array", "items": operation });
    let state = schema.map_or_else(
        || json!({ "type": "object" }),
        |schema| Value::Object(JsonObject::clone(&schema.schema)),
    );
    let parameters = json!({ "type": "object", "properties": { "patch": patch, "state": state } });
    ToolSpec::new(UPDATE_STATE, DESCRIPTION, parameters)
}

pub(super) fn describe(state: &Value) -> String {
    format!("The state that is shared with the application, as JSON:\n{state}")
}

/// Changes the state of a run. Returns the problem, for the model, if the arguments or the new state are wrong; then the state is
/// unchanged.
pub(super) async fn change(
    session: &ToolSession,
    arguments: &str,
    schema: Option<&CheckedSchema>,
) -> Result<(), ToolError> {
    loop {
        let before = session.state();
        let mut new = Value::clone(&before);
        let event = update(&mut new, arguments).map_err(ToolError::new)?;
        if let Some(schema) = schema {
            let checked = schema.validator.check_value(&session.run().owner(), &new).await;
            checked.map_err(|problems| {
                ToolError::new(format!("the state would not fit its schema:{problems}"))
            })?;
        }
        // Another call can have changed it during the check.
        if session.replace_state(&before, new, event)? {
            return Ok(());
        }
    }
}

/// Returns the event of the change, or the problem of the arguments, for the model; then the state is unchanged.
pub(super) fn update(state: &mut Value, arguments: &str) -> Result<Event, String> {
    let mut arguments = CallArguments::read(arguments)?.object;
    match (arguments.remove("patch"), arguments.remove("state")) {
        (Some(operations), None) => {
            // Some models write the patch as a string of JSON.
            let operations = match operations {
                Value::String(text) => serde_json::from_str(&text),
                other => Ok(other),
            };
            let operations: JsonPatch = operations
                .and_then(serde_json::from_value)
                .map_err(|error| format!("patch: {error}"))?;
            if operations.len() > MAX_OPERATIONS {
                return Err(format!("the patch has more than {MAX_OPERATIONS} operations"));
            }
            patch::check(&operations)?;
            patch::apply(state, &operations).map(drop).map_err(|fault| fault.to_string())?;
            Ok(StateDelta::new(operations).into())
        }
        (None, Some(new)) if new.is_object() => {
            state.clone_from(&new);
            Ok(StateSnapshot::new(new).into())
        }
        (None, Some(_)) => Err("`state` has to be an object".to_owned()),
        _ => Err("either `patch` or `state` is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        LlmAgent,
        agent::{
            AgentOptions,
            tests::{Scripted, ask, call, done, play, results, text},
        },
    };

    #[test]
    fn a_patch_or_a_new_state_is_applied_and_becomes_an_event() {
        let mut state = json!({ "n": 1 });
        let event =
            update(&mut state, r#"{"patch":[{"op":"replace","path":"/n","value":2}]}"#).unwrap();
        assert_eq!(state, json!({ "n": 2 }));
        assert!(matches!(&event, Event::StateDelta(delta) if delta.delta.len() == 1));
        let event = update(&mut state, r#"{"state":{"m":1}}"#).unwrap();
        assert_eq!(state, json!({ "m": 1 }));
        assert!(matches!(&event, Event::StateSnapshot(snapshot) if snapshot.snapshot == state));
        update(&mut state, r#"{"patch":"[{\"op\":\"add\",\"path\":\"/x\",\"value\":null}]"}"#)
            .unwrap();
        assert_eq!(state, json!({ "m": 1, "x": null }));
    }

    #[test]
    fn a_change_that_does_not_fit_the_schema_is_explained_and_changes_nothing() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false });
        let call = |id: &str, arguments: &str| done([call(0, id, UPDATE_STATE, arguments)]);
        let model = Scripted::new([
            call("a", r#"{"patch":[{"op":"add","path":"/n","value":"x"}]}"#),
            call("b", r#"{"state":{"m":1}}"#),
            call("c", r#"{"state":{"n":2}}"#),
            done([text(0, "So.")]),
        ]);
        let Value::Object(object) = schema.clone() else { unreachable!() };
        let with_schema =
            |schema| AgentOptions { state_schema: Some(schema), ..AgentOptions::default() };
        let agent = LlmAgent::new(model.clone()).updates_state(true);
        let agent = agent.options(with_schema(object)).unwrap();
        let played = play(agent, ask("?"));
        assert_eq!(played.state, json!({ "n": 2 }));
        let requests = model.requests();
        assert_eq!(requests[0].tools[0].parameters["properties"]["state"], schema);
        let told: Vec<_> = requests.iter().flat_map(|request| results(request).pop()).collect();
        let [(first, true), (second, true), (third, false)] = &told[..] else { panic!("{told:?}") };
        assert!(first.contains("the state would not fit its schema:\n- /n: "), "{first}");
        assert!(second.contains("m"), "{second}");
        assert_eq!(third, "The state was updated.");
        assert!(
            LlmAgent::new(model)
                .options(with_schema(JsonObject::from_iter([("type".to_owned(), json!(1))])))
                .is_err()
        );
    }

    #[test]
    fn invalid_arguments_are_explained_and_change_nothing() {
        let before = json!({ "n": 1 });
        for (arguments, problem) in [
            ("{", "not valid JSON"),
            ("{}", "either `patch` or `state`"),
            (r#"{"state":1}"#, "`state` has to be an object"),
            (r#"{"state":{},"patch":[]}"#, "either"),
            (r#"{"patch":[{"op":"turn","path":"/n"}]}"#, "patch: "),
            (r#"{"patch":[{"op":"replace","path":"n","value":1}]}"#, "not a JSON Pointer"),
            (
                r#"{"patch":[{"op":"add","path":"/l","value":[1,{}]},{"op":"move","from":"/l/0","path":"/l/0/x"}]}"#,
                "moved into itself",
            ),
            (
                r#"{"patch":[{"op":"add","path":"/m","value":1},{"op":"remove","path":"/x"}]}"#,
                "operation 1 of the patch",
            ),
        ] {
            let mut state = before.clone();
            let error = update(&mut state, arguments).unwrap_err();
            assert!(error.contains(problem), "{arguments}: {error}");
            assert_eq!(state, before, "{arguments}");
        }
    }
}
