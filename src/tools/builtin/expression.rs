//! Parses and evaluates arithmetic expressions in one pass, with limits on their length and depth.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed  { ("*" | "/" | "%") signed }
//! signed  = { "-" | "+" } power
//! power   = value [ "^" signed ]             -2 ^ 2 is -(2 ^ 2), and 2 ^ 3 ^ 2 is 2 ^ (3 ^ 2)
//! value   = number | "pi" | "e" | function "(" sum { "," sum } ")" | "(" sum ")"
//! ```
//! `%` is the remainder, with the sign of its left side. Each intermediate result must be finite: otherwise
//! `1 / (10 ^ 400)` would be 0.

pub(super) const MAX_EXPRESSION_BYTES: usize = 1000;
const MAX_DEPTH: usize = 64;

pub(super) fn evaluate(text: &str) -> Result<f64, String> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(format!("The expression is longer than {MAX_EXPRESSION_BYTES} bytes."));
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.unexpected("an operator")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value = finite(value + self.product()?)?;
            } else if self.take('-') || self.take('−') {
                value = finite(value - self.product()?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            if self.take('*') || self.take('×') || self.take('·') {
                value = finite(value * self.signed()?)?;
            } else if self.take('/') || self.take('÷') {
                value = finite(value / divisor(self.signed()?)?)?;
            } else if self.take('%') {
                value = finite(value % divisor(self.signed()?)?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self) -> Result<f64, String> {
        self.nested(|parser| {
            if parser.take('-') || parser.take('−') {
                return Ok(-parser.signed()?);
            }
            if parser.take('+') {
                return parser.signed();
            }
            let base = parser.value()?;
            if parser.take('^') {
                return power(base, parser.signed()?);
            }
            Ok(base)
        })
    }

    fn value(&mut self) -> Result<f64, String> {
        match self.peek() {
            Some('(') => self.nested(|parser| {
                parser.take('(');
                let value = parser.sum()?;
                parser.expect(')')?;
                Ok(value)
            }),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.named(),
            _ => Err(self.unexpected("a number")),
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        let rest = self.rest();
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut length = digits(rest);
        if rest[length..].starts_with('.') {
            length += 1 + digits(&rest[length + 1..]);
        }
        // `2e3` is one number; `2e` is a number and the name `e`.
        if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits(unsigned) > 0 {
                length += 1 + (exponent.len() - unsigned.len()) + digits(unsigned);
            }
        }
        let value = rest[..length].parse::<f64>().map_err(|_| self.unexpected("a number"))?;
        self.at += length;
        finite(value)
    }

    fn named(&mut self) -> Result<f64, String> {
        let rest: &'a str = self.rest();
        let name = &rest[..rest.bytes().take_while(u8::is_ascii_alphanumeric).count()];
        let apply: fn(&[f64]) -> Option<f64> = match name {
            "pi" | "PI" => return self.constant(name, std::f64::consts::PI),
            "e" | "E" => return self.constant(name, std::f64::consts::E),
            "sqrt" => |of| one(of).map(f64::sqrt),
            "abs" => |of| one(of).map(f64::abs),
            "round" => |of| one(of).map(f64::round),
            "floor" => |of| one(of).map(f64::floor),
            "ceil" => |of| one(of).map(f64::ceil),
            "min" => |of| of.iter().copied().reduce(f64::min),
            "max" => |of| of.iter().copied().reduce(f64::max),
            _ => return Err(self.unexpected("a number, pi, e, sqrt, abs, round, floor, ceil, min or max")),
        };
        self.at += name.len();
        self.expect('(')?;
        let arguments = self.nested(|parser| {
            let mut arguments = vec![parser.sum()?];
            while parser.take(',') {
                arguments.push(parser.sum()?);
            }
            Ok(arguments)
        })?;
        self.expect(')')?;
        finite(apply(&arguments).ok_or_else(|| format!("{name} takes one number."))?)
    }

    fn constant(&mut self, name: &str, value: f64) -> Result<f64, String> {
        self.at += name.len();
        Ok(value)
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("The expression nests deeper than {MAX_DEPTH} levels."));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips white space and returns the next character.
    fn peek(&mut self) -> Option<char> {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("`{wanted}`"))) }
    }

    fn unexpected(&mut self, wanted: &str) -> String {
        match self.peek() {
            None => format!("The expression ends where {wanted} was expected."),
            Some(_) => {
                let place = self.text[..self.at].chars().count() + 1;
                let rest: String = self.rest().chars().take(20).collect();
                format!("Expected {wanted} at character {place}: `{rest}`.")
            }
        }
    }
}

fn one(arguments: &[f64]) -> Option<f64> {
    match arguments {
        [only] => Some(*only),
        _ => None,
    }
}

fn divisor(value: f64) -> Result<f64, String> {
    if value == 0.0 { Err("Division by zero.".to_owned()) } else { Ok(value) }
}

fn power(base: f64, exponent: f64) -> Result<f64, String> {
    if base == 0.0 && exponent < 0.0 {
        return Err("Division by zero.".to_owned());
    }
    finite(base.powf(exponent))
}

