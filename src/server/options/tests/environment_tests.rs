//! Options from variables and flags.

use super::*;

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[runs]\nmax_seconds = 1";
    let environment = [
        ("AGUI_SERVER__LISTEN", "127.0.0.1:2"),
        ("AGUI_RUNS__MAX_SECONDS", "2"),
        ("AGUI_CORS__ALLOW_ORIGINS", "https://a.example, https://b.example"),
        ("AGUI_AUTH__MODE", "none"),
        ("AGUI_LOG__LEVEL", "2"),
        ("AGUI_DEFAULT_AGENT", "demo"),
        ("AGUI_KEY_WEB", "a key, not an option"),
        ("OTHER__THING", "x"),
    ];
    let config = load_with(
        file,
        &environment,
        vec![("--listen", "server.listen", "127.0.0.1:3".to_owned())],
    )
    .unwrap()
    .config;
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.runs.max, Some(Duration::from_secs(2)));
    assert_eq!(config.cors.allow_origins, ["https://a.example", "https://b.example"]);
    assert_eq!(config.auth.mode, Some(AuthMode::None));
    assert_eq!(config.log.level, "2");
}

#[test]
fn an_agent_can_come_from_the_environment() {
    let environment = [("AGUI_AGENTS__ME__SCRIPT", "my.toml"), ("AGUI_AGENTS__ME__KIND", "script")];
    let is_mine = |config: &Config| matches!(&config.agents["me"].kind, AgentKind::Script(options) if options.script.to_str() == Some("my.toml"));
    assert!(is_mine(&load_with("", &environment, vec![]).unwrap().config));
    let file = "[agents.me]\nkind = \"script\"\nscript = \"mine.toml\"";
    assert!(is_mine(&load_with(file, &environment[..1], vec![]).unwrap().config));
    assert!(is_mine(
        &load_with("[agents.me]\nkind = \"script\"", &environment[..1], vec![]).unwrap().config
    ));
    let decided = [("AGUI_AGENTS__ME__API_KEY_ENV", "KEY"), ("AGUI_AGENTS__ME__KIND", "llm")];
    let rest = [("AGUI_AGENTS__ME__MODEL", "4"), ("AGUI_AGENTS__ME__PROVIDER", "openai")];
    let config = load_with("", &[decided, rest].concat(), vec![]).unwrap().config;
    assert_eq!(config.agents["me"].llm().unwrap().model.model, "4");
    let incomplete = load_with("", &decided, vec![]).unwrap_err();
    assert!(incomplete.contains("agents.me: kind = \"llm\" needs `provider`"), "{incomplete}");
    let error = load_with("", &environment[..1], vec![]).unwrap_err();
    assert!(error.starts_with("AGUI_AGENTS__ME__SCRIPT: agents.me: `kind` is missing"), "{error}");
}

#[test]
fn lists_of_tables_can_come_from_the_environment() {
    let keys = [
        ("AGUI_AUTH__API_KEYS", "[{ name = \"web\", env = \"K\" }]"),
        ("AGUI_AUTH__MODE", "api_key"),
    ];
    let config = load_with("", &keys, vec![]).unwrap().config;
    assert_eq!(config.auth.api_keys[0].name, "web");
}

#[test]
fn a_wrong_variable_or_flag_is_refused_by_its_name() {
    let wrong = |name, value| load_with("", &[(name, value)], vec![]).unwrap_err();
    assert!(
        wrong("AGUI_SERVER__LISEN", "x")
            .starts_with("AGUI_SERVER__LISEN: unknown key `lisen`; did you mean `listen`?")
    );
    assert!(wrong("AGUI_RUNS__MAX_SECONDS", "soon").starts_with(
        "AGUI_RUNS__MAX_SECONDS: expected a whole number of at least 0, found the text \"soon\""
    ));
    assert!(wrong("AGUI_SERVRE__LISTEN", "x").contains("did you mean `server`?"));
    let flag = vec![("--listen", "server.listen", "nowhere".to_owned())];
    assert!(
        load_with("", &[], flag)
            .unwrap_err()
            .starts_with("--listen: expected an address and a port")
    );
}

#[test]
fn an_error_about_an_option_of_a_variable_or_a_flag_does_not_blame_the_file() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[runs]\nmax_concurrent = 1";
    let wrong = load_with(file, &[("AGUI_RUNS__MAX_CONCURRENT", "0")], vec![]).unwrap_err();
    assert_eq!(wrong, "AGUI_RUNS__MAX_CONCURRENT: runs.max_concurrent: at least 1 is needed");
    let flag = vec![("--listen", "server.listen", "0.0.0.0:1".to_owned())];
    let wrong = load_with(file, &[("AGUI_SERVER__LISTEN", "127.0.0.1:2")], flag).unwrap_err();
    assert!(wrong.starts_with("--listen: server.listen: 0.0.0.0:1 can be reached"), "{wrong}");
}

#[test]
fn a_variable_with_one_underscore_is_refused_if_it_means_an_option() {
    let refused = |name: &str| load_with("", &[(name, "1")], vec![]).unwrap_err();
    assert_eq!(
        refused("AGUI_SERVER_LISTEN"),
        "AGUI_SERVER_LISTEN: unknown variable; did you mean `AGUI_SERVER__LISTEN`?"
    );
    assert!(refused("AGUI_NAMED_EVENTS_CHAT").ends_with("did you mean `AGUI_NAMED_EVENTS__CHAT`?"));
    for key in [
        "AGUI_KEY_WEB",
        "AGUI_API_KEY",
        "AGUI_TOOLS_TOKEN",
        "AGUI_SERVER_PORT",
        "AGUI_SERVER_SERVICE_HOST",
        "AGUI_MCP_KEY",
    ] {
        load_with("", &[(key, "tcp://10.0.0.1:8080")], vec![]).unwrap();
    }
}
