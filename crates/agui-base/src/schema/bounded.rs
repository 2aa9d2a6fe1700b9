//! A compiled schema whose checks are bounded.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::{Map, Value};
use tokio::{task::spawn_blocking, time::timeout};

use super::{
    patterns,
    size::{SchemaLimits, check_size, extent},
    work,
};
use crate::permits::Permits;

/// The most steps of a check. A step takes about 10 ns.
const MAX_STEPS: u64 = 5_000_000;
/// Smaller checks run on the async thread: another thread costs more than 50 µs when the machine is busy.
const MAX_INLINE_STEPS: u64 = 5_000;
/// Each problem takes about 300 bytes, even in branches that are not shown.
const MAX_EXPLAINED_STEPS: u64 = 100_000;
/// The checks that run at once. An owner has half of them.
const MAX_CHECKS: usize = 4;
/// The time limit of a check, including the wait for a permit.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_PROBLEMS: usize = 5;

static CHECKS: LazyLock<Arc<Permits>> =
    LazyLock::new(|| Permits::new(MAX_CHECKS, Some(MAX_CHECKS / 2)));

/// A compiled schema. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BoundedSchema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Value,
    values: u64,
    validator: jsonschema::Validator,
}

/// A part of a value that does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The JSON Pointer of the part; empty for the whole value.
    pub path: String,
    /// Does not repeat the value.
    pub text: String,
}

impl BoundedSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The limit that the schema exceeds, or the part that is invalid.
    pub fn new(schema: &Value, limits: SchemaLimits) -> Result<Self, String> {
        check_size(schema, limits)?;
        let options = jsonschema::options().offline().with_pattern_options(patterns::options());
        let validator = options.build(schema).map_err(|error| {
            let path = error.instance_path().to_string();
            format!("{}: {}", if path.is_empty() { "(root)" } else { &path }, error.masked())
        })?;
        Ok(Self(Arc::new(Compiled { source: schema.clone(), values: extent(schema).0, validator })))
    }

    /// Checks a value of an owner. Returns the first problems and whether there are more, or `None`
    /// if the value fits.
    ///
    /// # Errors
    /// The reason why the value cannot be checked within the limits.
    pub async fn problems(
        &self,
        owner: &Arc<str>,
        value: &Value,
    ) -> Result<Option<(Vec<Problem>, bool)>, String> {
        // Bounds the steps of counting.
        if self.0.values.saturating_mul(extent(value).0) <= MAX_INLINE_STEPS {
            let steps = work::count_steps(&self.0.source, value, MAX_STEPS)?;
            if steps <= MAX_INLINE_STEPS {
                return Ok(self.0.problems(value, steps));
            }
        }
        let check = async {
            let permit = CHECKS.take(owner, 1).await;
            let (schema, value) = (self.0.clone(), value.clone());
            spawn_blocking(move || {
                // A check that takes too long continues, and keeps its permit.
                let _permit = permit;
                let steps = work::count_steps(&schema.source, &value, MAX_STEPS)?;
                Ok(schema.problems(&value, steps))
            })
            .await
        };
        match timeout(CHECK_TIMEOUT, check).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(_)) => Err("the check of the value failed".to_owned()),
            Err(_) => Err(format!(
                "the check of the value took longer than {} s",
                CHECK_TIMEOUT.as_secs()
            )),
        }
    }
}

/// Compiles the schema of the reply to an interrupt, which an agent wrote. The agent has to check
/// the patterns that are left out.
///
/// # Errors
/// The limit that the schema exceeds, or the part that is invalid.
pub fn compile_response_schema(schema: &Map<String, Value>) -> Result<BoundedSchema, String> {
    let mut schema = Value::Object(schema.clone());
    check_size(&schema, SchemaLimits::INTERRUPT)?;
    patterns::remove_unsupported_patterns(&mut schema);
    BoundedSchema::new(&schema, SchemaLimits::INTERRUPT)
}

