//! The context windows of models whose providers publish them, by the model's name.

/// The tokens that a model can read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownWindow {
    /// Input and output together.
    pub(super) total: u64,
    /// The input alone.
    pub(super) input: u64,
}

impl KnownWindow {
    const fn new(total: u64, input: u64) -> Self {
        Self { total, input }
    }
}

const LARGE: KnownWindow = KnownWindow::new(1_000_000, 1_000_000);
const CLAUDE: KnownWindow = KnownWindow::new(200_000, 200_000);
const GPT_5: KnownWindow = KnownWindow::new(400_000, 272_000);
const GPT_5_LARGE: KnownWindow = KnownWindow::new(1_050_000, 922_000);
const O_SERIES: KnownWindow = KnownWindow::new(200_000, 200_000);
const CHAT: KnownWindow = KnownWindow::new(128_000, 128_000);
const GEMINI: KnownWindow = KnownWindow::new(1_048_576 + 65_536, 1_048_576);

/// The first entry counts that is the model's name or its beginning up to a `-`; an entry that ends with `-` is a
/// beginning. Other names have no known window, because a wrong one would cut conversations that fit.
const WINDOWS: &[(&str, KnownWindow)] = &[
    // https://platform.claude.com/docs/en/build-with-claude/context-windows: 1 M tokens from Opus 4.6 and Sonnet 4.6 on;
    // 200,000 before and with Haiku 4.5. The input and the answer share the window.
    ("claude-opus-4-20250514", CLAUDE),
    ("claude-opus-4-0", CLAUDE),
    ("claude-opus-4-1", CLAUDE),
    ("claude-opus-4-5", CLAUDE),
    ("claude-opus-", LARGE),
    ("claude-sonnet-4-20250514", CLAUDE),
    ("claude-sonnet-4-0", CLAUDE),
    ("claude-sonnet-4-5", CLAUDE),
    ("claude-sonnet-", LARGE),
    ("claude-haiku-4-5", CLAUDE),
    ("claude-3-", CLAUDE),
    // https://developers.openai.com/api/docs/models: the page of each model has its window and its largest output. The
    // models of ChatGPT have a smaller one.
    ("gpt-5-chat", CHAT),
    ("gpt-5.1-chat", CHAT),
    ("gpt-5.2-chat", CHAT),
    ("gpt-5.3-chat", CHAT),
    ("gpt-5.4-mini", GPT_5),
    ("gpt-5.4-nano", GPT_5),
    ("gpt-5.4", GPT_5_LARGE),
    ("gpt-5.5", GPT_5_LARGE),
    ("gpt-5", GPT_5),
    ("gpt-5.1", GPT_5),
    ("gpt-5.2", GPT_5),
    ("gpt-5.3", GPT_5),
    ("gpt-4.1", KnownWindow::new(1_047_576, 1_047_576)),
    ("gpt-4o", CHAT),
    ("gpt-4-turbo", CHAT),
    ("o1", O_SERIES),
    ("o3", O_SERIES),
    ("o4-mini", O_SERIES),
    // https://ai.google.dev/gemini-api/docs/models: a limit of the input, beside which the output has its own.
    ("gemini-2.0-flash", KnownWindow::new(1_048_576 + 8_192, 1_048_576)),
    ("gemini-2.5-flash-image", KnownWindow::new(65_536 + 32_768, 65_536)),
    ("gemini-2.5-flash", GEMINI),
    ("gemini-2.5-pro", GEMINI),
    ("gemini-3-pro-preview", GEMINI),
    ("gemini-3-flash-preview", GEMINI),
    ("gemini-3.8-flash", GEMINI),
];

pub(super) fn known_window(model: &str) -> Option<KnownWindow> {
    let fits = |name: &str| {
        let rest = model.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || name.ends_with('-'))
    };
    WINDOWS.iter().find(|(name, _)| fits(name)).map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dates_and_variants_are_known_and_other_models_have_no_window() {
        let total = |model| known_window(model).map(|window| window.total);
        for (model, tokens) in [
            ("claude-sonnet-4-20250514", 200_000),
            ("claude-sonnet-4-5-20250929", 200_000),
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
        for model in ["m", "llama3.1:8b", "gpt-6", "gpt-5.9", "gpt-4", "gpt-4o1", "o35", "claude", "gemini-9"] {
            assert_eq!(total(model), None, "{model}");
        }
    }
}
