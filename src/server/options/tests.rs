mod mistakes_tests;

use std::{path::PathBuf, time::Duration};

use super::*;

const DEFAULTS: &str = include_str!("../../../config/default.toml");

fn load(text: &str) -> Result<Loaded, String> {
    load_with(text, &[], vec![])
}

fn load_with(
    text: &str,
    environment: &[(&str, &str)],
    flags: Vec<(&'static str, &'static str, String)>,
) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    std::fs::write(&file, text).unwrap();
    let environment =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sources { file: Some(file), environment, flags }
        .load()
        .and_then(|loaded| loaded.config.check_agent_names(&loaded.origin, &[]).map(|()| loaded))
        .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

fn refused(text: &str) -> String {
    load(text).map(|loaded| loaded.config).unwrap_err()
}

#[test]
fn the_default_file_sets_every_option_to_its_default() {
    let file = Loaded::from_toml_str(DEFAULTS).unwrap().config;
    let mut defaults = Config {
        default_agent: Some("demo".to_owned()),
        auth: AuthConfig { mode: Some(AuthMode::None), ..AuthConfig::default() },
        ..Config::default()
    };
    (defaults.named_events.chat, defaults.named_events.agent) =
        (Some("demo".to_owned()), Some("demo".to_owned()));
    assert_eq!(format!("{file:?}"), format!("{defaults:?}"));
    assert_eq!(file.store.url, defaults.store.url);
    assert_eq!(Config::default().default_agent(), Some("demo"));
}

#[test]
fn a_file_needs_only_what_it_changes() {
    let config = load("[server]\nlisten = \"127.0.0.1:9\"").unwrap().config;
    assert_eq!(config.server.listen.port(), 9);
    assert_eq!(config.server.keep_alive, Some(Duration::from_secs(15)));
    assert_eq!(config.default_agent(), Some("demo"));
}

