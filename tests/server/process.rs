//! The command: its start, its logs, and its end.

use std::process::Command;

use agui_server::store::SqliteStore;
use agui_store::sealed::{ExpectedValue, SealedStore as _, SealedValue};
use serde_json::{Value, json};

use crate::support::{
    running::{events, eventually_async, input},
    server::{BINARY, Process},
};

pub(super) fn client() -> reqwest::Client {
    agui_base::upstream::direct_client(&Default::default()).unwrap()
}

/// Runs a command that ends by itself. Returns its exit code, standard output and standard error.
pub(super) fn command(
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Option<i32>, String, String) {
    let output =
        Command::new(BINARY).args(arguments).envs(environment.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn without_arguments_the_demo_agent_is_served() {
    let process = Process::start(&[], &[]);
    let response = client()
        .post(format!("{}/send-message", process.url))
        .json(&input("Hello"))
        .send()
        .await
        .unwrap();
    let events = events(&response.text().await.unwrap());
    assert_eq!(events[2]["delta"], "Hello");
    assert_eq!(events[3]["delta"], "! How can I help you?");
}

/// Returns the log of a server with these variables, from its start to its end.
fn log_of(environment: &[(&str, &str)]) -> String {
    let process = Process::start(&[], environment);
    process.signal("-TERM");
    process.ended().1
}

#[tokio::test]
async fn a_key_in_a_variable_that_the_configuration_does_not_read_causes_a_warning() {
    let warning = "AGUI_API_KEY is set, but no request needs a key";
    assert!(log_of(&[("AGUI_API_KEY", "k")]).contains(warning));
    let keys = "[{ name = \"default\", env = \"AGUI_API_KEY\" }]";
    let log = log_of(&[
        ("AGUI_API_KEY", "k"),
        ("AGUI_AUTH__API_KEYS", keys),
        ("AGUI_AUTH__MODE", "api_key"),
    ]);
    assert!(!log.contains(warning), "{log}");
}

#[tokio::test]
async fn streams_that_are_limited_by_the_connections_cause_a_warning() {
    let started = |streams| {
        log_of(&[("AGUI_SERVER__MAX_CONNECTIONS", "100"), ("AGUI_SERVER__MAX_STREAMS", streams)])
    };
    let log = started("51");
    let warning = "[server] max_streams is lowered to 50, half of the 100 connections";
    assert!(log.contains(warning), "{log}");
    let log = started("50");
    assert!(!log.contains("max_streams is lowered"), "{log}");
}

#[tokio::test]
async fn a_signal_lets_runs_end_and_then_ends_them() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let process = Process::start(&[], &[("AGUI_SERVER__DRAIN_SECS", "5")]);
        let send = |text: &str| {
            client().post(format!("{}/send-message", process.url)).json(&input(text)).send()
        };
        let (short, long) =
            (send("count to 4").await.unwrap(), send("count to 1000").await.unwrap());
        process.signal(signal);
        let last = |body: String| events(&body).pop().unwrap();
        assert_eq!(last(short.text().await.unwrap())["outcome"]["type"], "success");
        let long = events(&long.text().await.unwrap());
        assert_eq!(long[long.len() - 2]["type"], "TEXT_MESSAGE_END");
        assert_eq!(long[long.len() - 1]["type"], "RUN_ERROR");
        assert_eq!(long[long.len() - 1]["code"], "server_shutdown");
        assert!(
            client().get(format!("{}/healthz", process.url)).send().await.is_err(),
            "still accepting"
        );
        assert_eq!(process.ended().0, Some(0));
    }
}

#[tokio::test]
async fn a_second_signal_ends_runs_at_once() {
    let process = Process::start(&[], &[("AGUI_SERVER__DRAIN_SECS", "600")]);
    let response = client()
        .post(format!("{}/send-message", process.url))
        .json(&input("count to 1000"))
        .send()
        .await
        .unwrap();
    process.signal("-TERM");
    eventually_async("the first signal stops new connections", async || {
        client().get(format!("{}/healthz", process.url)).send().await.is_err()
    })
    .await;
    process.signal("-TERM");
    let body = response.text().await.unwrap();
    assert_eq!(events(&body).pop().unwrap()["code"], "server_shutdown");
    assert_eq!(process.ended().0, Some(0));
}

