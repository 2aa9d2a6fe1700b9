//! The tool `propose_plan`: the model shows the person the steps of a plan, which the person accepts, edits or rejects.

use serde_json::{Value, json};

use crate::{FnTool, Question, Repeat, ToolContext, ToolError, ToolSpec, tool::object_schema};
use agui_protocol::{JsonObject, own_names::STEPS};

const MAX_STEPS: usize = 50;
const MAX_STEP_CHARS: usize = 1000;
const MAX_MESSAGE_CHARS: usize = 4000;
const ENABLED: &str = "enabled";
const DISABLED: &str = "disabled";

/// Returns the tool. The run ends with an interrupt whose metadata has the steps.
pub fn propose_plan() -> FnTool {
    let properties = json!({
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_STEPS,
            "items": { "type": "string", "minLength": 1, "maxLength": MAX_STEP_CHARS },
            "description": "The steps in order, each in one sentence."
        },
        "message": {
            "type": "string",
            "maxLength": MAX_MESSAGE_CHARS,
            "description": "What the plan is for, in the user's language."
        }
    });
    let description = "Shows the user the steps of your plan and waits for a review. The user accepts the plan, \
                       edits or disables steps, or rejects it with a reason. Carry out only the steps of the result.";
    let parameters = object_schema(properties, &["steps"]);
    FnTool::from_spec(ToolSpec::new("propose_plan", description, parameters), call)
        .repeat(Repeat::Safe)
}

async fn call(arguments: JsonObject, cx: ToolContext) -> Result<String, ToolError> {
    let proposed = texts(arguments.get("steps"));
    let message =
        arguments.get("message").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let steps: Vec<_> =
        proposed.iter().map(|text| json!({ "description": text, "status": ENABLED })).collect();
    let question = Question::new(message.unwrap_or("Review and modify the planned steps."))
        .key("review")
        .reason("plan_review")
        .response_schema(review_schema())
        .metadata(STEPS, Value::Array(steps));
    let reply = cx.ask(question).await?;
    Ok(review(&proposed, &reply).to_string())
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn review_schema() -> Value {
    let step = json!({
        "type": "object",
        "properties": {
            "description": { "type": "string", "minLength": 1, "maxLength": MAX_STEP_CHARS },
            "status": { "type": "string" }
        },
        "required": ["description"]
    });
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "steps": { "type": "array", "items": step, "maxItems": 2 * MAX_STEPS },
            "reason": { "type": "string" }
        },
        "required": ["approved"]
    })
}

/// Returns the result for the model. Only a clear yes with at least one step accepts the plan.
fn review(proposed: &[String], reply: &Value) -> Value {
    if reply.get("approved") != Some(&Value::Bool(true)) {
        let reason =
            reply.get("reason").and_then(Value::as_str).filter(|reason| !reason.trim().is_empty());
        return match reason {
            Some(reason) => json!({ "approved": false, "reason": reason }),
            None => json!({ "approved": false }),
        };
    }
    let steps = match reply.get("steps") {
        None | Some(Value::Null) => proposed.to_vec(),
        Some(steps) => enabled_steps(steps),
    };
    if steps.is_empty() {
        return json!({ "approved": false, "reason": "no step of the plan is enabled" });
    }
    json!({ "approved": true, "edited": steps != proposed, "steps": steps })
}

fn enabled_steps(steps: &Value) -> Vec<String> {
    let enabled = steps.as_array().into_iter().flatten().filter(|step| {
        step.get("status").and_then(Value::as_str).is_none_or(|status| status != DISABLED)
    });
    enabled.filter_map(|step| step.get("description")?.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Validator;

    #[tokio::test]
    async fn a_plan_is_accepted_edited_or_rejected() {
        let proposed = ["Search".to_owned(), "Report".to_owned()];
        let validator = Validator::from_value(&review_schema()).unwrap();
        let step = |text: &str, status: &str| json!({ "description": text, "status": status });
        for (reply, expected) in [
            (
                json!({ "approved": true }),
                json!({ "approved": true, "edited": false, "steps": proposed }),
            ),
            (
                json!({ "approved": true, "steps": [step("Search twice", "enabled"), step("Report", "disabled")] }),
                json!({ "approved": true, "edited": true, "steps": ["Search twice"] }),
            ),
            (
                json!({ "approved": true, "steps": [{ "description": "Search" }, step("Report", "enabled")] }),
                json!({ "approved": true, "edited": false, "steps": proposed }),
            ),
            (
                json!({ "approved": true, "steps": [step("Search", "disabled")] }),
                json!({ "approved": false, "reason": "no step of the plan is enabled" }),
            ),
            (
                json!({ "approved": false, "reason": "Too long" }),
                json!({ "approved": false, "reason": "Too long" }),
            ),
            (
                json!({ "approved": false, "steps": [step("Search", "enabled")] }),
                json!({ "approved": false }),
            ),
        ] {
            validator.check_value(&"key:ann".into(), &reply).await.unwrap();
            assert_eq!(review(&proposed, &reply), expected);
        }
        // A reply that the schema refuses does not accept the plan either.
        for unclear in
            [json!("yes"), json!(null), json!({ "approved": "true" }), json!({ "steps": [] })]
        {
            assert_eq!(review(&proposed, &unclear), json!({ "approved": false }), "{unclear}");
        }
        assert_eq!(
            review(&proposed, &json!({ "approved": true, "steps": "all" }))["approved"],
            false
        );
    }
}
