//! Tools that need no other system: the current time, arithmetic, and questions to the person.

mod ask_user;
mod calculator;
mod current_time;
mod expression;
mod propose_plan;

use std::sync::Arc;

pub use self::{ask_user::AskUser, calculator::Calculator, current_time::CurrentTime, propose_plan::ProposePlan};
use super::Tool;

/// Returns all built-in tools.
pub fn tools() -> [Arc<dyn Tool>; 4] {
    [Arc::new(CurrentTime::new()), Arc::new(Calculator::new()), Arc::new(AskUser::new()), Arc::new(ProposePlan::new())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Validator;

    #[test]
    fn schemas_are_valid_and_names_are_stable() {
        for tool in tools() {
            Validator::new(&tool.spec().parameters).unwrap();
        }
        assert_eq!(
            tools().map(|tool| tool.spec().name.clone()),
            ["current_time", "calculator", "ask_user", "propose_plan"]
        );
    }
}
