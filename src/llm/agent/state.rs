//! The tool `update_state`, by which a model changes the state that it shares with the application.

use serde_json::{Value, json};

use crate::{
    protocol::{
        Event, JsonPatch,
        event::{StateDelta, StateSnapshot},
        patch,
    },
    tools::{CallArguments, ToolSpec},
};

pub(super) const UPDATE_STATE: &str = "update_state";

/// Bounds the work of a call.
const MAX_OPERATIONS: usize = 1000;

pub(super) fn spec() -> ToolSpec {
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
    let parameters = json!({ "type": "object", "properties": { "patch": patch, "state": { "type": "object" } } });
    ToolSpec::new(UPDATE_STATE, DESCRIPTION, parameters)
}

pub(super) fn describe(state: &Value) -> String {
    format!("The state that is shared with the application, as JSON:\n{state}")
}

/// Returns the event of the change, or the problem of the arguments, for the model; then the state is unchanged.
pub(super) fn update(state: &mut Value, arguments: &str) -> Result<Event, String> {
    let mut arguments = CallArguments::read(arguments)?.object;
    match (arguments.remove("patch"), arguments.remove("state")) {
        (Some(operations), None) => {
            // Some models write the patch as a string of JSON.
            let operations = match operations {
                Value::String(text) => serde_json::from_str(&text).map_err(|error| format!("patch: {error}"))?,
                other => other,
            };
            let operations: JsonPatch =
                serde_json::from_value(operations).map_err(|error| format!("patch: {error}"))?;
            apply_patch(state, operations)
        }
        (None, Some(new)) if new.is_object() => {
            state.clone_from(&new);
            Ok(StateSnapshot::new(new).into())
        }
        (None, Some(_)) => Err("`state` has to be an object".to_owned()),
        _ => Err("either `patch` or `state` is needed".to_owned()),
    }
}

fn apply_patch(state: &mut Value, operations: JsonPatch) -> Result<Event, String> {
    if operations.len() > MAX_OPERATIONS {
        return Err(format!("the patch has more than {MAX_OPERATIONS} operations"));
    }
    patch::check(&operations)?;
    patch::apply(state, &operations).map(drop).map_err(|fault| fault.to_string())?;
    Ok(StateDelta::new(operations).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_or_a_new_state_is_applied_and_becomes_an_event() {
        let mut state = json!({ "n": 1 });
        let event = update(&mut state, r#"{"patch":[{"op":"replace","path":"/n","value":2}]}"#).unwrap();
        assert_eq!(state, json!({ "n": 2 }));
        assert!(matches!(&event, Event::StateDelta(delta) if delta.delta.len() == 1));
        let event = update(&mut state, r#"{"state":{"m":1}}"#).unwrap();
        assert_eq!(state, json!({ "m": 1 }));
        assert!(matches!(&event, Event::StateSnapshot(snapshot) if snapshot.snapshot == state));
        update(&mut state, r#"{"patch":"[{\"op\":\"add\",\"path\":\"/x\",\"value\":null}]"}"#).unwrap();
        assert_eq!(state, json!({ "m": 1, "x": null }));
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
