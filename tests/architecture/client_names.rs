//! The path of a request knows no client by name, in identifiers, strings or comments: what is
//! particular to one stands in `src/clients/`, and travels as traits that are named after behaviour.
//! Options and commands are for people who have a client. Partners on the other side (providers,
//! remote agents) have their names.

use std::fs;

use super::workspace::{shown, sources};

const NAMES: [&str; 10] = [
    "ag-ui/client",
    "httpagent",
    "copilot",
    "tanstack",
    "assistant-ui",
    "assistant_ui",
    "assistantui",
    "ai-sdk",
    "ai_sdk",
    "vercel",
];

/// The folder of the clients, options, and commands.
const PLACES: [&str; 6] = [
    "src/clients/",
    "src/options.rs",
    "src/http/options.rs",
    "src/http/client_options.rs",
    "src/server/options/",
    "src/server/cli/",
];

/// Addresses of public reports about providers, and a key of metadata on the wire.
const EXEMPT: [&str; 2] = ["https://github.com/vercel/ai/issues/", "\"@ag-ui/client\""];

/// Returns the names in a text.
fn named(text: &str) -> Vec<&'static str> {
    let text = EXEMPT.iter().fold(text.to_lowercase(), |text, exempt| text.replace(exempt, ""));
    NAMES.into_iter().filter(|name| text.contains(name)).collect()
}

#[test]
fn only_the_folder_of_the_clients_options_and_commands_name_a_client() {
    let mut faults = Vec::new();
    for file in sources() {
        let path = shown(&file);
        let is_of_server = path.starts_with("src/") || path.starts_with("crates/");
        if is_of_server && !PLACES.iter().any(|place| path.starts_with(place)) {
            let names = named(&fs::read_to_string(&file).unwrap());
            faults.extend(names.iter().map(|name| format!("{path}: {name}")));
        }
    }
    assert!(faults.is_empty(), "name the behaviour, not the client:\n{}", faults.join("\n"));
}

#[test]
fn names_are_found_in_identifiers_and_comments() {
    assert_eq!(named("fn is_TanStack() {} // as Assistant-UI does"), ["tanstack", "assistant-ui"]);
    assert_eq!(
        named("// `@ag-ui/client` keeps it, as HttpAgent does"),
        ["ag-ui/client", "httpagent"]
    );
    assert_eq!(named("/// <https://github.com/vercel/ai/issues/15664>, a vendor"), [""; 0]);
    assert_eq!(named("const KEY: &str = \"@ag-ui/client\";"), [""; 0]);
}
