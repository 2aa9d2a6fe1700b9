//! The tables of `docs/models.md` on the members of rules and on the servers that are known.

use std::collections::BTreeMap;

use agui_server::llm::KnownModels;
use serde::Deserialize;

const EMBEDDED: &str = include_str!("../../crates/agui-llm/src/models.toml");

#[derive(Deserialize)]
struct Servers {
    servers: BTreeMap<String, toml::Table>,
}

/// Returns the row that begins with this cell.
fn row(cell: &str) -> &'static str {
    let mut rows = include_str!("../../docs/models.md").lines();
    rows.find(|row| row.starts_with(&format!("| `{cell}` |")))
        .unwrap_or_else(|| panic!("docs/models.md has no row for {cell}"))
}

#[test]
fn the_documentation_has_the_members_of_rules() {
    for vendor in ["openai", "anthropic", "gemini"] {
        let rule = format!("[[{vendor}]]\nset = {{ \"?\" = 1 }}");
        let refusal = KnownModels::with(&rule).unwrap_err().to_string();
        // "unknown field `?`, expected one of `reasons`, …"
        let members = refusal.split_once("unknown field `?`").expect(&refusal).1;
        let members = members.split('`').skip(1).step_by(2).filter(|name| *name != "warning");
        let row = row(&format!("[[{vendor}]]"));
        let missing: Vec<_> = members.filter(|name| !row.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "{vendor}: {missing:?}");
    }
}

#[test]
fn the_documentation_has_the_servers() {
    for (name, members) in toml::from_str::<Servers>(EMBEDDED).unwrap().servers {
        let row = row(&name);
        let list = |member: &str| {
            members.get(member).and_then(|list| list.as_array()).into_iter().flatten()
        };
        let domains = list("domains").map(|domain| format!("`{}`", domain.as_str().unwrap()));
        let ports = list("ports").map(|port| format!("port {port}"));
        let members = ["token_limit", "thinking_member"]
            .iter()
            .filter_map(|member| members.get(*member)?.as_str());
        let members =
            members.map(|member| member.replace("reasoning_enabled", "reasoning.enabled"));
        let missing: Vec<_> =
            domains.chain(ports).chain(members).filter(|shown| !row.contains(shown)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}
