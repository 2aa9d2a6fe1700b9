use serde_json::json;

use super::*;
use crate::refusal::FailureKind;

fn refusal(body: &str, sent: &Value) -> ProviderRefusal {
    let mut refusal = ProviderRefusal::new(FailureKind::Other, body);
    refusal.sent = sent.clone();
    refusal
}

/// Returns the names of what a refusal names.
fn names(body: &str, sent: &Value) -> String {
    match named(&refusal(body, sent)) {
        Naming::Parameters { named, .. } => {
            named.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(" ")
        }
        Naming::InDoubt(parameter) => format!("{}?", parameter.name),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_refusal_names_parameters_by_a_place_or_by_known_words() {
    let sent = json!({"model": "m", "max_tokens": 5, "temperature": 0.5, "top_p": 1, "stream_options": {}, "messages": []});
    for (body, expected) in [
        (
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#,
            "max_tokens",
        ),
        (
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model.","param":"temperature"}}"#,
            "temperature",
        ),
        (r#"{"error":{"message":"fixed sampling","param":"temperature"}}"#, "temperature"),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("m does not support parameters: ['temperature', 'top_p']", "temperature top_p"),
        (
            r#"{"message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"},{"loc":["body","top_p"],"msg":"Extra inputs are not permitted"}]}}"#,
            "stream_options top_p",
        ),
        // https://github.com/1Panel-dev/MaxKB/issues/2912
        (
            r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {}}]","type":"BadRequestError","param":null,"code":400}"#,
            "stream_options",
        ),
        ("invalid temperature: only 1 is allowed for this model", "temperature"),
        ("temperature must be at most 2", "Nothing"),
        (
            r#"{"error":{"message":"Invalid 'temperature': decimal above maximum value.","param":"temperature"}}"#,
            "Fixed",
        ),
        ("Unknown parameter: 'messages[0].name'", "Nothing"),
        ("Unsupported: my_temperature", "Nothing"),
        (
            r#"{"error":{"message":"Unsupported content, temperature is fine","param":"messages[0].content"}}"#,
            "Nothing",
        ),
        ("", "Nothing"),
    ] {
        assert_eq!(names(body, &sent), expected, "{body}");
    }
}

#[test]
fn what_may_be_kept_what_is_safe_and_the_largest_answer_are_fixed() {
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
        for body in [
            format!("Unknown parameter: '{name}'."),
            format!("Unsupported parameter: {name}. Supported are temperature and top_p."),
            json!({"error": {"message": "Unsupported, as temperature", "param": name}}).to_string(),
        ] {
            assert_eq!(names(&body, &sent), "Fixed", "{body}");
        }
    }
    let mut configured = refusal("Unknown parameter: 'temperature'", &sent);
    configured.fixed = ["temperature".to_owned()].into();
    assert_eq!(named(&configured), Naming::Fixed, "of `extra_body`");
    let left_out: Vec<_> = PARAMETERS
        .iter()
        .filter(|it| it.if_refused == IfRefused::LeaveOut)
        .map(|it| it.name)
        .collect();
    assert!(
        !left_out.iter().any(|name| name.contains("tokens") || name.contains("safety")),
        "{left_out:?}"
    );
}

#[test]
fn a_name_that_the_caller_may_have_written_is_in_doubt() {
    // https://github.com/BerriAI/litellm/issues/7785: all tools are quoted.
    let quoted = "litellm.UnsupportedParamsError: together_ai does not support parameters: {'tools': [{'type': 'function', \
        'function': {'name': 'NAME', 'parameters': {}}}]}, for model=m. To drop these, set `litellm.drop_params=True`";
    for name in ["temperature", "seed", "max_tokens", "stream_options"] {
        let tool = |parameters: Value| json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
        for mut sent in [
            json!({"tools": [{"type": "function", "function": {"name": name}}]}),
            json!({"tools": [tool(json!({"properties": {name: {}}}))]}),
            json!({"messages": [{"role": "user", "content": format!("Unknown parameter: '{name}'")}]}),
        ] {
            sent[name] = json!(1);
            sent["top_p"] = json!(1);
            assert_eq!(names(&quoted.replace("NAME", name), &sent), format!("{name}?"), "{sent}");
            // A name that the caller has not written is preferred, although it comes later in the text.
            let both = format!("Unsupported in a request with the tool '{name}': 'top_p'");
            assert_eq!(names(&both, &sent), "top_p", "{sent}");
        }
    }
}

#[test]
fn a_place_in_tools_is_fixed_and_one_in_messages_names_no_parameter() {
    let sent = json!({"model": "m", "seed": 1, "strict": true, "tools": [{"name": "seed", "strict": true}], "messages": []});
    for (body, expected) in [
        // https://github.com/bytedance/trae-agent/issues/173, https://github.com/anthropics/claude-code/issues/86664
        (
            r#"{"error":{"message":"Invalid schema for function 'seed': In context=('properties', 'seed'), unsupported.","type":"invalid_request_error","param":"tools[2].parameters","code":"invalid_function_parameters"}}"#,
            "Fixed",
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: unsupported, see seed"}}"#,
            "Fixed",
        ),
        ("messages.1.content.1.tool_use.seed: Extra inputs are not permitted", "Nothing"),
        // https://github.com/partITech/php-mistral/issues/76
        (
            r#"{"object":"Error","detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted","input":[{"param":"seed"}]}]}"#,
            "Fixed",
        ),
        // https://github.com/glowingjade/obsidian-smart-composer/issues/455
        (
            "Invalid JSON payload received. Unknown name \"seed\" at 'tools[10].function_declarations[0].parameters.properties[0].value': Cannot find field.",
            "Fixed",
        ),
        (
            r#"{"error":{"message":"Unknown name \"seed\"","details":[{"fieldViolations":[{"field":"tools[0].function_declarations[6].parameters","description":"Unknown name \"seed\""}]}]}}"#,
            "Fixed",
        ),
        (
            "1 validation error: tools.0.input_schema.properties.strict\n  Extra inputs are not permitted [type=extra_forbidden, input_value='seed']",
            "Fixed",
        ),
    ] {
        assert_eq!(names(body, &sent), expected, "{body}");
    }
}

#[test]
fn parameters_of_groups_of_tools_and_of_messages_are_named_by_their_paths() {
    let sent = json!({
        "output_config": {"effort": "low", "format": {}}, "generationConfig": {"topK": 1},
        "reasoning": {"effort": "low", "summary": "auto"}, "text": {"format": {}, "verbosity": "low"},
        "tools": [{"name": "a", "strict": true, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}],
    });
    for (body, expected) in [
        ("output_config.effort: Extra inputs are not permitted", "effort"),
        (
            "tools.0.custom.cache_control.ephemeral.ttl: Extra inputs are not permitted",
            "cache_control",
        ),
        ("tools.0.custom.strict: Extra inputs are not permitted", "strict"),
        ("output_config: Extra inputs are not permitted", "output_config"),
        ("Unknown name \"topK\" at 'generation_config': Cannot find field.", "topK"),
        (
            r#"{"error":{"message":"Your organization must be verified.","param":"reasoning.summary"}}"#,
            "summary",
        ),
        (r#"{"error":{"message":"no","param":"text.format"}}"#, "format"),
        ("unsupported image format", "Nothing"),
    ] {
        assert_eq!(names(body, &sent), expected, "{body}");
    }
}
