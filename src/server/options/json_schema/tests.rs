use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::generator_tests::{DEFAULTS, ROOT, schema};

/// An option in the schema: its path, such as `agents.*.model`, and its own schema.
type SchemaOption = (String, Value);

fn options_of(schema: &Value, path: &str, found: &mut Vec<SchemaOption>) {
    for (name, option) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        found.push((path.clone(), option.clone()));
        options_of(option, &format!("{path}."), found);
        options_of(&option["additionalProperties"], &format!("{path}.*."), found);
        // A text or a table.
        for alternative in option["anyOf"].as_array().into_iter().flatten() {
            options_of(alternative, &format!("{path}."), found);
        }
    }
}

fn schema_options() -> Vec<SchemaOption> {
    let mut found = Vec::new();
    options_of(&schema(), "", &mut found);
    found
}

#[test]
fn every_option_has_a_description_for_people_who_write_toml() {
    let options = schema_options();
    assert!(options.len() > 150, "{}", options.len());
    for (path, option) in options {
        let text =
            option["description"].as_str().unwrap_or_else(|| panic!("{path} has no doc comment"));
        for of_rust in ["`None`", "[`", "crate::", "Option<", "`Debug`"] {
            assert!(
                !text.contains(of_rust),
                "{path}: {of_rust} says nothing to people who write TOML: {text}"
            );
        }
        let is_time = ["_secs", "_seconds"].iter().any(|end| path.ends_with(end));
        assert!(
            !is_time || text.to_lowercase().contains("in seconds"),
            "{path}: the unit is missing: {text}"
        );
        assert!(
            !path.ends_with("_bytes") || text.contains("bytes"),
            "{path}: the unit is missing: {text}"
        );
    }
}

/// An option in a file, also in a comment: its path and its value.
type ShownOption = (String, Value);

/// Returns the path of a section, in which the names of agents, tools and servers are `*`.
fn section_path(section: &str) -> String {
    match section.split_once('.') {
        Some((tables @ ("agents" | "tools" | "mcp"), rest)) => {
            let inner =
                rest.split_once('.').map(|(_, inner)| format!(".{inner}")).unwrap_or_default();
            format!("{tables}.*{inner}")
        }
        _ if section == "prices" => "prices.*".to_owned(),
        _ => section.to_owned(),
    }
}

/// Returns the options of a file and of its comments: each `option = value` on a line of its own.
fn shown_options(text: &str) -> Vec<ShownOption> {
    let (mut section, mut shown) = (String::new(), Vec::new());
    for line in text.lines() {
        let line = line.trim_start_matches(['#', ' ']);
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = section_path(name);
        } else if let Ok(table) = toml::from_str::<toml::Table>(line) {
            for (name, value) in table {
                match section.as_str() {
                    "prices.*" => collect_members(&section, &json!(value), &mut shown),
                    "" => collect(&name, json!(value), &mut shown),
                    section => collect(&format!("{section}.{name}"), json!(value), &mut shown),
                }
            }
        }
    }
    shown
}

fn collect(path: &str, value: Value, shown: &mut Vec<ShownOption>) {
    collect_members(path, &value, shown);
    shown.push((path.to_owned(), value));
}

fn collect_members(path: &str, value: &Value, shown: &mut Vec<ShownOption>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        collect(&format!("{path}.{name}"), inner.clone(), shown);
    }
}

#[test]
fn every_option_of_the_default_file_and_of_its_comments_is_in_the_schema() {
    let shown = shown_options(DEFAULTS);
    assert!(shown.len() > 150, "{}", shown.len());
    let options = schema_options();
    for (path, value) in shown {
        let Some((_, option)) = options.iter().find(|(option, _)| *option == path) else {
            // It may be a name that people choose, such as that of a header, in a table that is checked as a whole.
            let is_around = |option: &&SchemaOption| path.starts_with(&format!("{}.", option.0));
            let around = options.iter().filter(is_around).max_by_key(|(option, _)| option.len());
            let is_chosen = around.is_some_and(|(around, _)| {
                !options.iter().any(|(option, _)| option.starts_with(&format!("{around}.")))
            });
            assert!(is_chosen, "{path} is not in the schema");
            continue;
        };
        let validator = jsonschema::draft7::new(option).unwrap();
        if let Err(error) = validator.validate(&value) {
            panic!("{path} = {value} does not fit the schema: {error}");
        }
    }
}

#[test]
fn every_option_of_the_schema_is_shown_in_the_default_file() {
    let shown: BTreeSet<String> =
        shown_options(DEFAULTS).into_iter().map(|(path, _)| path).collect();
    let models = fs::read_to_string(format!("{ROOT}/docs/models.md")).unwrap();
    for (path, option) in schema_options() {
        let is_section =
            option.get("properties").is_some() || option["additionalProperties"].is_object();
        let is_shown = shown.contains(&path)
            || is_section && shown.iter().any(|it| it.starts_with(&format!("{path}.")));
        // The members of a profile are a table there.
        let member = path.strip_prefix("agents.*.profile.");
        let is_member = member.is_some_and(|member| models.contains(&format!("`{member}`")));
        assert!(is_shown || is_member, "{path} is not in config/default.toml");
    }
}
