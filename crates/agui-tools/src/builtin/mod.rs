//! Tools that need no other system: the current time, and questions to the person.

mod ask_user;
mod current_time;
mod propose_plan;

use std::sync::Arc;

pub use self::{ask_user::ask_user, current_time::current_time, propose_plan::propose_plan};
use super::Tool;

/// Returns all built-in tools.
#[doc(hidden)]
pub fn tools() -> [Arc<dyn Tool>; 3] {
    [current_time(), ask_user(), propose_plan()].map(|tool| Arc::new(tool) as Arc<dyn Tool>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Validator;

    #[test]
    fn schemas_are_valid_and_names_are_stable() {
        for tool in tools() {
            Validator::new(&tool.spec().parameters).unwrap();
        }
        assert_eq!(
            tools().map(|tool| tool.spec().name.clone()),
            ["current_time", "ask_user", "propose_plan"]
        );
    }
}
