//! Writes the options of `config/default.toml` from the schema: above each its doc comment, with its default.
//!
//! What remains by hand: the order of sections and options, headers of sections with the comments before them, comments
//! before an empty line, the values of options without a default, and everything about an option after its first line.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

pub(super) const DEFAULT_FILE: &str = "config/default.toml";

/// The length of a line of comments.
const WIDTH: usize = 120;

/// Returns the path of a file of the repository.
pub(super) fn path_of(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Reads a file of the repository.
pub(super) fn read(file: &str) -> String {
    fs::read_to_string(path_of(file)).unwrap()
}

/// Returns the text of `config/default.toml` with the comments and defaults of all options. An option that it lacks comes
/// after its neighbour in the struct, a section at the end.
pub(super) fn default_file(schema: &Value, file: &str) -> String {
    let options = options_in(schema);
    let shown: BTreeSet<_> = shown_options(file).into_iter().map(|(path, _)| path).collect();
    let (mut lines, mut comment, mut written) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut section, mut is_section_set) = (String::new(), true);
    for line in file.lines() {
        let content = line.trim_start_matches(['#', ' ']);
        let header = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = header {
            (section, is_section_set) = (format!("{}.", section_path(name)), content == line);
        }
        let path = name_of(content).map(|name| format!("{section}{name}"));
        let place = path.and_then(|path| options.iter().position(|(option, _)| *option == path));
        let Some(place) = place.filter(|place| written.insert(*place)) else {
            comment.push(line.to_owned());
            if place.is_some() || header.is_some() || !line.starts_with('#') {
                lines.append(&mut comment);
            }
            continue;
        };
        comment.clear();
        let (_, value) = content.split_once(" = ").unwrap();
        write_option(&options[place], value, content == line, &mut lines);
        let is_neighbour = |(path, _): &&SchemaOption| {
            path.strip_prefix(&section).is_some_and(|name| !name.contains('.'))
        };
        let missing =
            options[place + 1..].iter().filter(is_neighbour).take_while(|(path, option)| {
                let is_table = [option, &option["additionalProperties"]];
                !shown.contains(path)
                    && !is_table.iter().any(|table| table.get("properties").is_some())
            });
        for option in missing {
            let is_set = is_section_set && default_of(&option.1).is_some();
            write_option(option, &example(&option.1).to_string(), is_set, &mut lines);
        }
    }
    lines.append(&mut comment);
    write_missing_sections(schema, file, &options, &mut lines);
    lines.join("\n") + "\n"
}

fn write_missing_sections(
    schema: &Value,
    file: &str,
    options: &[SchemaOption],
    lines: &mut Vec<String>,
) {
    for (name, section) in schema["properties"].as_object().unwrap() {
        let header = format!("[{name}]");
        if section.get("properties").is_none() || file.lines().any(|line| line == header) {
            continue;
        }
        lines.push(String::new());
        wrap(section["description"].as_str().unwrap_or_default(), "", lines);
        lines.push(header);
        for option in options {
            let inner = option.0.strip_prefix(&format!("{name}."));
            if inner.is_some_and(|inner| !inner.contains('.'))
                && option.1.get("properties").is_none()
            {
                let is_set = default_of(&option.1).is_some();
                write_option(option, &example(&option.1).to_string(), is_set, lines);
            }
        }
    }
}

/// Returns the name of the option that a line sets.
fn name_of(line: &str) -> Option<String> {
    toml::from_str::<toml::Table>(line).ok()?.into_iter().next().map(|(name, _)| name)
}

/// Writes the doc comment of an option, and a line with its default, or with an example in a comment.
fn write_option(option: &SchemaOption, value: &str, is_set: bool, lines: &mut Vec<String>) {
    let (path, schema) = option;
    let text = |keyword: &str| schema[keyword].as_str().unwrap_or_default();
    wrap(&format!("{} {}", text("description"), text("x-unit")), "", lines);
    text("x-values").lines().for_each(|line| wrap(line, "  ", lines));
    let default = default_of(schema).filter(|it| is_set || it.is_number() || it.is_boolean());
    let value = default.map_or(value.to_owned(), |default| default.to_string());
    let name = path.rsplit('.').next().unwrap();
    lines.push(format!("{}{name} = {value}", if is_set { "" } else { "# " }));
}

/// Writes a text as a comment, with code in one piece. Further lines are indented.
fn wrap(text: &str, indent: &str, lines: &mut Vec<String>) {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.to_owned(),
        _ => part.replace(' ', "\0"),
    });
    let mut line = "#".to_owned();
    for word in parts.collect::<Vec<_>>().join("`").split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines
                .push(std::mem::replace(&mut line, format!("# {indent}{word}")).replace('\0', " "));
        } else {
            line = format!("{line} {word}");
        }
    }
    lines.push(line.replace('\0', " "));
}

fn default_of(schema: &Value) -> Option<Value> {
    let empty = match schema["type"].as_str() {
        Some("array") => Some(json!([])),
        Some("object") => Some(json!({})),
        _ => None,
    };
    schema.get("default").cloned().or(empty)
}

/// Returns a value that an option without a default can have, for the line that its author completes.
fn example(schema: &Value) -> Value {
    let by_type = match schema["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => json!("…"),
    };
    default_of(schema)
        .or(schema.get("minimum").cloned())
        .unwrap_or_else(|| schema.pointer("/enum/0").cloned().unwrap_or(by_type))
}

/// An option in the schema: its path, such as `agents.*.model`, and its own schema.
pub(super) type SchemaOption = (String, Value);

/// Returns all options of a schema, each before its members and before its neighbours, as the structs have them.
pub(super) fn options_in(schema: &Value) -> Vec<SchemaOption> {
    let mut found = Vec::new();
    collect_options(schema, "", &mut found);
    found
}

fn collect_options(schema: &Value, path: &str, found: &mut Vec<SchemaOption>) {
    for (name, option) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        found.push((path.clone(), option.clone()));
        collect_options(option, &format!("{path}."), found);
        collect_options(&option["additionalProperties"], &format!("{path}.*."), found);
        // A text or a table.
        for alternative in option["anyOf"].as_array().into_iter().flatten() {
            collect_options(alternative, &format!("{path}."), found);
        }
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
pub(super) fn shown_options(text: &str) -> Vec<ShownOption> {
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