fn finite(value: f64) -> Result<f64, String> {
    if value.is_nan() {
        Err("The result is not a real number.".to_owned())
    } else if value.is_infinite() {
        Err("The result is too large.".to_owned())
    } else {
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn operators_bind_as_in_mathematics() {
        for (text, value) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 - 3 - 2", 3.0),
            ("16 / 4 / 2", 2.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("(-2) ^ 2", 4.0),
            ("- - 3", 3.0),
            ("7 % 4 * 2", 6.0),
            ("-7 % 4", -3.0),
            ("2e3 + .5", 2000.5),
            ("2*e", 2.0 * std::f64::consts::E),
            ("max(1, min(5, 3), 2) + sqrt(16) - abs(-1)", 6.0),
            ("round(2.5) + floor(-1.5) + ceil(0.1)", 2.0),
            (" 3\n×\t4 ÷ 2 − 1 ", 5.0),
            ("cos", f64::NAN),
        ] {
            match evaluate(text) {
                Ok(result) => assert_eq!(result, value, "{text}"),
                Err(error) => assert!(value.is_nan(), "{text}: {error}"),
            }
        }
    }

    #[test]
    fn invalid_expressions_are_refused_with_the_reason() {
        for (text, expected) in [
            ("", "The expression ends where a number was expected."),
            ("1 +", "ends where a number"),
            ("1 2", "Expected an operator at character 3: `2`."),
            ("(1", "ends where `)` was expected"),
            ("1)", "Expected an operator at character 2"),
            ("1 / 0", "Division by zero."),
            ("1 % (2 - 2)", "Division by zero."),
            ("0 ^ -1", "Division by zero."),
            ("sqrt(-1)", "not a real number"),
            ("(-8) ^ 0.5", "not a real number"),
            ("10 ^ 400", "too large"),
            ("1e999", "too large"),
            ("1 / (10 ^ 400)", "too large"),
            ("sqrt(1, 2)", "sqrt takes one number."),
            ("max()", "Expected a number"),
            ("sin(1)", "Expected a number, pi, e, sqrt"),
            ("é + 1", "Expected a number at character 1: `é + 1`."),
            (".", "Expected a number at character 1"),
            ("2e", "Expected an operator at character 2: `e`."),
            ("__import__('os')", "Expected a number"),
        ] {
            let error = evaluate(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn length_and_depth_are_bounded() {
        for piece in ["(", "-", "2^", "abs(", "(-", "1+("] {
            let text = piece.repeat(MAX_EXPRESSION_BYTES / piece.len());
            assert!(evaluate(&text).unwrap_err().contains("nests deeper"), "{piece}");
        }
        assert!(evaluate(&"1".repeat(MAX_EXPRESSION_BYTES + 1)).unwrap_err().contains("longer than"));
        assert_eq!(evaluate(&format!("0{}", "+1".repeat(499))).unwrap(), 499.0);
    }

    /// An expression whose value Rust computes.
    #[derive(Debug, Clone)]
    enum Oracle {
        Number(u16),
        Negative(Box<Oracle>),
        Binary(char, Box<Oracle>, Box<Oracle>),
    }

    impl Oracle {
        fn value(&self) -> f64 {
            match self {
                Self::Number(number) => f64::from(*number) / 8.0,
                Self::Negative(inner) => -inner.value(),
                Self::Binary(operator, left, right) => match (operator, left.value(), right.value()) {
                    ('+', left, right) => left + right,
                    ('-', left, right) => left - right,
                    ('*', left, right) => left * right,
                    ('/', left, right) => left / right,
                    (_, left, right) => left % right,
                },
            }
        }

        fn text(&self, spaces: &str) -> String {
            match self {
                Self::Number(number) => format!("{}", f64::from(*number) / 8.0),
                Self::Negative(inner) => format!("-({})", inner.text(spaces)),
                Self::Binary(operator, left, right) => {
                    format!("({}){spaces}{operator}{spaces}({})", left.text(spaces), right.text(spaces))
                }
            }
        }
    }

    fn oracle() -> impl Strategy<Value = Oracle> {
        any::<u16>().prop_map(Oracle::Number).prop_recursive(5, 24, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|inner| Oracle::Negative(Box::new(inner))),
                (prop::sample::select(vec!['+', '-', '*', '/', '%']), inner.clone(), inner)
                    .prop_map(|(operator, left, right)| Oracle::Binary(operator, Box::new(left), Box::new(right))),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_agree_with_those_of_rust(expression in oracle(), spaces in " {0,2}") {
            let text = expression.text(&spaces);
            prop_assume!(text.len() <= MAX_EXPRESSION_BYTES);
            let value = expression.value();
            match evaluate(&text) {
                Ok(result) => prop_assert_eq!(result, value, "{}", text),
                // Rust returns infinity or NaN where `evaluate` fails.
                Err(error) => prop_assert!(error.contains("zero") || error.contains("large"), "{text}: {error}"),
            }
        }

        #[test]
        fn no_text_gives_a_value_that_is_not_finite(text in "[-+*/%^()., 0-9a-zπé]{0,80}") {
            if let Ok(value) = evaluate(&text) {
                prop_assert!(value.is_finite());
            }
        }
    }
}