impl Compiled {
    fn problems(&self, value: &Value, steps: u64) -> Option<(Vec<Problem>, bool)> {
        if self.validator.is_valid(value) {
            return None;
        }
        if steps > MAX_EXPLAINED_STEPS {
            let text =
                "the value does not fit the schema; it is too large for an explanation".to_owned();
            return Some((vec![Problem { path: String::new(), text }], false));
        }
        let mut errors = self.validator.iter_errors(value);
        let problems =
            errors.by_ref().take(MAX_PROBLEMS).map(|error| Problem::from(&error)).collect();
        Some((problems, errors.next().is_some()))
    }
}

impl From<&ValidationError<'_>> for Problem {
    fn from(error: &ValidationError<'_>) -> Self {
        let text = match error.kind() {
            // The library's message repeats the whole value.
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                format!("there is no argument {}", unexpected.join(", "))
            }
            _ => error.masked_with("the value").to_string(),
        };
        Self { path: error.instance_path().to_string(), text }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn owner() -> Arc<str> {
        "key:ann".into()
    }

    fn schema(schema: &Value) -> BoundedSchema {
        BoundedSchema::new(schema, SchemaLimits::TOOL).unwrap()
    }

    #[tokio::test]
    async fn small_and_large_values_are_checked_alike() {
        let numbers = schema(&json!({ "items": { "type": "integer" } }));
        for len in [3, 300, 30_000] {
            let mut list = vec![json!(1); len];
            assert_eq!(numbers.problems(&owner(), &json!(list)).await, Ok(None));
            list[len - 1] = json!("x");
            let (problems, more) = numbers.problems(&owner(), &json!(list)).await.unwrap().unwrap();
            assert_eq!((problems.len(), more), (1, false), "{len}");
        }
        let all_wrong = vec![json!("x"); 500_000];
        let (problems, _) = numbers.problems(&owner(), &json!(all_wrong)).await.unwrap().unwrap();
        assert!(problems[0].text.contains("too large for an explanation"));
    }

    #[tokio::test]
    async fn a_check_that_would_take_too_long_is_refused_before_it_begins() {
        let twice = json!({ "allOf": [{ "properties": { "a": { "$ref": "#" } } }, { "properties": { "a": { "$ref": "#" } } }] });
        let value = (0..60).fold(json!({}), |below, _| json!({ "a": below }));
        let begin = Instant::now();
        let refused = schema(&twice).problems(&owner(), &value).await.unwrap_err();
        assert!(refused.contains("steps") && begin.elapsed() < Duration::from_secs(1), "{refused}");
    }

    #[tokio::test]
    async fn the_slow_checks_of_one_owner_keep_no_other_one_waiting() {
        let slow: Arc<str> = "key:slow".into();
        // All that an owner may have at once, so that a third one waits.
        let held = [CHECKS.take(&slow, 1).await, CHECKS.take(&slow, 1).await];
        let numbers = schema(&json!({ "items": { "type": "integer" } }));
        let large = json!(vec![1; 30_000]);
        let refused = numbers.problems(&slow, &large).await.unwrap_err();
        assert_eq!(refused, "the check of the value took longer than 5 s");
        assert_eq!(numbers.problems(&"key:bob".into(), &large).await, Ok(None));
        drop(held);
    }

    #[tokio::test]
    async fn recursion_as_deep_as_the_limit_fits_the_stack() {
        let list = schema(&json!({
            "anyOf": [{ "type": "null" }, { "not": { "not": { "properties": { "a": { "$ref": "#" } }, "unevaluatedProperties": true } } }]
        }));
        for depth in [20, 60, 70, 90] {
            let value = (0..depth).fold(json!({}), |below, _| json!({ "a": below, "b": 1 }));
            let _ = list.problems(&owner(), &value).await;
        }
        let wide =
            (0..31).fold(json!({ "type": "object" }), |inner, _| json!({ "allOf": [inner] }));
        let _ = schema(&wide).problems(&owner(), &json!(1)).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn patterns_are_matched_in_linear_time() {
        let text = format!("{}!", "a".repeat(30_000));
        let pattern = schema(&json!({ "pattern": "^(a+)+$" }));
        let begin = Instant::now();
        assert!(pattern.problems(&owner(), &json!(text)).await.unwrap().is_some());
        assert!(begin.elapsed() < Duration::from_secs(1));
        assert!(BoundedSchema::new(&json!({ "pattern": "(?=a)" }), SchemaLimits::TOOL).is_err());
    }
}
