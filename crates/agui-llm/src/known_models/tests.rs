use super::*;

fn problem(text: &str) -> String {
    KnownModels::with(text).unwrap_err().to_string()
}

#[test]
fn the_embedded_file_is_valid_and_unknown_members_are_refused() {
    let known =
        KnownTables::read(EMBEDDED).and_then(Known::new).map_err(|problem| panic!("{problem}"));
    assert!(known.is_ok_and(|known| known.profiles.len() == 17));
    for (text, expected) in [
        ("[[openai]]\nname = [\"a\"]", "unknown field `name`"),
        ("[[openai]]\nset = { reason = true }", "[[openai]] number 1: unknown field `reason`"),
        ("[[anthropic]]\nset = { thinking = \"much\" }", "unknown variant `much`"),
        ("[[gemini]]\nset = { thinking = { budget = { least = 1 } } }", "missing field `most`"),
        ("[[gemini]]\nfrom = \"3\"", "invalid version \"3\""),
        ("[windows]\na = \"1\"", "expected a number of tokens"),
        ("[servers.a]\nbase = \"b\"", "[servers.a]: there is no server \"b\""),
        ("[servers.a]\nbase = \"a\"", "is its own `base`"),
        ("[servers.a]\nimage = true", "[servers.a]: unknown field `image`"),
        ("[tools.openai]\nnames = 3", "[tools.openai]: unknown field `names`"),
        ("[tools.gemini]\nname_chars = 8", "[tools.gemini]: `name_chars` has to be at least 32"),
        (
            "[tools.mistral]\nname_chars = 64",
            "[tools.mistral]: unknown provider, expected [\"openai\", \"anthropic\", \"gemini\"]",
        ),
        ("[mistral]", "unknown field `mistral`"),
    ] {
        assert!(problem(text).contains(expected), "{text}: {}", problem(text));
    }
}

#[test]
fn a_users_entry_for_a_new_model_takes_effect() {
    let known = KnownModels::with(
        r#"
        [windows]
        "gpt-9" = 9_000_000
        "claude-opus-5" = { total = 7, input = 5 }

        [[openai]]
        families = ["gpt"]
        from = "9.0"
        set = { efforts = ["low", "huge"], default_effort = "huge", warning = "is retired" }

        [[anthropic]]
        names = ["our-deployment"]
        like = "claude-opus-5"
        set = { max_output = 7 }

        [[anthropic]]
        families = ["saga"]
        set = { thinking = "budget" }

        [[gemini]]
        from = "9.0"
        set = { thinking = { level = { levels = ["HUGE"], by_default = true } } }

        [servers.vllm]
        images = false

        [servers.house]
        base = "vllm"
        domains = ["llm.example.org"]
        call_id_length = 9
        "#,
    )
    .unwrap();
    assert_eq!(
        known.window("gpt-9-mini").unwrap(),
        KnownWindow { total: 9_000_000, input: 9_000_000 }
    );
    assert_eq!(known.window("claude-opus-5").unwrap(), KnownWindow { total: 7, input: 5 });
    assert_eq!(known.window("claude-opus-4-7").unwrap().total, 1_000_000);
    let rules = known.openai("gpt-9").unwrap();
    assert_eq!(
        (rules.efforts.join(" "), rules.default_effort.as_str()),
        ("low huge".to_owned(), "huge")
    );
    assert!(
        rules.has_verbosity
            && rules.warning.is_some()
            && known.openai("gpt-7").unwrap().warning.is_none()
    );
    let like = known.anthropic("our-deployment").unwrap();
    assert_eq!(like, ClaudeRules { max_output: 7, ..known.anthropic("claude-opus-5").unwrap() });
    assert_eq!(known.anthropic("claude-saga-3").unwrap().thinking, ThinkingTypes::Budget);
    let levels = ThinkingControl::Level { levels: vec!["HUGE".to_owned()], by_default: true };
    assert_eq!(known.gemini("gemini-9-pro").thinking, levels);
    let at = |url: &str| known.profile(None, &Url::parse(url).unwrap()).unwrap();
    let house = at("https://eu.llm.example.org/v1");
    assert_eq!((house.name.as_str(), house.call_id_length, house.images), ("house", 9, false));
    assert_eq!(house.thinking_member, ThinkingMember::ChatTemplateKwargs);
    assert!(!at("http://localhost:8000").images, "a member of a known server is replaced");
    let mut options = crate::ModelOptions::new("gpt-9", crate::ProviderClient::default());
    options.known_models = known;
    options.reasoning_effort = Some("max".to_owned());
    let warnings = crate::Model::warnings(&crate::OpenAi::responses(options).unwrap());
    assert_eq!(warnings[0], "`model`: gpt-9 is retired");
    assert!(warnings[1].contains("it takes low, huge"), "{warnings:?}");
}

