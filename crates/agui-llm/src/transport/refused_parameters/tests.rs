use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::{
    super::parameters::{IfRefused, PARAMETERS, schema_in_words},
    *,
};
use agui_protocol::JsonObject;

fn form(refused: &RefusedParameters, owner: &str, json: &Value) -> RequestForm {
    let thread = Some(ThreadKey { owner: owner.into(), id: "t".into() });
    refused.first_form(json, thread.as_ref(), &Url::parse("http://h/v1").unwrap())
}

fn json(form: &RequestForm) -> Value {
    serde_json::from_slice(&form.body).unwrap()
}

/// Returns the members of a request after a refusal; `None` if it is shown.
fn members_after(refusal: &str, sent: &Value) -> Option<String> {
    let mut form = form(&RefusedParameters::default(), "key:ann", sent);
    let names = |form: &RequestForm| {
        json(form).as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    form.change(refusal, &CallTrace::default()).then(|| names(&form))
}

#[test]
fn a_parameter_is_left_out_only_if_a_refusal_names_it() {
    let sent = json!({"model": "m", "max_tokens": 5, "temperature": 0.5, "stream_options": {}, "messages": []});
    for (refusal, left) in [
        (
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#,
            "model temperature stream_options messages max_completion_tokens",
        ),
        (
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model.","param":"temperature"}}"#,
            "model max_tokens stream_options messages",
        ),
        ("`temperature` is deprecated for this model.", "model max_tokens stream_options messages"),
        (
            r#"{"message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}"#,
            "model max_tokens temperature messages",
        ),
        // https://github.com/1Panel-dev/MaxKB/issues/2912
        (
            r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {}}]","type":"BadRequestError","param":null,"code":400}"#,
            "model max_tokens temperature messages",
        ),
        (
            "invalid temperature: only 1 is allowed for this model",
            "model max_tokens stream_options messages",
        ),
    ] {
        assert_eq!(members_after(refusal, &sent).as_deref(), Some(left), "{refusal}");
    }
    for refusal in [
        "temperature must be at most 2",
        "max_tokens: 5 > 4, which is the maximum allowed number of output tokens",
        "Unknown parameter: 'messages[0].name'",
        "Unsupported: my_temperature",
        r#"{"error":{"message":"Unsupported content, temperature is fine","param":"messages[0].content"}}"#,
        "",
    ] {
        assert_eq!(members_after(refusal, &sent), None, "{refusal}");
    }
}