#[test]
fn a_file_that_names_agents_serves_those_instead_of_the_demo() {
    let one = load("[agents.me]\nkind = \"echo\"").unwrap().config;
    assert_eq!((one.agents.len(), one.default_agent()), (1, Some("me")));
    let several = "[agents.me]\nkind = \"echo\"\n[agents.you]\nkind = \"echo\"";
    assert_eq!(
        refused(several),
        "my.toml: default_agent: with several agents, one has to be the default: one of `me`, `you`"
    );
    let named = load(&format!("default_agent = \"you\"\n{several}")).unwrap().config;
    assert_eq!(named.default_agent(), Some("you"));
}

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
fn the_images_configuration_needs_a_key_or_no_authentication() {
    let load = |name: &str, value: &str| {
        let environment =
            [(name, value)].map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/docker.toml").into();
        let loaded = Sources { file: Some(file), environment, flags: vec![] }.load();
        loaded.map(|loaded| loaded.config).map_err(|error| error.to_string())
    };
    let config = load("AGUI_AUTH__MODE", "none").unwrap();
    assert_eq!((config.auth.mode, config.default_agent()), (Some(AuthMode::None), Some("demo")));
    assert_eq!(load("OTHER", "x").unwrap().auth.api_keys[0].env.as_deref(), Some("AGUI_API_KEY"));
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
fn a_wrong_file_is_refused_with_the_line_and_the_nearest_name() {
    for (text, expected) in [
        (
            "\n[server]\nlisen = \"x\"",
            "my.toml:3:1: unknown key `lisen`; did you mean `listen`? (known: `listen`, `allowed_hosts`, `public_url`, `data_dir`, `max_body_bytes`, \
             `max_body_bytes_in_flight`, `max_response_bytes_in_flight`, `max_connections`, `max_streams`, `keep_alive_secs`, `drain_secs`, `head_timeout_secs`, `body_timeout_secs`, `stall_timeout_secs`, `accept_traceparent`)\n   |\n 3 | \
             lisen = \"x\"\n   | ^",
        ),
        ("[srver]", "my.toml:1:2: unknown key `srver`; did you mean `server`?"),
        (
            "[server]\nlisten = \"nowhere\"",
            "my.toml:2:10: expected an address and a port, such as \"127.0.0.1:8080\" or",
        ),
        (
            "[server]\ndrain_secs = -1",
            "my.toml:2:14: expected a whole number of at least 0, found -1",
        ),
        (
            "[agents.x]\nkind = \"scrpt\"",
            "my.toml:2:8: unknown value `scrpt`; did you mean `script`?",
        ),
        (
            "[agents.x]\nkind = \"script\"",
            "my.toml:1:9: agents.x: kind = \"script\" needs `script`, a file",
        ),
        (
            "[agents.x]\nkind = \"echo\"\nscript = \"s\"",
            "my.toml:3:1: agents.x.script: only kind = \"script\" has",
        ),
        (
            "[agents.x]\nkind = \"echo\"\nmodel = \"m\"",
            "my.toml:3:1: agents.x.model: only kind = \"llm\" has",
        ),
        (
            "[agents.x]\nkind = \"echo\"\ndescribtion = \"m\"",
            "my.toml:3:1: unknown key `describtion`; did you mean `description`? (known: `kind`, `description`, `path`, `on_disconnect`, `subagent_events`, `a2ui`)",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"anthropic\"\napi = \"chat\"",
            "my.toml:4:1: agents.x.api: only provider = \"openai\" has this option",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\ndir = \"d\"",
            "my.toml:4:1: agents.x.dir: only kind = \"replay\" and provider = \"replay\" have this option",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"replay\"\nmax_retries = 1",
            "my.toml:4:1: agents.x.max_retries: provider = \"replay\" sends no requests, and has no such option",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"rust\"\nmodl = \"m\"",
            "my.toml:4:1: unknown key `modl`; did you mean `model`?",
        ),
        (
            "[agents.x]\nmodel = \"m\"",
            "my.toml:1:9: agents.x: `kind` is missing: \"echo\", \"script\", \"llm\", \"remote\", \"replay\"",
        ),
        ("[agents]\nx = 1", "my.toml:2:5: expected the table of an agent"),
        (
            "[agents.x]\nkind = \"echo\"\nidle_timeout_secs = 9",
            "my.toml:3:1: agents.x.idle_timeout_secs: only kind = \"llm\" and kind = \"remote\" have",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nurl = \"u\"",
            "my.toml:3:1: agents.x.url: only kind = \"remote\" has",
        ),
        ("[agents.x]\nkind = \"remote\"", "my.toml:1:9: agents.x: kind = \"remote\" needs `url`"),
        (
            "[agents.x]\nkind = \"remote\"\nurl = \"h:80/\"",
            "my.toml:3:1: agents.x.url: expected a URL",
        ),
        (
            "[agents.x]\nkind = \"remote\"\nurl = \"https://u:s@h/\"",
            "my.toml:3:1: agents.x.url: expected a URL",
        ),
        (
            "[agents.x]\nkind = \"remote\"\nurl = \"https://h/\"\nidle_timeout_secs = 0",
            "my.toml:4:1: agents.x.idle_timeout_secs: at least 1",
        ),
        (
            "[agents.x]\nkind = \"remote\"\nurl = \"https://h/\"\npass_headers = [\"a b\"]",
            "my.toml:4:1: agents.x.pass_headers: \"a b\" is not a valid header name",
        ),
        (
            "[agents.x]\nkind = \"remote\"\nurl = \"https://h/\"\npass_headers = [\"Transfer-Encoding\"]",
            "my.toml:4:1: agents.x.pass_headers: `Transfer-Encoding` describes the connection",
        ),
        (
            "[agents.x]\nkind = \"remote\"\nurl = \"https://h/\"\nheaders_env = { X-A = \"A\" }\npass_headers = [\"x-a\"]",
            "my.toml:5:1: agents.x.pass_headers: `x-a` is named twice",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nmodel = \"m\"",
            "my.toml:1:9: agents.x: kind = \"llm\" needs `provider`",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"",
            "my.toml:1:9: agents.x: kind = \"llm\" needs `model`",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"",
            "my.toml:1:9: agents.x: `api_key_env` is needed",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"https://u:secret@h/\"",
            "my.toml:5:1: agents.x.base_url: expected a URL",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\nmax_steps = 0",
            "my.toml:6:13: expected a whole number of at least 1, found 0",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ntop_p = 9",
            "my.toml:6:1: agents.x.top_p: a number from 0 to 1",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ncontext = { window = 9 }",
            "my.toml:6:1: agents.x.context: `window` is in tokens: at least 500",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ncontext = { summariser = \"x\" }",
            "my.toml:6:1: agents.x.context: `summariser` needs policy = \"summarise\"",
        ),
        (
            "[agents.x]\nkind = \"llm\"\ncontext = { policy = \"forget\" }",
            "my.toml:3:22: unknown value `forget`",
        ),
        (
            "[agents.x]\nkind = \"echo\"\npath = \"x\"",
            "my.toml:3:1: agents.x.path: the path must begin with a slash",
        ),
        (
            "[agents.x]\nkind = \"echo\"\npath = \"/threads/x\"",
            "my.toml:3:1: agents.x.path: the path is taken by",
        ),
        (
            "[agents.x]\nkind = \"echo\"\npath = \"/copilotkit/x\"",
            "my.toml:3:1: agents.x.path: the path is one of",
        ),
        (
            "[agents.x]\nkind = \"echo\"\npath = \"/x\"\n[agents.y]\nkind = \"echo\"\npath = \"/x\"",
            "my.toml:6:1: agents.y.path: another agent has this path",
        ),
        (
            "[agents.\"a/b\"]\nkind = \"echo\"",
            "my.toml:1:9: agents.a/b: an agent's name is part of its URL",
        ),
        (
            "default_agent = \"dmo\"",
            "my.toml:1:1: default_agent: there is no agent `dmo`; did you mean `demo`?",
        ),
        (
            "[[allow]]\nagents = [\"demo\"]\nprincipals = [\"key:a\"]",
            "my.toml:1:3: allow: callers are known with authentication only: set [auth] mode",
        ),
        (
            "[[allow]]\nagents = [\"demo\"]\nclaim = \"groups\"",
            "my.toml:1:3: allow: each table needs `agents`, and `principals` or `claim` with `values`",
        ),
        ("[server\nlisten = 1", "my.toml:1:8: unclosed table"),
        (
            "[store]\nurl = \"mysql://u:secret@h/d\"",
            "my.toml:2:1: store.url: expected \"memory:\", \"sqlite:PATH\"",
        ),
        (
            "[store]\nurl = \"memory:\"\nlisten_url = \"postgres://h/d\"",
            "my.toml:2:1: store.url: with listen_url, both URLs begin with",
        ),
        ("[threads]\nlease_secs = 1", "my.toml:2:1: threads.lease_secs: at least 2"),
        ("[runs]\nmax_concurrent = 0", "my.toml:2:1: runs.max_concurrent: at least 1 is needed"),
        (
            "[cors]\nallow_origins = [\"app.example.com\"]",
            "my.toml:2:1: cors.allow_origins: \"app.example.com\" is not",
        ),
        (
            "[cors]\nallow_origins = [\"https://a.b/\"]",
            "my.toml:2:1: cors.allow_origins: \"https://a.b/\" is not",
        ),
        (
            "[server]\nallowed_hosts = [\"agents.example.com:8080\"]",
            "my.toml:2:1: server.allowed_hosts: \"agents.example.com:8080\" is not a host name",
        ),
        ("[record]\nmax_files = 0", "my.toml:2:1: record.max_files: at least 1 is needed"),
        ("[files]\nurl_days = 0", "my.toml:2:1: files.url_days: at least 1 is needed"),
        (
            "[files]\npublic_url = \"chat.example.com\"",
            "my.toml:2:1: files.public_url: \"chat.example.com\" is not a URL such as \"https://chat.example.com\"",
        ),
        (
            "[server]\npublic_url = \"http://chat.example.com\"",
            "my.toml:2:1: server.public_url: \"http://chat.example.com\" is not a URL such as \"https://",
        ),
        (
            "[mcp.a]\nurl = \"https://h/\"\nlogin = \"person\"",
            "my.toml:3:1: mcp.a.login: logins are stored sealed: set [secrets] key_env",
        ),
        (
            "[mcp.a]\nurl = \"https://h/\"\nlogin = \"person\"\n[secrets]\nkey_env = \"K\"\n\
             [server]\nlisten = \"0.0.0.0:80\"\n[auth]\nallow_unauthenticated = true",
            "my.toml:3:1: mcp.a.login: without authentication, everybody would use the account of whoever logs in first",
        ),
        (
            "[mcp.a]\nurl = \"https://h/\"\nlogin = \"person\"\n[secrets]\nkey_env = \"K\"\n\
             [server]\nlisten = \"0.0.0.0:80\"\n[auth]\nmode = \"api_key\"\napi_keys = [{ name = \"a\", env = \"A\" }]",
            "my.toml:3:1: mcp.a.login: browsers have to reach this server: set [server] public_url",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nlogin = \"person\"",
            "my.toml:3:1: mcp.a.login: only a `url` has logins",
        ),
        (
            "[tools.a]\nkind = \"http\"\ndescription = \"d\"\nurl = \"https://h/\"\nlogin = \"person\"\nlogin_authorization_url = \"https://i/\"\n\
             login_token_url = \"https://i/\"\nlogin_client_id = \"c\"",
            "my.toml:5:1: tools.a.login: logins are stored sealed: set [secrets] key_env",
        ),
        (
            "[mcp.a]\nurl = \"https://h/\"\nlogin_scopes = [\"x\"]",
            "my.toml:3:1: mcp.a.login_scopes: it is for `login` only",
        ),
        (
            "[record]\nheaders = [\"x-tenant\", \"x-api-key\"]",
            "my.toml:2:1: record.headers: \"x-api-key\" looks like a header with credentials",
        ),
        (
            "[record]\nheaders = [\"X-Tenant\"]",
            "my.toml:2:1: record.headers: \"X-Tenant\" is not the name",
        ),
        ("[sandbox]\ntimeout_secs = 0", "my.toml:2:1: sandbox.timeout_secs: at least 1 is needed"),
        (
            "[sandbox]\napproval_of = { rm = \"always\" }",
            "my.toml:2:17: sandbox.approval_of.rm: the sandbox has no tool `rm`",
        ),
        (
            "[named_events]\nchat = \"dmo\"",
            "my.toml:2:1: named_events.chat: there is no agent `dmo`; did you mean `demo`?",
        ),
        ("[tools.w]\nurl = \"http://x\"", "my.toml:1:1: tools.w: `kind` is missing"),
        ("[[auth.api_keys]]\nenv = \"K\"", "my.toml:1:1: auth.api_keys[0]: `name` is missing"),
        (
            "[auth]\nmode = \"api_key\"",
            "my.toml:2:1: auth.mode: \"api_key\" needs at least one of `api_keys`",
        ),
        ("[auth]\nmode = \"jwd\"", "my.toml:2:8: unknown value `jwd`; did you mean `jwt`?"),
        (
            "[auth]\napi_keys = [{ name = \"a\", env = \"X\" }]",
            "my.toml:2:1: auth.api_keys: `mode` is not set",
        ),
        (
            "[auth]\nmode = \"api_key\"\napi_keys = [{ name = \"a\" }]",
            "my.toml:3:1: auth.api_keys: the key \"a\" needs either",
        ),
        (
            "[auth]\nmode = \"api_key\"\napi_keys = \"web\"",
            "my.toml:3:12: expected a list, found the text \"web\"",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\napi_key = \"sk-0123456789abcdef\"",
            "my.toml:4:1: agents.x.api_key: a key does not belong into this file: put it into an environment variable, and the \
             name of the variable here, as `api_key_env`\n   |\n 4 | api_key = \"…\"",
        ),
        (
            "[log]\nlevel = \"warning\"",
            "my.toml:2:1: log.level: \"warning\" is not a log level or filter: did you mean \"warn\"?",
        ),
    ] {
        let error = refused(text);
        assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
    }
}

#[test]
fn options_for_tokens_fit_together() {
    let jwt = |options: &str| format!("[auth]\nmode = \"jwt\"\n[auth.jwt]\n{options}");
    for (options, expected) in [
        ("", "my.toml:3:7: auth.jwt: mode = \"jwt\" needs a key: `secret_env`, `public_key`"),
        ("secret_env = \"S\"", "my.toml:3:7: auth.jwt.audience: `audience` is needed"),
        ("secret_env = \"S\"\naudience = \"\"", "my.toml:5:1: auth.jwt.audience: a name is empty"),
        (
            "secret_env = \"S\"\naudience = []\njwks_url = \"https://a.b\"",
            "my.toml:6:1: auth.jwt.jwks_url: `secret_env` is set, too",
        ),
        (
            "secret_env = \"S\"\nalgorithms = [\"RS256\"]",
            "my.toml:5:1: auth.jwt.algorithms: a secret is for \"HS256\" only",
        ),
        (
            "public_key_file = \"k\"\nalgorithms = [\"RS256\", \"HS256\"]",
            "my.toml:5:1: auth.jwt.algorithms: public keys are for",
        ),
        (
            "algorithms = [\"none\"]",
            "my.toml:4:15: unknown value `none` (known: `HS256`, `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, `Ed25519`, `EdDSA`)",
        ),
        ("audience = 7", "my.toml:4:12: expected a text or a list of texts"),
        (
            "secret_env = \"S\"\naudience = []\nissuer = \"\"",
            "my.toml:6:1: auth.jwt.issuer: it is empty",
        ),
        (
            "secret_env = \"S\"\naudience = []\nleeway_secs = 601",
            "my.toml:6:1: auth.jwt.leeway_secs: at most 600",
        ),
        (
            "jwks_url = \"https://h/\"\naudience = []\njwks_max_age_secs = 60",
            "my.toml:6:1: auth.jwt.jwks_max_age_secs: at least 1200",
        ),
        (
            "secret_env = \"S\"\naudience = []\nsubject_claim = \"\"",
            "my.toml:6:1: auth.jwt.subject_claim: it is",
        ),
    ] {
        let error = refused(&jwt(options));
        assert!(error.starts_with(expected), "{options}\n{error}\n{expected}");
    }
    let without_mode = refused("[auth.jwt]\nsecret_env = \"S\"");
    assert!(without_mode.starts_with("my.toml:1:7: auth.jwt: `mode` is not set"), "{without_mode}");
    for (audience, names) in [("\"a\"", &["a"][..]), ("[\"a\", \"b\"]", &["a", "b"]), ("[]", &[])] {
        let listen = "[server]\nlisten = \"0.0.0.0:80\"\n";
        let config = load(
            &(listen.to_owned() + &jwt(&format!("secret_env = \"S\"\naudience = {audience}"))),
        );
        assert_eq!(config.unwrap().config.auth.jwt.audience.unwrap(), names);
    }
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

#[test]
fn a_name_in_place_of_an_address_is_resolved() {
    let config = load("[server]\nlisten = \"localhost:9000\"").unwrap().config;
    assert!(config.server.listen.ip().is_loopback() && config.server.listen.port() == 9000);
    for wrong in ["9000", ":9000"] {
        let error = refused(&format!("[server]\nlisten = \"{wrong}\""));
        assert!(
            error.contains("the address is missing: write \"127.0.0.1:9000\", or \"0.0.0.0:9000\""),
            "{error}"
        );
    }
    for wrong in ["localhost", "localhost:http", "::1:9000"] {
        let error = refused(&format!("[server]\nlisten = \"{wrong}\""));
        assert!(error.contains("such as \"127.0.0.1:8080\" or \"localhost:8080\""), "{error}");
    }
}

#[test]
fn the_known_keys_of_an_agent_without_a_provider_are_listed_once() {
    let error = refused("[agents.x]\nkind = \"llm\"\nmodl = \"m\"");
    assert!(error.contains("unknown key `modl`; did you mean `model`?"), "{error}");
    assert_eq!(error.matches("`max_tokens`").count(), 1, "{error}");
}

#[test]
fn an_error_about_a_missing_file_names_it() {
    let error = Sources { file: Some("/nowhere/x.toml".into()), ..Sources::default() }
        .load()
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("/nowhere/x.toml: cannot be read: No such file"), "{error}");
}

#[test]
fn without_authentication_only_the_loopback_is_listened_on() {
    for address in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "[::ffff:10.0.0.1]:80"] {
        let listen = format!("[server]\nlisten = \"{address}\"\n");
        let error = refused(&listen);
        assert!(
            error.contains("my.toml:2:1") && error.contains("allow_unauthenticated = true"),
            "{error}"
        );
        load(&format!("{listen}[auth]\nallow_unauthenticated = true")).unwrap();
        load(&format!(
            "{listen}[auth]\nmode = \"api_key\"\napi_keys = [{{ name = \"a\", env = \"X\" }}]"
        ))
        .unwrap();
    }
    for address in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80"] {
        load(&format!("[server]\nlisten = \"{address}\"")).unwrap();
    }
}

#[test]
fn paths_are_relative_to_the_file_that_names_them() {
    let origin = load("[agents.x]\nkind = \"script\"\nscript = \"a/b.toml\"").unwrap().origin;
    let folder = origin.file().unwrap().0.parent().unwrap().to_owned();
    assert_eq!(origin.resolve(&PathBuf::from("a/b.toml")), folder.join("a/b.toml"));
    assert_eq!(origin.resolve(&PathBuf::from("/a/b.toml")), PathBuf::from("/a/b.toml"));
}

#[test]
fn a_configuration_can_be_a_text() {
    let error = Loaded::from_toml_str("[server]\nlisen = 1").unwrap_err().to_string();
    assert!(
        error.starts_with("configuration:2:1: unknown key `lisen`; did you mean `listen`?"),
        "{error}"
    );
    let loaded = Loaded::from_toml_str("[agents.me]\nkind = \"echo\"").unwrap();
    assert_eq!(loaded.config.default_agent(), Some("me"));
    assert_eq!(loaded.origin.resolve(&PathBuf::from("a/b.toml")), PathBuf::from("a/b.toml"));
}
