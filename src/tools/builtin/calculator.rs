//! The tool `calculator`: arithmetic, which models often get slightly wrong.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::expression;
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Tool, ToolContext, ToolError, ToolSpec},
};

/// 2^53: an `f64` holds all smaller integers exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A tool that evaluates arithmetic expressions.
#[derive(Debug)]
pub struct Calculator {
    spec: ToolSpec,
}

impl Default for Calculator {
    fn default() -> Self {
        Self::new()
    }
}

impl Calculator {
    /// Makes the tool.
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "calculator".to_owned(),
            description: "Calculates the value of an arithmetic expression. Use it for every calculation.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "expression": {
                        "type": "string",
                        "maxLength": expression::MAX_EXPRESSION_BYTES,
                        "description": "Such as \"2 * (3 + 4) ^ 2\". Operators + - * / % (remainder) ^ (power), \
                                        parentheses, sqrt(x), abs(x), round(x), floor(x), ceil(x), min(x, y, …), \
                                        max(x, y, …), pi, e."
                    }
                },
                "required": ["expression"],
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

#[async_trait]
impl Tool for Calculator {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: JsonObject, _: &ToolContext) -> Result<MessageContent, ToolError> {
        let text = arguments.get("expression").and_then(Value::as_str).unwrap_or_default();
        expression::evaluate(text).map(|value| format_number(value).into()).map_err(ToolError::new)
    }
}

/// Integers in full, others with 15 significant digits: the further digits of an `f64` are rounding errors.
fn format_number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < MAX_EXACT_INTEGER {
        // Adding zero turns -0 into 0.
        return format!("{}", value + 0.0);
    }
    // Rounding the largest numbers up would give infinity.
    let rounded = format!("{value:.14e}").parse().ok().filter(|rounded: &f64| rounded.is_finite()).unwrap_or(value);
    if (1e-6..1e21).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_and_other_numbers_have_15_digits() {
        for (text, expected) in [
            ("0.1 + 0.2", "0.3"),
            ("7 / 2", "3.5"),
            ("10 / 3", "3.33333333333333"),
            ("-0", "0"),
            ("2 ^ 53 - 1", "9007199254740991"),
            ("2 ^ 100", "1.26765060022823e30"),
            ("1 / 10 ^ 9", "1e-9"),
            ("1e20 + 0.5", "100000000000000000000"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
        ] {
            assert_eq!(format_number(expression::evaluate(text).unwrap()), expected, "{text}");
        }
    }
}
