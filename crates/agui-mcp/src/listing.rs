//! Lists of resources and prompts as texts for a model, one page for each call.

use rmcp::model::PaginatedRequestParams;
use serde_json::{Value, json};

use super::{result, tool::MAX_NAME_CHARS};
use agui_base::text::shortened;
use agui_protocol::{JsonObject, MessageContent};
use agui_tools::{ToolError, host::Secrets};

const MAX_ENTRY_CHARS: usize = 500;
const MAX_ENTRIES: usize = 500;
/// A server could send a cursor of any length.
const MAX_CURSOR_BYTES: usize = 2000;

/// Returns the name of a tool, which has the server's name, because several servers can have resources.
pub(super) fn tool_name(server: &str, action: &str) -> String {
    let server: String = server.chars().take(MAX_NAME_CHARS - action.len() - 1).collect();
    format!("{server}_{action}")
}

pub(super) fn parameters() -> Value {
    let cursor = json!({ "type": "string", "description": "The cursor of the next page, from the page before" });
    json!({ "type": "object", "properties": { "cursor": cursor }, "additionalProperties": false })
}

/// Returns the page that the arguments ask for.
pub(super) fn page(arguments: &JsonObject) -> PaginatedRequestParams {
    let cursor =
        arguments.get("cursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned))
}

/// Returns a line for each entry of a list: its `key`, name, media type, description and arguments.
pub(super) fn lines(response: &Value, list: &str, key: &str, secrets: &Secrets) -> Vec<String> {
    let entries = response.get(list).and_then(Value::as_array).into_iter().flatten();
    entries.take(MAX_ENTRIES).map(|entry| line(entry, key, secrets)).collect()
}

fn line(entry: &Value, key: &str, secrets: &Secrets) -> String {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut line = format!("- {}", text(key).unwrap_or("(nameless)"));
    let title = text("title").or(text("name")).filter(|title| text(key) != Some(*title));
    title.into_iter().for_each(|title| line.push_str(&format!(" ({title})")));
    text("mimeType").into_iter().for_each(|kind| line.push_str(&format!(" [{kind}]")));
    text("description").into_iter().for_each(|about| line.push_str(&format!(": {about}")));
    let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let arguments: Vec<_> = arguments
        .filter_map(|argument| {
            let name = argument.get("name").and_then(Value::as_str)?;
            let is_required = argument.get("required").and_then(Value::as_bool).unwrap_or(false);
            Some(if is_required { format!("{name} (required)") } else { name.to_owned() })
        })
        .collect();
    if !arguments.is_empty() {
        line.push_str(&format!("; arguments: {}", arguments.join(", ")));
    }
    let line = secrets.redact(&line).unwrap_or(line);
    shortened(&line.replace(char::is_control, " "), MAX_ENTRY_CHARS)
}

/// `page` is the response that has the cursor of the next page.
pub(super) fn to_content(
    mut lines: Vec<String>,
    page: &Value,
    limit: usize,
    secrets: &Secrets,
) -> Result<MessageContent, ToolError> {
    if lines.is_empty() {
        lines.push("(the list is empty)".to_owned());
    }
    match page.get("nextCursor").and_then(Value::as_str) {
        Some(next) if next.len() <= MAX_CURSOR_BYTES => {
            lines.insert(
                0,
                format!("There are more. Call again with {}.", json!({ "cursor": next })),
            );
        }
        Some(_) => lines.insert(0, "There are more, which cannot be listed.".to_owned()),
        None => {}
    }
    result::to_content(
        &json!({ "content": [{ "type": "text", "text": lines.join("\n") }] }),
        limit,
        secrets,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_short_line() {
        let entry = json!({
            "name": "greet", "title": "Greeting", "description": "Says\nhello",
            "arguments": [{ "name": "who", "required": true }, { "name": "how" }, {}]
        });
        let page = json!({ "prompts": [entry, { "uri": 7 }, "x", { "name": "y".repeat(5000) }], "nextCursor": "2" });
        let lines = lines(&page, "prompts", "name", &Secrets::default());
        assert_eq!(lines[0], "- greet (Greeting): Says hello; arguments: who (required), how");
        assert_eq!(
            (&*lines[1], &*lines[2], lines[3].chars().count()),
            ("- (nameless)", "- (nameless)", MAX_ENTRY_CHARS + 1)
        );
        let content = to_content(lines, &page, 10_000, &Secrets::default()).unwrap();
        assert!(
            content
                .text()
                .starts_with("There are more. Call again with {\"cursor\":\"2\"}.\n- greet")
        );
        assert_eq!(
            to_content(Vec::new(), &json!({}), 100, &Secrets::default()).unwrap().text(),
            "(the list is empty)"
        );
    }

    #[test]
    fn a_secret_at_the_end_of_an_entry_is_removed_as_a_whole() {
        let mut secrets = Secrets::default();
        secrets.add("sk-12345678");
        for before in MAX_ENTRY_CHARS - 20..MAX_ENTRY_CHARS {
            let entry =
                json!({ "name": "a", "description": format!("{}sk-12345678", "x".repeat(before)) });
            let lines = lines(&json!({ "prompts": [entry] }), "prompts", "name", &secrets);
            assert!(!lines[0].contains("sk"), "{}", lines[0]);
        }
    }

    #[test]
    fn names_of_tools_fit_all_providers() {
        assert_eq!(tool_name("files", "read_resource"), "files_read_resource");
        let long = tool_name(&"x".repeat(64), "read_resource");
        assert!(long.len() == MAX_NAME_CHARS && long.ends_with("_read_resource"));
    }
}
