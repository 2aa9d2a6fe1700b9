//! The calculator: an expression has the same value in parentheses and with more spaces; results are finite numbers.
#![no_main]

use std::sync::LazyLock;

use agui_server::{
    protocol::JsonObject,
    tools::{Tool, ToolContext, builtin::Calculator},
};
use agui_server_fuzz::{bounded, is_short};
use futures::FutureExt as _;
use libfuzzer_sys::fuzz_target;

static CALCULATOR: LazyLock<(Calculator, ToolContext)> =
    LazyLock::new(|| (Calculator::new(), ToolContext::for_test("calculator")));

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match bounded(text.len(), || calculate(text)) {
        Ok(value) => {
            let number: f64 = value.parse().expect("a number");
            assert!(number.is_finite(), "{text} is {value}");
            // Fewer than the limits of the length and of the depth.
            if text.len() < 900 && text.matches(['(', '^', '-', '+', '−']).count() < 20 {
                for same in [format!("({text})"), format!(" {text}\n"), format!("+{text}"), format!("{text}*1")] {
                    // `2 - 1 * 1` and `+2 ^ 3` have the value without the addition.
                    assert_eq!(calculate(&same).as_ref(), Ok(&value), "{same}");
                }
            }
            // Written as decimal digits, a result is an expression of the same value.
            assert_eq!(calculate(&value), Ok(value));
        }
        Err(error) => assert!(is_short(&error), "{error}"),
    }
});

fn calculate(text: &str) -> Result<String, String> {
    let (calculator, cx) = &*CALCULATOR;
    let arguments = JsonObject::from_iter([("expression".to_owned(), text.into())]);
    let result = calculator.call(arguments, cx).now_or_never().expect("the calculator does not wait");
    result.map(|content| content.text().into_owned()).map_err(|error| error.message().to_owned())
}
