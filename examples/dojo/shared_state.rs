//! `/shared_state`: a recipe that the person edits on the page and the agent in its run.
//!
//! The agent replaces some members of the page's recipe. The others, such as the title, stay as the page had them.

use agui_server::prelude::*;
use serde_json::{Map, Value, json};

use crate::parts::Pace;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, _: Pace) -> Result<(), AgentError> {
    out.set_state(cook(input.state_or_empty())).await
}

fn cook(state: Value) -> Value {
    // A page can send anything as its state.
    let mut state = object(state);
    let mut dish = object(state.remove("recipe").unwrap_or_default());
    dish.extend(object(recipe()));
    state.insert("recipe".to_owned(), dish.into());
    state.into()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn recipe() -> Value {
    json!({
        "skill_level": "Advanced",
        "special_preferences": ["Low Carb", "Spicy"],
        "cooking_time": "15 min",
        "ingredients": [
            { "icon": "🍗", "name": "chicken breast", "amount": "1" },
            { "icon": "🌶️", "name": "chili powder", "amount": "1 tsp" },
            { "icon": "🧂", "name": "Salt", "amount": "a pinch" },
            { "icon": "🥬", "name": "Lettuce leaves", "amount": "handful" },
        ],
        "instructions": [
            "Rub the chicken with the chili powder and the salt.",
            "Fry it on both sides until it is done.",
            "Cut it into strips and roll them up in the lettuce.",
        ],
    })
}
