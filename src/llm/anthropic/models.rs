//! The forms of request that Anthropic's models take, by their names.
//!
//! The rules come from these pages below <https://platform.claude.com/docs/en>:
//!
//! - `build-with-claude/thinking-troubleshooting`: the types of `thinking` that a model takes
//! - `build-with-claude/effort`: the values of `output_config.effort`
//! - `build-with-claude/extended-thinking`: budgets, and sampling with thinking
//! - `build-with-claude/structured-outputs`, `build-with-claude/mid-conversation-system-messages`
//! - `build-with-claude/preserved-thinking`: thinking blocks that are bound to what was sent before them
//! - `models/overview`: the largest outputs
//! - `models/opus-5-5/whats-new-opus-5-5`, `models/sonnet-5-5/whats-new-sonnet-5-5`,
//!   `models/haiku-5-5/whats-new-haiku-5-5`, `models/fable-5-2/whats-new-fable-5-2`
//!
//! A version that is newer than these pages gets the rules of the newest one of its family.

/// The name that marks artefacts and files of the provider.
pub(super) const PROVIDER: &str = "anthropic";

/// The rules for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClaudeRules {
    pub(super) thinking: ThinkingTypes,
    /// `true` if the model thinks when a request does not mention thinking.
    pub(super) thinks_by_default: bool,
    pub(super) off: ThinkingOff,
    /// The values of `output_config.effort`; empty if the model has no effort.
    pub(super) efforts: &'static [&'static str],
    /// The largest `max_tokens`.
    pub(super) max_output: u32,
    pub(super) sampling: Sampling,
    /// `true` if `tool_choice` may be `any` or `tool`.
    pub(super) forced_tools: bool,
    /// `true` if the model has strict tools and `output_config.format`.
    pub(super) structured: bool,
    /// `true` if `messages` may contain the role `system`.
    pub(super) system_messages: bool,
    /// `true` if a thinking block is only valid behind the same system prompt, tools and messages.
    pub(super) binds_thinking: bool,
}

/// The types of `thinking` with which a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingTypes {
    /// The model cannot think.
    None,
    /// `enabled`, with a budget.
    Budget,
    /// `enabled` and `adaptive`.
    Both,
    Adaptive,
}

/// The way in which thinking is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingOff {
    /// `thinking` is left out.
    LeftOut,
    Disabled,
    /// `disabled`, with an effort of at most `high`.
    DisabledUpToHigh,
    /// `between_tools`, with an effort of at most `high`.
    BetweenToolsUpToHigh,
    /// The model always thinks.
    Never,
}

/// The sampling parameters that a model takes without thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    All,
    /// `temperature` and `top_p` exclude each other.
    OneOfTwo,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Opus,
    Sonnet,
    Haiku,
    Fable,
    Mythos,
}

type ClaudeVersion = (u8, u8);

impl ClaudeRules {
    /// Returns `None` if the name is not one of Anthropic's: another server's model may take less.
    pub(super) fn of(model: &str) -> Option<Self> {
        if model.contains("claude-mythos-preview") {
            let rules = Self::of_version(Family::Mythos, (5, 0));
            return Some(Self {
                thinking: ThinkingTypes::Both,
                efforts: &["low", "medium", "high", "max"],
                forced_tools: false,
                system_messages: false,
                ..rules
            });
        }
        parse(model).map(|(family, version)| Self::of_version(family, version))
    }

    fn of_version(family: Family, version: ClaudeVersion) -> Self {
        use Family::{Fable, Haiku, Mythos, Opus, Sonnet};
        let always_thinks = matches!(family, Fable | Mythos) || family == Opus && version >= (5, 5);
        Self {
            thinking: match version {
                _ if version < (3, 7) => ThinkingTypes::None,
                _ if version < (4, 6) => ThinkingTypes::Budget,
                _ if version < (4, 7) => ThinkingTypes::Both,
                _ => ThinkingTypes::Adaptive,
            },
            thinks_by_default: version >= (5, 0),
            off: match family {
                _ if version < (5, 0) => ThinkingOff::LeftOut,
                _ if always_thinks => ThinkingOff::Never,
                Sonnet if version >= (5, 5) => ThinkingOff::BetweenToolsUpToHigh,
                Sonnet => ThinkingOff::Disabled,
                _ => ThinkingOff::DisabledUpToHigh,
            },
            efforts: match version {
                (4, 5) if family == Opus => &["low", "medium", "high"],
                _ if version < (4, 6) => &[],
                (4, 6) => &["low", "medium", "high", "max"],
                _ => &["low", "medium", "high", "xhigh", "max"],
            },
            max_output: match version {
                _ if version < (3, 5) => 4096,
                _ if version < (3, 7) => 8192,
                _ if family == Opus && version < (4, 5) => 32_000,
                _ if version < (4, 6) => 64_000,
                _ => 128_000,
            },
            sampling: match version {
                _ if version < (4, 1) => Sampling::All,
                _ if version < (4, 7) => Sampling::OneOfTwo,
                _ => Sampling::None,
            },
            forced_tools: version < (5, 1) || family == Haiku,
            structured: version >= (4, 5),
            system_messages: match family {
                Opus => version >= (4, 8),
                Sonnet => version >= (5, 5),
                Haiku => false,
                Fable | Mythos => true,
            },
            binds_thinking: version >= (5, 1),
        }
    }
}