#[test]
fn names_of_claude_are_read_on_all_platforms() {
    let known = KnownModels::default();
    let parse = |name: &str| {
        let name = vendor_rules::parse_claude(name, &known.0.tables.anthropic)?;
        Some((name.family, name.version.unwrap()))
    };
    for (name, expected) in [
        ("claude-opus-4-7", Some(("opus", (4, 7)))),
        ("claude-opus-4-5-20251101", Some(("opus", (4, 5)))),
        ("claude-sonnet-4-20250514", Some(("sonnet", (4, 0)))),
        ("claude-3-7-sonnet-20250219", Some(("sonnet", (3, 7)))),
        ("claude-3-opus-20240229", Some(("opus", (3, 0)))),
        ("claude-3-5-haiku-latest", Some(("haiku", (3, 5)))),
        ("claude-opus-5", Some(("opus", (5, 0)))),
        ("us.anthropic.claude-opus-4-6-v1", Some(("opus", (4, 6)))),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", Some(("haiku", (4, 5)))),
        ("claude-haiku-4-5@20251001", Some(("haiku", (4, 5)))),
        ("anthropic/Claude-Sonnet-4.5", Some(("sonnet", (4, 5)))),
        ("claude-fable-5-2", Some(("fable", (5, 2)))),
        ("claude-2.1", None),
        ("claude-opus", None),
        ("claude-opus-latest", None),
        ("kimi-k2", None),
        ("m", None),
        ("", None),
    ] {
        assert_eq!(
            parse(name),
            expected.map(|(family, version)| (family.to_owned(), version)),
            "{name}"
        );
    }
    assert_eq!(known.anthropic("claude-opus-latest"), None);
    assert_eq!(
        known.anthropic("us.anthropic.claude-mythos-preview-v1:0"),
        known.anthropic("claude-mythos-preview")
    );
}

#[test]
fn the_rules_of_claude_are_those_of_the_published_tables() {
    use ThinkingOff::{BetweenToolsUpToHigh, Disabled, DisabledUpToHigh, LeftOut, Never};
    use ThinkingTypes::{Adaptive, Both, Budget, None};
    let rules = |name: &str| KnownModels::default().anthropic(name).unwrap();
    for (name, thinking, off, efforts, max_output) in [
        ("claude-3-opus-20240229", None, LeftOut, 0, 4096),
        ("claude-3-5-haiku-latest", None, LeftOut, 0, 8192),
        ("claude-3-7-sonnet-20250219", Budget, LeftOut, 0, 64_000),
        ("claude-opus-4-1-20250805", Budget, LeftOut, 0, 32_000),
        ("claude-sonnet-4-5", Budget, LeftOut, 0, 64_000),
        ("claude-haiku-4-5", Budget, LeftOut, 0, 64_000),
        ("claude-opus-4-5", Budget, LeftOut, 3, 64_000),
        ("claude-sonnet-4-6", Both, LeftOut, 4, 128_000),
        ("claude-opus-4-6", Both, LeftOut, 4, 128_000),
        ("claude-opus-4-7", Adaptive, LeftOut, 5, 128_000),
        ("claude-opus-4-8", Adaptive, LeftOut, 5, 128_000),
        ("claude-sonnet-5", Adaptive, Disabled, 5, 128_000),
        ("claude-opus-5", Adaptive, DisabledUpToHigh, 5, 128_000),
        ("claude-fable-5", Adaptive, Never, 5, 128_000),
        ("claude-mythos-preview", Both, Never, 4, 128_000),
        ("claude-opus-5-5", Adaptive, Never, 5, 128_000),
        ("claude-sonnet-5-5", Adaptive, BetweenToolsUpToHigh, 5, 128_000),
        ("claude-haiku-5-5", Adaptive, DisabledUpToHigh, 5, 128_000),
    ] {
        let rules = rules(name);
        assert_eq!(
            (rules.thinking, rules.off, rules.efforts.len()),
            (thinking, off, efforts),
            "{name}"
        );
        assert_eq!(rules.max_output, max_output, "{name}");
    }
    let forced = |name| rules(name).forced_tools;
    assert!(forced("claude-opus-5") && forced("claude-haiku-5-5") && forced("claude-sonnet-4-5"));
    assert!(
        !forced("claude-opus-5-5") && !forced("claude-sonnet-5-5") && !forced("claude-fable-5-1")
    );
    assert!(!forced("claude-mythos-preview"));
    let binds = |name| rules(name).binds_thinking;
    assert!(!binds("claude-fable-5") && !binds("claude-opus-5") && binds("claude-haiku-5-5"));
    assert!(binds("claude-fable-5-1") && binds("claude-opus-5-5") && binds("claude-opus-6"));
    let system = |name| rules(name).system_messages;
    assert!(system("claude-opus-4-8") && system("claude-sonnet-5-5") && system("claude-fable-5"));
    assert!(
        !system("claude-opus-4-7") && !system("claude-sonnet-5") && !system("claude-haiku-5-5")
    );
}