#[test]
fn what_helped_is_remembered_for_its_model_and_its_owner() {
    let refused = RefusedParameters::default();
    let sent = |model: &str| json!({"model": model, "top_p": 1, "n": 1});
    let mut own = form(&refused, "key:ann", &sent("a"));
    assert!(own.change("Unknown parameter: 'top_p'", &CallTrace::default()));
    assert_eq!(own.body, r#"{"model":"a","n":1}"#);
    assert_eq!(
        form(&refused, "key:ann", &sent("a")).body,
        sent("a").to_string(),
        "it has not helped yet"
    );
    refused.answered(&mut own);
    assert_eq!(form(&refused, "key:ann", &sent("a")).body, own.body);
    assert!(!own.change("Unknown parameter: 'top_p'", &CallTrace::default()));
    for (owner, model) in [("key:ann", "b"), ("key:bob", "a")] {
        assert_eq!(
            form(&refused, owner, &sent(model)).body,
            sent(model).to_string(),
            "{owner} {model}"
        );
    }
    let config = json!({"generationConfig": {"topK": 1, "seed": 2}});
    let mut own = form(&refused, "key:ann", &config);
    assert!(own.change(
        "Unknown name \"topK\" at 'generation_config': Cannot find field.",
        &CallTrace::default()
    ));
    assert_eq!(own.body, r#"{"generationConfig":{"seed":2}}"#);
}

#[test]
fn what_may_be_kept_what_is_safe_and_the_largest_answer_are_never_left_out() {
    let sent = json!({"store": false, "metadata": {"a": "b"}, "tool_choice": "none", "safetySettings": [],
        "max_output_tokens": 9, "generationConfig": {"maxOutputTokens": 9}, "temperature": 1});
    for name in [
        "store",
        "metadata",
        "tool_choice",
        "safetySettings",
        "max_output_tokens",
        "maxOutputTokens",
    ] {
        for refusal in [
            format!("Unknown parameter: '{name}'."),
            format!("Unsupported parameter: {name}. Supported are temperature and top_p."),
            json!({"error": {"message": "Unsupported, as temperature", "param": name}}).to_string(),
        ] {
            assert_eq!(members_after(&refusal, &sent), None, "{refusal}");
        }
    }
    let names: Vec<_> = PARAMETERS
        .iter()
        .filter(|it| it.if_refused == IfRefused::LeaveOut)
        .map(|it| it.name)
        .collect();
    assert!(
        !names.iter().any(|name| name.contains("tokens") || name.contains("safety")),
        "{names:?}"
    );
}

#[test]
fn two_names_of_one_limit_do_not_replace_each_other_without_an_end() {
    let (refused, trace) = (RefusedParameters::default(), CallTrace::default());
    let mut form = form(&refused, "key:ann", &json!({"model": "m", "max_tokens": 5}));
    assert!(form.change("Unsupported parameter: 'max_tokens'", &trace));
    assert_eq!(form.body, r#"{"model":"m","max_completion_tokens":5}"#);
    assert!(!form.change("Unsupported parameter: 'max_completion_tokens'", &trace));
    assert_eq!(
        form.body, r#"{"model":"m","max_completion_tokens":5}"#,
        "the limit is never dropped"
    );
}

#[test]
fn a_request_is_sent_in_at_most_eight_forms() {
    let sent: Vec<_> = PARAMETERS
        .iter()
        .filter(|it| it.if_refused == IfRefused::LeaveOut && !it.is_in_lists)
        .collect();
    let json: JsonObject =
        sent.iter().map(|parameter| (parameter.name.to_owned(), json!(1))).collect();
    let (trace, mut form) =
        (CallTrace::default(), form(&RefusedParameters::default(), "key:ann", &json.into()));
    let changes = sent
        .iter()
        .filter(|it| form.change(&format!("Unknown parameter: '{}'", it.name), &trace))
        .count();
    assert_eq!((changes, sent.len() > 8), (7, true));
}

#[test]
fn a_name_that_the_caller_may_have_written_is_tried_once_and_not_remembered() {
    // https://github.com/BerriAI/litellm/issues/7785: all tools are quoted.
    let quoted = "litellm.UnsupportedParamsError: together_ai does not support parameters: {'tools': [{'type': 'function', \
        'function': {'name': 'NAME', 'parameters': {}}}]}, for model=m. To drop these, set `litellm.drop_params=True`";
    for name in ["temperature", "seed", "max_tokens", "stream_options"] {
        let tool = |parameters: Value| json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
        let caller_texts = [
            json!({"tools": [{"type": "function", "function": {"name": name}}]}),
            json!({"tools": [tool(json!({"properties": {name: {}}}))]}),
            json!({"messages": [{"role": "user", "content": format!("Unknown parameter: '{name}'")}]}),
        ];
        for mut sent in caller_texts {
            sent[name] = json!(1);
            sent["top_p"] = json!(1);
            let refused = RefusedParameters::default();
            let mut form = form(&refused, "key:ann", &sent);
            assert!(form.change(&quoted.replace("NAME", name), &CallTrace::default()), "{sent}");
            assert_eq!(json(&form).get(name), None, "{sent}");
            assert!(
                !form.change(&quoted.replace("NAME", name), &CallTrace::default()),
                "one guess: {sent}"
            );
            refused.answered(&mut form);
            assert_eq!(super::tests::form(&refused, "key:ann", &sent).body, sent.to_string());
            // A name that the caller has not written is preferred, although it comes later in the text.
            let both = format!("Unsupported in a request with the tool '{name}': 'top_p'");
            let mut form = super::tests::form(&refused, "key:ann", &sent);
            assert!(form.change(&both, &CallTrace::default()));
            assert_eq!(json(&form).get("top_p"), None, "{sent}");
        }
    }
}

#[test]
fn a_place_in_tools_or_messages_names_no_parameter() {
    let sent = json!({"model": "m", "seed": 1, "strict": true, "tools": [{"name": "seed", "strict": true}], "messages": []});
    for refusal in [
        // https://github.com/bytedance/trae-agent/issues/173, https://github.com/anthropics/claude-code/issues/86664
        r#"{"error":{"message":"Invalid schema for function 'seed': In context=('properties', 'seed'), unsupported.","type":"invalid_request_error","param":"tools[2].parameters","code":"invalid_function_parameters"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: unsupported, see seed"}}"#,
        "messages.1.content.1.tool_use.seed: Extra inputs are not permitted",
        // https://github.com/partITech/php-mistral/issues/76
        r#"{"object":"Error","detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted","input":[{"param":"seed"}]}]}"#,
        // https://github.com/glowingjade/obsidian-smart-composer/issues/455
        "Invalid JSON payload received. Unknown name \"seed\" at 'tools[10].function_declarations[0].parameters.properties[0].value': Cannot find field.",
        r#"{"error":{"message":"Unknown name \"seed\"","details":[{"fieldViolations":[{"field":"tools[0].function_declarations[6].parameters","description":"Unknown name \"seed\""}]}]}}"#,
        "1 validation error: tools.0.input_schema.properties.strict\n  Extra inputs are not permitted [type=extra_forbidden, input_value='seed']",
    ] {
        assert_eq!(members_after(refusal, &sent), None, "{refusal}");
    }
}

#[test]
fn parameters_within_a_request_are_left_out_and_a_schema_is_told_in_words() {
    let schema = json!({"type": "object", "properties": {"strict": {"type": "string"}}});
    let sent = json!({
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
        "tools": [{"name": "a", "input_schema": schema, "strict": true, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}],
    });
    let (refused, trace) = (RefusedParameters::default(), CallTrace::default());
    let mut form = form(&refused, "key:ann", &sent);
    for refusal in [
        "output_config.effort: Extra inputs are not permitted",
        "tools.0.custom.cache_control.ephemeral.ttl: Extra inputs are not permitted",
        "tools.0.custom.strict: Extra inputs are not permitted",
        r#"{"error":{"type":"invalid_request_error","message":"output_config: Extra inputs are not permitted"}}"#,
    ] {
        assert!(form.change(refusal, &trace), "{refusal}");
    }
    let expected = json!({
        "tools": [{"name": "a", "input_schema": schema}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "system": [{"type": "text", "text": schema_in_words(schema.as_object().unwrap())}],
    });
    assert_eq!(json(&form), expected);
    refused.answered(&mut form);
    assert_eq!(super::tests::form(&refused, "key:ann", &sent).body, form.body);
}

#[test]
fn thinking_with_a_refused_signature_is_left_out() {
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let sent = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "b"}]},
    ]});
    let mut form = form(&RefusedParameters::default(), "key:ann", &sent);
    assert!(form.change(refusal, &CallTrace::default()));
    assert!(!String::from_utf8_lossy(&form.body).contains("thinking"), "{:?}", form.body);
    assert!(!form.change(refusal, &CallTrace::default()));
}

