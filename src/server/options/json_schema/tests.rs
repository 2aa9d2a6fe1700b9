use std::{collections::BTreeSet, fs};

use super::{
    default_file_tests::{
        DEFAULT_FILE, SchemaOption, default_file, options_in, path_of, read, shown_options,
    },
    generator_tests::{generate, schema},
};

#[test]
fn the_committed_schema_and_default_file_are_those_of_the_options() {
    for (file, text) in [DEFAULT_FILE, "config/schema.json"].into_iter().zip(generate()) {
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(path_of(file), text).unwrap();
            continue;
        }
        assert!(
            text == read(file),
            "{file} differs from the options; write it again with \
             `UPDATE_SCHEMA=1 cargo test --lib the_committed_schema`"
        );
    }
}

#[test]
fn a_section_that_the_default_file_lacks_is_written_at_its_end() {
    let text = "# A comment.\n[cors]\n";
    let file = default_file(&schema(), text);
    assert!(file.starts_with(text), "{file}");
    let copilotkit = "\n# The routes for pages with CopilotKit.\n[copilotkit]\n# True serves";
    assert!(file.contains(copilotkit), "{file}");
    let table: toml::Table = file.parse().unwrap();
    assert_eq!(table["copilotkit"]["prefix"].as_str(), Some("/copilotkit"));
}

#[test]
fn the_schema_is_valid_by_its_meta_schema() {
    let schema = schema();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    jsonschema::meta::validate(&schema).unwrap();
}

fn schema_options() -> Vec<SchemaOption> {
    options_in(&schema())
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

#[test]
fn every_option_of_the_default_file_and_of_its_comments_is_in_the_schema() {
    let shown = shown_options(&read(DEFAULT_FILE));
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
        shown_options(&read(DEFAULT_FILE)).into_iter().map(|(path, _)| path).collect();
    let models = read("docs/models.md");
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
