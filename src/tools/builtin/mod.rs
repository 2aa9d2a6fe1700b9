//! Tools that need no other system: the current time, and arithmetic.

mod calculator;
mod current_time;
mod expression;

use std::sync::Arc;

pub use self::{calculator::Calculator, current_time::CurrentTime};
use super::Tool;

/// Returns all built-in tools.
pub fn tools() -> [Arc<dyn Tool>; 2] {
    [Arc::new(CurrentTime::new()), Arc::new(Calculator::new())]
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
        assert_eq!(tools().map(|tool| tool.spec().name.clone()), ["current_time", "calculator"]);
    }
}