/// A refusal that quotes the caller's content, in one of the providers' forms.
fn refusals() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        3 => select(PARAMETERS).prop_map(|parameter| parameter.name.to_owned()),
        1 => "[a-z_.0-9\\[\\]'\"]{0,12}",
    ];
    let ways = [
        "Unsupported parameter: 'NAME' is not supported with this model.",
        "`NAME` is deprecated for this model.",
        "NAME: Extra inputs are not permitted",
        "tools.0.custom.NAME: Extra inputs are not permitted",
        r#"{"error":{"message":"Unknown parameter","param":"NAME"}}"#,
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","NAME"],"msg":"Extra inputs are not permitted"}]}"#,
        "Unknown name \"NAME\" at 'generation_config': Cannot find field.",
    ];
    (name, select(ways.to_vec())).prop_map(|(name, way)| way.replace("NAME", &name))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_refusal_of_one_owner_changes_a_request_of_another(
        said in prop::collection::vec((refusals(), any::<bool>()), 1..20),
        tool in "[a-z_]{1,12}",
    ) {
        let sent: JsonObject = PARAMETERS.iter().map(|parameter| (parameter.name.to_owned(), json!({"a": 1}))).collect();
        let sent: Value = sent.into_iter().chain([("tools".to_owned(), json!([{"name": tool, "strict": true}]))]).collect();
        let refused = RefusedParameters::default();
        for (refusal, is_answered) in said {
            let mut own = form(&refused, "key:ann", &sent);
            own.change(&refusal, &CallTrace::default());
            if is_answered {
                refused.answered(&mut own);
            }
            let own = json(&form(&refused, "key:ann", &sent));
            for parameter in PARAMETERS.iter().filter(|parameter| parameter.if_refused == IfRefused::Keep) {
                prop_assert!(own.get(parameter.name).is_some(), "{} after {refusal}", parameter.name);
            }
            prop_assert!(own.get("max_tokens").or(own.get("max_completion_tokens")).is_some(), "{refusal}");
            prop_assert_eq!(&form(&refused, "key:bob", &sent).body, &sent.to_string(), "{}", refusal);
        }
    }
}