#[tokio::test]
async fn streams_without_an_end_leave_half_of_the_connections() {
    let process = Process::start(&[], &[("AGUI_SERVER__MAX_CONNECTIONS", "8")]);
    let follow =
        async || client().get(format!("{}/threads/events", process.url)).send().await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(follow().await);
        assert_eq!(streams.last().unwrap().status(), 200);
    }
    assert_eq!(follow().await.status(), 503);
    let run = client()
        .post(format!("{}/send-message", process.url))
        .json(&input("Hello"))
        .send()
        .await
        .unwrap();
    assert_eq!(run.status(), 200);
}

#[tokio::test]
async fn log_lines_have_request_thread_and_run_but_no_secret() {
    let keys = "[{ name = \"web\", env = \"AGUI_KEY_WEB\" }]";
    let environment = [
        ("AGUI_LOG__FORMAT", "json"),
        ("AGUI_LOG__LEVEL", "debug"),
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", keys),
        ("AGUI_KEY_WEB", "s3cr3t-key"),
    ];
    let process = Process::start(&[], &environment);
    let mut input = input("Hello");
    input["threadId"] = "thread x\n\u{1b}[31m".into();
    input["runId"] = "x".repeat(1000).into();
    input["mood\n"] = true.into();
    for (camel_case, snake_case) in [("threadId", "thread_id"), ("runId", "run_id")] {
        input[snake_case] = input.as_object_mut().unwrap().remove(camel_case).unwrap();
    }
    let post = || {
        client()
            .post(format!("{}/send-message", process.url))
            .header("x-request-id", "req-7")
            .json(&input)
    };
    assert_eq!(
        post()
            .bearer_auth("s3cr3t-key")
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .matches("data: ")
            .count(),
        6
    );
    assert_eq!(post().bearer_auth("an0ther-s3cr3t").send().await.unwrap().status(), 401);
    process.signal("-TERM");
    let (_, log) = process.ended();
    assert!(!log.contains("s3cr3t") && !log.contains('\u{1b}'), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |message: &str| {
        lines
            .iter()
            .find(|line| line["message"] == message)
            .unwrap_or_else(|| panic!("{message}: {log}"))
    };
    let ended = line("run ended");
    assert_eq!((&ended["outcome"], &ended["events"]), (&"success".into(), &6.into()));
    let spans = ended["spans"].as_array().unwrap();
    assert_eq!(spans[0]["id"], "req-7");
    assert_eq!(spans[1]["thread"], r"thread\u{20}x\n\u{1b}[31m");
    assert_eq!(spans[1]["run"], "x".repeat(80));
    assert_eq!(spans[1]["principal"], "web");
    let dropped = line("ignored members of the input that AG-UI does not define");
    assert_eq!(dropped["dropped"], "1 member (\"mood\\n\")");
    assert_eq!(line("refused")["code"], "invalid_key");
    // Once for each request, whatever the number of members.
    let message = "the client names members in snake case; AG-UI's names are in camel case";
    assert_eq!(line(message)["members"], 2);
    assert_eq!(lines.iter().filter(|line| line["message"] == message).count(), 1, "{log}");
}

#[tokio::test]
async fn a_refused_preflight_is_logged_once_for_each_origin_with_what_a_program_is_told() {
    let process = Process::start(&[], &[]);
    let url = format!("{}/send-message", process.url);
    for origin in
        ["https://a.example", "https://a.example", "https://b.example", "http://localhost:3000"]
    {
        let preflight = client().request(reqwest::Method::OPTIONS, &url).header("origin", origin);
        preflight.header("access-control-request-method", "POST").send().await.unwrap();
    }
    process.signal("-TERM");
    let (_, log) = process.ended();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("refused a preflight")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    for (line, origin) in lines.iter().zip(["https://a.example", "https://b.example"]) {
        assert!(
            line.contains("INFO") && line.contains(origin) && line.contains("[cors] allow_origins"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn refused_requests_leave_no_line_at_the_level_info() {
    let process = Process::start(&[], &[]);
    for path in ["/unknown", "/threads?limit=0"] {
        let refused = client().get(format!("{}{path}", process.url)).send().await.unwrap();
        assert!(refused.status().is_client_error());
    }
    process.signal("-TERM");
    let (_, log) = process.ended();
    assert!(!log.contains("refused"), "{log}");
}

#[tokio::test]
async fn a_repeated_request_an_answer_and_tanstack_ai_cause_no_warning() {
    let process = Process::start(&[], &[]);
    let send = async |input: &Value| {
        let run = client()
            .post(format!("{}/send-message", process.url))
            .json(input)
            .send()
            .await
            .unwrap();
        events(&run.text().await.unwrap())
    };
    let mut asked = input("approve");
    asked["forwardedProps"] = json!({ "onDisconnect": "cancel" });
    asked["data"] = asked["forwardedProps"].clone();
    send(&asked).await;
    let asks = send(&asked).await;
    let interrupt = &asks.last().unwrap()["outcome"]["interrupts"][0]["id"];
    asked["resume"] = json!([{ "interruptId": interrupt, "status": "cancelled" }]);
    send(&asked).await;
    process.signal("-TERM");
    let (_, log) = process.ended();
    assert!(!log.contains("WARN"), "{log}");
}

#[tokio::test]
async fn feedback_is_logged_without_its_comment() {
    let process = Process::start(&[], &[("AGUI_LOG__LEVEL", "debug")]);
    let input = input("Hello");
    let run =
        client().post(format!("{}/send-message", process.url)).json(&input).send().await.unwrap();
    let events = events(&run.text().await.unwrap());
    let (thread, message) =
        (input["threadId"].as_str().unwrap(), events[1]["messageId"].as_str().unwrap());
    let url = format!("{}/threads/{thread}/messages/{message}/feedback", process.url);
    let feedback = json!({ "score": 1, "comment": "between us" });
    assert!(client().post(url).json(&feedback).send().await.unwrap().status().is_success());
    process.signal("-TERM");
    let (_, log) = process.ended();
    assert!(log.contains("feedback on a message") && !log.contains("between us"), "{log}");
}

#[tokio::test]
async fn log_lines_of_recovered_runs_quote_the_ids_of_the_client() {
    let data = tempfile::tempdir().unwrap();
    let environment = [("AGUI_SERVER__DATA_DIR", data.path().to_str().unwrap())];
    let process = Process::start(&[], &environment);
    let thread = "t\n2026-11-22 ERROR forged\u{1b}[31m";
    let mut input = input("count to 1000");
    (input["threadId"], input["runId"]) = (thread.into(), "r\u{1b}[2K\r\nINFO forged".into());
    let mut response =
        client().post(format!("{}/send-message", process.url)).json(&input).send().await.unwrap();
    response.chunk().await.unwrap();
    process.signal("-KILL");
    process.ended();

    let process = Process::start(&[], &environment);
    let id = percent_encoding::utf8_percent_encode(thread, percent_encoding::NON_ALPHANUMERIC);
    let url = format!("{}/threads/{id}", process.url);
    eventually_async("the run is closed", async || {
        let thread: Value = client().get(&url).send().await.unwrap().json().await.unwrap();
        thread["runs"][0]["status"] == "failed"
    })
    .await;
    process.signal("-TERM");
    let (_, log) = process.ended();
    let line =
        log.lines().find(|line| line.contains("closing a run whose server was lost")).unwrap();
    assert!(
        line.contains(r"t\n2026-11-22 ERROR forged\u{1b}[31m") && line.contains(r"INFO forged"),
        "{line}"
    );
    assert!(!log.contains(['\u{1b}', '\r']), "{log:?}");
    assert!(
        !log.lines()
            .any(|line| line.starts_with("2026-11-22 ERROR forged") || line.starts_with("INFO")),
        "{log}"
    );
}

#[test]
fn a_wrong_configuration_ends_the_server_with_the_place_of_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    let path = file.to_str().unwrap();
    let script = folder.path().join("s.toml");
    std::fs::write(folder.path().join("ec.pem"), crate::support::tokens::fixture("ec.pub"))
        .unwrap();
    for (config, scripted, expected) in [
        ("[server]\nlisen = 1", "", "my.toml:2:1: unknown key `lisen`; did you mean `listen`?"),
        (
            "[agents.a]\nkind = \"script\"\nscript = \"s.toml\"",
            "[[answer]]\nply = []",
            "s.toml:2:1: unknown key `ply`; did you mean `play`?",
        ),
        (
            "[agents.a]\nkind = \"script\"\nscript = \"no.toml\"",
            "",
            "my.toml:3:1: agents.a.script: ",
        ),
        (
            "[log]\nlevel = \"[loud\"",
            "",
            "my.toml:2:1: log.level: \"[loud\" is not a log level or filter",
        ),
        (
            "[auth]\nmode = \"api_key\"\napi_keys = [{ name = \"web\", env = \"AGUI_TEST_NO_SUCH_KEY\" }]",
            "",
            "my.toml:3:1: auth.api_keys: key \"web\": the environment variable AGUI_TEST_NO_SUCH_KEY is not set",
        ),
        (
            "[auth]\nmode = \"api_key\"\napi_keys = [{ name = \"ci\", sha256 = \"abc\" }]",
            "",
            "my.toml:3:1: auth.api_keys: key \"ci\": not a SHA-256: 64 hexadecimal digits are needed",
        ),
        (
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\naudience = []\nsecret_env = \"AGUI_TEST_NO_SUCH_KEY\"",
            "",
            "my.toml:5:1: auth.jwt.secret_env: the environment variable AGUI_TEST_NO_SUCH_KEY is not set",
        ),
        (
            // A variable that is set, with a short value.
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\naudience = []\nsecret_env = \"CARGO_PKG_NAME\"",
            "",
            "my.toml:5:1: auth.jwt.secret_env: the secret is too short: at least 32 bytes are needed",
        ),
        (
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\naudience = []\njwks_url = \"http://id.example.com/keys\"",
            "",
            "my.toml:5:1: auth.jwt.jwks_url: the URL must be https",
        ),
        (
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\naudience = []\npublic_key = \"secret\"",
            "",
            "my.toml:5:1: auth.jwt.public_key: not a public key in PEM",
        ),
        (
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\naudience = []\npublic_key_file = \"no.pem\"",
            "",
            "my.toml:5:1: auth.jwt.public_key_file: ",
        ),
        (
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\naudience = []\nalgorithms = [\"RS256\"]\npublic_key_file = \"ec.pem\"",
            "",
            "my.toml:5:1: auth.jwt.algorithms: the key is for \"ES256\", which is not among these",
        ),
    ] {
        std::fs::write(&file, config).unwrap();
        std::fs::write(&script, scripted).unwrap();
        for arguments in [&["--config", path][..], &["check", "--config", path]] {
            let (code, _, error) = command(arguments, &[]);
            assert_eq!(code, Some(2), "{config}");
            assert!(
                error.starts_with(&format!("agui-server: {}/{expected}", folder.path().display())),
                "{error}"
            );
        }
    }
}

#[test]
fn check_accepts_a_valid_configuration() {
    let (code, said, _) = command(&["check", "--config", "config/default.toml"], &[]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "the configuration is fine: agents demo, listening on 127.0.0.1:8080\n")
    );
    let (code, _, error) = command(&["--listen", "0.0.0.0:0"], &[]);
    assert_eq!(code, Some(2));
    assert!(error.contains("without authentication anybody there could use the server"), "{error}");
}

#[test]
fn check_takes_its_file_without_a_flag() {
    let (code, said, error) = command(&["check", "config/default.toml"], &[]);
    assert_eq!((code, said.contains("the configuration is fine")), (Some(0), true), "{error}");
    assert_eq!(command(&["check", "a.toml", "--config", "b.toml"], &[]).0, Some(2));
}

#[test]
fn a_key_in_place_of_a_variables_name_is_not_shown() {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let agent = "[agents.a]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"gpt-4o\"\n";
    let auth = "[auth]\nmode = \"api_key\"\n";
    for config in [
        format!("{agent}api_key_env = \"sk-proj-S3cr3tS3cr3tS3cr3t\""),
        format!("{agent}api_key_env = sk-proj-S3cr3tS3cr3tS3cr3t"),
        format!("{agent}api_key = \"sk-proj-S3cr3tS3cr3tS3cr3t\""),
        format!("{auth}api_keys = [{{ name = \"web\", env = \"sk-proj-S3cr3tS3cr3tS3cr3t\" }}]"),
        format!("{auth}[[auth.api_keys]]\nname = \"web\"\nkey = \"sk-proj-S3cr3tS3cr3tS3cr3t\""),
    ] {
        std::fs::write(file.path(), &config).unwrap();
        let (code, _, error) = command(&["check", file.path().to_str().unwrap()], &[]);
        assert_eq!(code, Some(2), "{config}");
        assert!(!error.contains("S3cr3t"), "{error}");
    }
}

#[test]
fn two_names_with_the_same_key_are_refused() {
    let keys = "[{ name = \"web\", env = \"KEY_A\" }, { name = \"ci\", env = \"KEY_B\" }]";
    let environment = [
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", keys),
        ("KEY_A", "same"),
        ("KEY_B", "same"),
    ];
    let (code, _, error) = command(&["check"], &environment);
    assert_eq!(code, Some(2));
    assert_eq!(
        error,
        "agui-server: AGUI_AUTH__API_KEYS: auth.api_keys: \"web\" and \"ci\" have the same key: give each name a key of its own\n"
    );
}

#[tokio::test]
async fn erase_deletes_all_threads_and_files_of_an_owner_and_what_they_said() {
    let data = tempfile::tempdir().unwrap();
    let keys = "[{ name = \"ada\", env = \"KEY_A\" }, { name = \"bob\", env = \"KEY_B\" }]";
    let environment = [
        ("AGUI_SERVER__DATA_DIR", data.path().to_str().unwrap()),
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", keys),
        ("KEY_A", "a"),
        ("KEY_B", "b"),
    ];
    let process = Process::start(&[], &environment);
    for (thread, key, said) in [
        ("t1", "a", "count to 2"),
        ("t2", "a", "adas-unique-words"),
        ("t3", "b", "bobs-unique-words"),
    ] {
        let mut input = input(said);
        input["threadId"] = thread.into();
        let run = client()
            .post(format!("{}/send-message", process.url))
            .bearer_auth(key)
            .json(&input)
            .send();
        run.await.unwrap().text().await.unwrap();
        let upload = client()
            .post(format!("{}/files", process.url))
            .bearer_auth(key)
            .body(format!("file: {said}"))
            .send();
        assert_eq!(upload.await.unwrap().status(), 201);
    }
    process.signal("-TERM");
    process.ended();
    let database = data.path().join("agui-server.sqlite");
    let store = SqliteStore::open(&database).await.unwrap();
    for owner in ["key:ada", "key:bob"] {
        let login =
            SealedValue::new("login:notes".to_owned(), format!("login of {owner}").into(), None);
        store.put_sealed(owner, &login, ExpectedValue::Absent).await.unwrap();
    }
    drop(store);
    let (code, said, error) = command(&["erase", "key:ada"], &environment);
    assert_eq!((code, said.as_str()), (Some(0), "erased 2 threads of key:ada\n"), "{error}");
    let files = std::fs::read_dir(data.path())
        .unwrap()
        .map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default());
    let bytes = files.collect::<Vec<_>>().concat();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(!has("adas-unique-words") && has("bobs-unique-words"));
    assert!(!has("login of key:ada") && has("login of key:bob"));
    let (code, _, error) = command(&["erase", "ada"], &environment);
    assert_eq!(code, Some(1));
    assert!(error.contains("write key:ada"), "{error}");
}

#[test]
fn check_warns_about_what_a_model_will_refuse() {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let agent = "kind = \"llm\"\nprovider = \"openai\"\napi_key_env = \"TEST_KEY\"";
    let config = format!(
        "default_agent = \"new\"\n[agents.old]\n{agent}\nmodel = \"gpt-5.5\"\napi = \"chat\"\n[agents.new]\n{agent}\nmodel = \"gpt-5.5\"\n"
    );
    std::fs::write(file.path(), config).unwrap();
    let (code, said, warned) =
        command(&["check", "--config", file.path().to_str().unwrap()], &[("TEST_KEY", "k")]);
    assert_eq!(code, Some(0), "{warned}");
    assert!(said.starts_with("the configuration is fine: agents old, new"), "{said}");
    let expected = "agui-server: warning: agents.old: `api`: gpt-5.5 refuses tools with chat completions unless \
                    reasoning_effort is \"none\"; requests with tools are sent with \"none\": set api = \"responses\" \
                    for others\n";
    assert_eq!(warned, expected, "the agent without `api` gets the Responses API");
}

#[test]
fn an_address_in_use_is_named_in_the_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, error) = command(&["--listen", &address], &[]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains(&format!("cannot listen on {address}: Address already in use")),
        "{error}"
    );
}

#[test]
fn the_health_command_reports_by_its_exit_code() {
    let process = Process::start(&[], &[]);
    let address = process.url.strip_prefix("http://").unwrap();
    assert_eq!(command(&["health", "--listen", address], &[]).0, Some(0));
    let unused =
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_eq!(command(&["health", "--listen", &unused], &[]).0, Some(1));
}

#[tokio::test]
async fn check_names_a_damaged_row_and_erase_deletes_its_thread() {
    use agui_server::store::SqliteStore;
    use agui_store::contract::steps::{ended_run, run, user};

    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("agui-server.sqlite");
    let environment = [("AGUI_SERVER__DATA_DIR", data.path().to_str().unwrap())];
    let store: std::sync::Arc<dyn agui_server::store::Store> =
        std::sync::Arc::new(SqliteStore::open(&path).await.unwrap());
    ended_run(&store, run("t", "r").with([user("hi")])).await;
    let thread = ended_run(&store, run("u", "r").with([user("hi")])).await.thread;
    store.check().await.unwrap();
    drop(store);
    let check = || command(&["check", "--store"], &environment);
    let (code, said, error) = check();
    assert!(code == Some(0) && said.contains("is fine\n"), "{said}{error}");
    let damage = "UPDATE agui_threads SET id = x'ff', metadata = '{' WHERE id = 'u'";
    rusqlite::Connection::open(&path).unwrap().execute(damage, []).unwrap();
    let (code, said, error) = check();
    assert_eq!(code, Some(1), "{said}{error}");
    assert!(
        said.contains(&format!("agui_threads: number {thread}")) && said.contains("metadata: "),
        "{said}"
    );
    assert!(said.contains("erase --thread NUMBER"), "{said}");
    let (code, said, error) = command(&["erase", "--thread", &thread.to_string()], &environment);
    assert_eq!((code, said), (Some(0), format!("erased thread {thread}\n")), "{error}");
    assert_eq!(check().0, Some(0));
    let (code, said, _) = command(&["erase", "none"], &environment);
    assert_eq!((code, said.as_str()), (Some(0), "erased 1 threads of none\n"));
}
