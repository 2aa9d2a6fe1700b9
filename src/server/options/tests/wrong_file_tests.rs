//! A wrong file is refused with the place of the fault.

use super::*;

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
            "[agents.x]\nkind = \"echo\"\npath = \"/ai-sdk/x\"",
            "my.toml:3:1: agents.x.path: the path is one of [ai_sdk] prefix",
        ),
        (
            "[ai_sdk]\nprefix = \"/copilotkit/x\"",
            "my.toml:2:1: ai_sdk.prefix: the path is taken by [copilotkit] prefix",
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
            "[server]\npublic_url = \"chat.example.com\"",
            "my.toml:2:1: server.public_url: \"chat.example.com\" is not a URL such as \"https://chat.example.com\"",
        ),
        (
            "[mcp.a]\nurl = \"https://h/\"\nlogin = \"person\"\n[secrets]\nkey_env = \"K\"\n\
             [server]\npublic_url = \"http://chat.example.com\"",
            "my.toml:3:1: mcp.a.login: [server] public_url has to be https: http is for this machine only",
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