#[test]
fn names_of_gemini_have_a_version() {
    let known = KnownModels::default();
    for (name, version) in [
        ("gemini-2.5-pro", Some((2, 5))),
        ("models/gemini-2.0-flash-001", Some((2, 0))),
        ("gemini-3-pro-preview", Some((3, 0))),
        ("publishers/google/models/Gemini-3.8-flash", Some((3, 8))),
        ("gemini-4-argon", Some((4, 0))),
        ("gemini-flash-latest", Some((u32::MAX, 0))),
        ("gemma-4-31b-it", None),
        ("", None),
    ] {
        let parsed =
            vendor_rules::parse_gemini(name, &known.0.tables.gemini).and_then(|name| name.version);
        assert_eq!(parsed, version, "{name}");
        let rules = known.gemini(name);
        assert!(
            version.is_some() || rules.sampling && rules.penalties,
            "{name} takes what all models take"
        );
    }
}

#[test]
fn geminis_thinking_is_a_budget_or_a_level() {
    let thinking = |name: &str| KnownModels::default().gemini(name).thinking;
    let levels = |name: &str| match thinking(name) {
        ThinkingControl::Level { levels, by_default } => {
            (levels.len(), levels[0].clone(), by_default)
        }
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(thinking("gemini-2.0-flash"), ThinkingControl::Missing);
    assert_eq!(thinking("gemma-3-27b-it"), ThinkingControl::Missing);
    assert!(matches!(
        thinking("gemini-2.5-pro"),
        ThinkingControl::Budget { least: 128, can_be_off: false, .. }
    ));
    assert!(matches!(
        thinking("gemini-2.5-flash"),
        ThinkingControl::Budget { can_be_off: true, .. }
    ));
    assert!(matches!(
        thinking("gemini-2.5-flash-lite"),
        ThinkingControl::Budget { least: 512, .. }
    ));
    for (name, expected) in [
        ("gemini-3-pro-preview", (2, "LOW", true)),
        ("gemini-3-flash-preview", (4, "MINIMAL", true)),
        ("gemini-3.1-pro-preview", (3, "LOW", true)),
        ("gemini-3.1-flash-lite", (4, "MINIMAL", false)),
        ("gemini-3.8-flash", (3, "LOW", true)),
        ("gemini-4-argon", (3, "LOW", true)),
        ("gemini-pro-latest", (3, "LOW", true)),
    ] {
        assert_eq!(levels(name), (expected.0, expected.1.to_owned(), expected.2), "{name}");
    }
}

#[test]
fn windows_are_known_by_names_with_dates_and_variants_and_other_models_have_none() {
    let total = |model: &str| KnownModels::default().window(model).map(|window| window.total);
    for (model, tokens) in [
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-sonnet-4-5@20250929", 200_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("claude-opus-4-20250514", 200_000),
        ("claude-opus-4-7", 1_000_000),
        ("claude-sonnet-5", 1_000_000),
        ("claude-3-5-haiku-latest", 200_000),
        ("gpt-5-mini", 400_000),
        ("gpt-5.4-2026-03-05", 1_050_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-5.1-chat-latest", 128_000),
        ("gpt-4o-mini", 128_000),
        ("o3-mini", 200_000),
    ] {
        assert_eq!(total(model), Some(tokens), "{model}");
    }
    for model in
        ["m", "llama3.1:8b", "gpt-6", "gpt-5.9", "gpt-4", "gpt-4o1", "o35", "claude", "gemini-9"]
    {
        assert_eq!(total(model), None, "{model}");
    }
}
