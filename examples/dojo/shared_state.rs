//! `/shared_state`: a recipe that the person edits on the page and the agent in its run.
//!
//! The agent adds missing values, ingredients and preferences, and steps up to the three that the
//! dojo's own suite counts. It keeps the person's entries.

use agui_server::prelude::*;
use serde_json::{Map, Value, json};

use crate::parts::Pace;

/// The number of steps of a recipe.
const STEPS: usize = 3;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, _: Pace) -> Result<(), AgentError> {
    out.set_state(cook(input.state_or_empty())).await
}

fn cook(state: Value) -> Value {
    // A page can send anything as its state.
    let mut state = object(state);
    let mut dish = object(state.remove("recipe").unwrap_or_default());
    for (member, suggested) in object(recipe()) {
        let most = if member == "instructions" { STEPS } else { usize::MAX };
        complete(dish.entry(member).or_insert(Value::Null), suggested, most);
    }
    state.insert("recipe".to_owned(), dish.into());
    state.into()
}

/// Adds the elements that a list lacks, until it has `most`, and sets a value that is absent or empty.
fn complete(entered: &mut Value, suggested: Value, most: usize) {
    match (entered, suggested) {
        (Value::Array(entered), Value::Array(suggested)) => {
            for element in suggested {
                if entered.len() < most && !entered.iter().any(|known| is_same(known, &element)) {
                    entered.push(element);
                }
            }
        }
        (entered, suggested) if entered.is_null() || entered == "" => *entered = suggested,
        _ => {}
    }
}

/// Returns whether two elements are equal, or are ingredients with the same name.
fn is_same(known: &Value, suggested: &Value) -> bool {
    let name = |ingredient: &Value| Some(ingredient.get("name")?.as_str()?.to_lowercase());
    known == suggested || name(suggested).is_some_and(|suggested| name(known) == Some(suggested))
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
