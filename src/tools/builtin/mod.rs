//! Tools that need nobody: what models are bad at without help.

mod calculator;
mod current_time;
mod expression;

use std::sync::Arc;

pub use self::{calculator::Calculator, current_time::CurrentTime};
use super::Tool;

/// The names of the built-in tools.
pub const BUILT_IN: &[&str] = &["current_time", "calculator"];

/// A built-in tool by its name.
pub fn tool(name: &str) -> Option<Arc<dyn Tool>> {
    match name {
        "current_time" => Some(Arc::new(CurrentTime::new())),
        "calculator" => Some(Arc::new(Calculator::new())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Validator;

    #[test]
    fn each_has_its_name_and_a_schema_of_use() {
        for name in BUILT_IN {
            let tool = tool(name).unwrap();
            assert_eq!(tool.spec().name, *name);
            Validator::new(&tool.spec().parameters).unwrap();
        }
        assert!(tool("other").is_none());
    }
}
