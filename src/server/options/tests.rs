mod environment_tests;
mod mistakes_tests;
mod wrong_file_tests;

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
