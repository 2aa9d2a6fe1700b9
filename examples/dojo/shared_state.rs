//! `/shared_state`: a recipe that the person edits on the page and the agent in its run.
//!
//! The agent writes a recipe over the page's. What it does not write, such as the title, stays as the page had it.

use agui_server::{
    agent::{Agent, RunContext, emit::state, events},
    protocol::RunAgentInput,
};
use serde_json::{Map, Value, json};

pub(crate) fn agent() -> impl Agent {
    |input: RunAgentInput, _: RunContext| events([state::snapshot(cook(input.state_or_empty()))])
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