/// Reads names such as `claude-opus-4-7`, `claude-3-7-sonnet-20250219` and `anthropic/claude-sonnet-4.5`.
fn parse(model: &str) -> Option<(Family, ClaudeVersion)> {
    let name = model.to_ascii_lowercase();
    let (_, name) = name.split_once("claude-")?;
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    // A longer number is a date.
    let number = |at: usize| words.get(at).filter(|word| word.len() <= 2)?.parse::<u8>().ok();
    let (at, family) = words.iter().enumerate().find_map(|(at, word)| Some((at, family(word)?)))?;
    let first = if number(at + 1).is_some() { at + 1 } else { 0 };
    let minor = if first == 0 && at == 1 { None } else { number(first + 1) };
    Some((family, (number(first)?, minor.unwrap_or(0))))
}

fn family(word: &str) -> Option<Family> {
    Some(match word {
        "opus" => Family::Opus,
        "sonnet" => Family::Sonnet,
        "haiku" => Family::Haiku,
        "fable" => Family::Fable,
        "mythos" => Family::Mythos,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_platforms_are_read() {
        for (name, expected) in [
            ("claude-opus-4-7", Some((Family::Opus, (4, 7)))),
            ("claude-opus-4-5-20251101", Some((Family::Opus, (4, 5)))),
            ("claude-sonnet-4-20250514", Some((Family::Sonnet, (4, 0)))),
            ("claude-3-7-sonnet-20250219", Some((Family::Sonnet, (3, 7)))),
            ("claude-3-opus-20240229", Some((Family::Opus, (3, 0)))),
            ("claude-3-5-haiku-latest", Some((Family::Haiku, (3, 5)))),
            ("claude-opus-5", Some((Family::Opus, (5, 0)))),
            ("us.anthropic.claude-opus-4-6-v1", Some((Family::Opus, (4, 6)))),
            ("anthropic.claude-haiku-4-5-20251001-v1:0", Some((Family::Haiku, (4, 5)))),
            ("claude-haiku-4-5@20251001", Some((Family::Haiku, (4, 5)))),
            ("anthropic/Claude-Sonnet-4.5", Some((Family::Sonnet, (4, 5)))),
            ("claude-fable-5-2", Some((Family::Fable, (5, 2)))),
            ("claude-2.1", None),
            ("claude-opus", None),
            ("claude-opus-latest", None),
            ("kimi-k2", None),
            ("m", None),
            ("", None),
        ] {
            assert_eq!(parse(name), expected, "{name}");
        }
    }

    #[test]
    fn the_rules_are_those_of_the_published_tables() {
        use ThinkingOff::{BetweenToolsUpToHigh, Disabled, DisabledUpToHigh, LeftOut, Never};
        use ThinkingTypes::{Adaptive, Both, Budget};
        for (name, thinking, off, efforts, max_output) in [
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
            let rules = ClaudeRules::of(name).unwrap();
            assert_eq!((rules.thinking, rules.off, rules.efforts.len()), (thinking, off, efforts), "{name}");
            assert_eq!(rules.max_output, max_output, "{name}");
        }
        let forced = |name| ClaudeRules::of(name).unwrap().forced_tools;
        assert!(forced("claude-opus-5") && forced("claude-haiku-5-5") && forced("claude-sonnet-4-5"));
        assert!(!forced("claude-opus-5-5") && !forced("claude-sonnet-5-5") && !forced("claude-fable-5-1"));
        assert!(!forced("claude-mythos-preview"));
        let binds = |name| ClaudeRules::of(name).unwrap().binds_thinking;
        assert!(!binds("claude-fable-5") && !binds("claude-opus-5") && binds("claude-haiku-5-5"));
        assert!(binds("claude-fable-5-1") && binds("claude-opus-5-5") && binds("claude-opus-6"));
    }
}
