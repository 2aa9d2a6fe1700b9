use serde_json::{Value, json};

use super::*;

fn options(model: &str) -> ModelOptions {
    ModelOptions { model: model.to_owned(), ..ModelOptions::default() }
}

fn config(options: &ModelOptions, requested: Option<bool>) -> Option<Value> {
    thinking_config(options, requested, &options.known_models.gemini(&options.model))
        .map(Value::from)
}

#[test]
fn thinking_that_is_not_set_is_left_to_the_model() {
    for model in ["gemini-2.5-pro", "gemini-3.8-flash", "gemini-2.0-flash"] {
        assert_eq!(config(&options(model), None), None, "{model}");
    }
    assert_eq!(config(&options("gemini-2.0-flash"), Some(true)), None, "the model does not think");
}

#[test]
fn a_budget_is_kept_to_what_the_model_takes() {
    let with = |model: &str, change: &dyn Fn(&mut ModelOptions), requested| {
        let mut options = options(model);
        change(&mut options);
        config(&options, requested)
    };
    let on = |budget: i64| Some(json!({"thinkingBudget": budget, "includeThoughts": true}));
    let off = |budget: i64| Some(json!({"thinkingBudget": budget}));
    assert_eq!(with("gemini-2.5-flash", &|_| {}, Some(true)), on(-1));
    assert_eq!(with("gemini-2.5-flash", &|_| {}, Some(false)), off(0));
    assert_eq!(with("gemini-2.5-pro", &|_| {}, Some(false)), off(128));
    let budget =
        |budget: u32| move |options: &mut ModelOptions| options.thinking_budget = Some(budget);
    assert_eq!(with("gemini-2.5-pro", &budget(4096), None), on(4096));
    assert_eq!(with("gemini-2.5-pro", &budget(99_999), None), on(32_768));
    assert_eq!(with("gemini-2.5-flash-lite", &budget(5), None), on(512));
    assert_eq!(with("gemini-2.5-flash", &budget(0), None), off(0));
    let effort = |effort: &'static str| {
        move |options: &mut ModelOptions| options.reasoning_effort = Some(effort.into())
    };
    assert_eq!(with("gemini-2.5-flash", &effort("medium"), None), on(8192));
    assert_eq!(with("gemini-2.5-flash", &effort("none"), None), off(0));
    assert_eq!(with("gemini-2.5-flash", &effort("none"), Some(true)), on(-1));
    let adaptive = |options: &mut ModelOptions| {
        options.thinking = Some(Thinking::Adaptive);
        options.thinking_budget = Some(4096);
    };
    assert_eq!(with("gemini-2.5-pro", &adaptive, None), on(-1));
}

#[test]
fn a_level_is_one_that_the_model_has() {
    let with = |model: &str, effort: Option<&str>, requested| {
        let mut options = options(model);
        options.reasoning_effort = effort.map(str::to_owned);
        options.thinking_budget = Some(4096);
        config(&options, requested).unwrap()
    };
    let on = |level: &str| json!({"thinkingLevel": level, "includeThoughts": true});
    assert_eq!(with("gemini-3.8-flash", None, Some(true)), json!({"includeThoughts": true}));
    assert_eq!(with("gemini-3.8-flash", Some("high"), None), on("HIGH"));
    assert_eq!(with("gemini-3.8-flash", Some("minimal"), None), on("LOW"));
    assert_eq!(with("gemini-3.5-flash", Some("minimal"), None), on("MINIMAL"));
    assert_eq!(with("gemini-3-pro-preview", Some("medium"), None), on("HIGH"));
    assert_eq!(with("gemini-3-pro-preview", Some("xhigh"), None), on("HIGH"));
    assert_eq!(
        with("gemini-3.8-flash", Some("high"), Some(false)),
        json!({"thinkingLevel": "LOW"})
    );
    assert_eq!(with("gemini-3.5-flash", None, Some(false)), json!({"thinkingLevel": "MINIMAL"}));
    assert_eq!(with("gemini-3.5-flash-lite", None, Some(true)), on("LOW"));
}

#[test]
fn options_that_a_model_does_not_take_are_named() {
    let warnings = |model: &str, change: &dyn Fn(&mut ModelOptions)| {
        let mut options = options(model);
        change(&mut options);
        let mut warnings = WarningList::new(&options, None);
        add_warnings(&mut warnings, &options, &options.known_models.gemini(model));
        warnings.list.join("; ")
    };
    let off = |options: &mut ModelOptions| options.thinking = Some(Thinking::Off);
    let on = |options: &mut ModelOptions| options.thinking = Some(Thinking::On);
    let budget = |options: &mut ModelOptions| options.thinking_budget = Some(100);
    let minimal =
        |options: &mut ModelOptions| options.reasoning_effort = Some("minimal".to_owned());
    assert!(
        warnings("gemini-2.0-flash", &on)
            .contains("`thinking`: gemini-2.0-flash cannot think; it is not sent")
    );
    assert!(warnings("gemini-2.5-pro", &off).contains("smallest budget, 128"));
    assert!(warnings("gemini-2.5-pro", &budget).contains("takes 128 to 32768, not 100"));
    assert!(warnings("gemini-4-argon", &off).contains("level LOW"));
    assert!(
        warnings("gemini-4-argon", &budget)
            .contains("`thinking_budget`: gemini-4-argon refuses a budget")
    );
    assert!(warnings("gemini-4-argon", &minimal).contains("the level LOW is sent"));
    for (model, change) in [
        ("gemini-2.0-flash", &off as &dyn Fn(&mut ModelOptions)),
        ("gemini-2.5-flash", &off),
        ("gemini-2.5-flash", &budget),
        ("gemini-3.5-flash", &off),
        ("gemini-3.5-flash", &minimal),
        ("gemini-3.5-flash", &on),
    ] {
        assert_eq!(warnings(model, change), "", "{model}");
    }
}
