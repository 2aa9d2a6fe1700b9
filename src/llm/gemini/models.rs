//! The forms of request that Gemini models take, by their names.
//!
//! A name without a version, such as `gemini-flash-latest`, is taken for the newest model. Other names (`gemma-…`) get
//! nothing that only Gemini models have.

/// The name that marks artefacts and files of the provider.
pub(super) const PROVIDER: &str = "gemini";

/// A model's family, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelFamily {
    name: String,
    /// The version of a Gemini model, such as (2, 5).
    version: Option<(u32, u32)>,
}

/// The way in which a model's thinking is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingControl {
    /// The model does not think.
    Missing,
    /// A number of tokens.
    Budget { least: u32, most: u32, can_be_off: bool },
    /// One of these levels, the lowest first. Some models hardly think unless a level is set.
    Level { levels: &'static [&'static str], by_default: bool },
}

const NEWEST: (u32, u32) = (u32::MAX, 0);
const ALL_LEVELS: &[&str] = &["MINIMAL", "LOW", "MEDIUM", "HIGH"];

impl ModelFamily {
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let version = name.strip_prefix("gemini-").map(|rest| version(rest).unwrap_or(NEWEST));
        Self { name, version }
    }

    /// The tables of <https://ai.google.dev/gemini-api/docs/thinking>, and for the models from 3.5 on
    /// <https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/thinking>.
    pub(super) fn thinking(&self) -> ThinkingControl {
        let is_lite = self.name.contains("flash-lite");
        let level = |levels, by_default| ThinkingControl::Level { levels, by_default };
        match self.version {
            None => ThinkingControl::Missing,
            Some(version) if version < (2, 5) => ThinkingControl::Missing,
            Some((2, _)) if is_lite => ThinkingControl::Budget { least: 512, most: 24_576, can_be_off: true },
            Some((2, _)) if self.name.contains("pro") => {
                ThinkingControl::Budget { least: 128, most: 32_768, can_be_off: false }
            }
            Some((2, _)) => ThinkingControl::Budget { least: 1, most: 24_576, can_be_off: true },
            Some((3, _)) if is_lite => level(ALL_LEVELS, false),
            Some((3, 0)) if self.name.contains("pro") => level(&["LOW", "HIGH"], true),
            Some((3, minor)) if minor <= 6 && self.name.contains("flash") => level(ALL_LEVELS, true),
            Some(_) => level(&["LOW", "MEDIUM", "HIGH"], true),
        }
    }

    /// The API answers "Penalty is not enabled for this model" to others, unless the penalty is 0:
    /// <https://github.com/google-gemini/cookbook/issues/1290>.
    pub(super) fn takes_penalties(&self) -> bool {
        self.is_before((2, 5))
    }

    /// Later models ignore `temperature`, `topP` and `topK`: <https://ai.google.dev/gemini-api/docs/latest-model>.
    pub(super) fn takes_sampling(&self) -> bool {
        self.is_before(if self.name.contains("flash-lite") { (3, 5) } else { (3, 6) })
    }

    /// <https://ai.google.dev/gemini-api/docs/file-input-methods>
    pub(super) fn takes_files_by_url(&self) -> bool {
        self.is_from((2, 5))
    }

    /// Others answer "Multimodal function responses are not supported for this model":
    /// <https://ai.google.dev/gemini-api/docs/function-calling#multimodal>.
    pub(super) fn takes_media_in_results(&self) -> bool {
        self.is_from((3, 0))
    }

    /// Others answer "Function calling with a response mime type: 'application/json' is unsupported":
    /// <https://ai.google.dev/gemini-api/docs/structured-output>.
    pub(super) fn takes_schema_with_tools(&self) -> bool {
        self.is_from((3, 0))
    }

    /// <https://ai.google.dev/gemini-api/docs/thought-signatures>
    pub(super) fn requires_signatures(&self) -> bool {
        self.is_from((3, 0))
    }

    fn is_before(&self, version: (u32, u32)) -> bool {
        self.version.is_none_or(|of_model| of_model < version)
    }

    fn is_from(&self, version: (u32, u32)) -> bool {
        self.version.is_some_and(|of_model| of_model >= version)
    }
}

/// `None` if the text does not begin with a number.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = number(text)?;
    let minor = rest.strip_prefix('.').and_then(number).map_or(0, |(minor, _)| minor);
    Some((major, minor))
}

/// Returns the number at the beginning of a text, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_version() {
        for (name, version) in [
            ("gemini-2.5-pro", Some((2, 5))),
            ("models/gemini-2.0-flash-001", Some((2, 0))),
            ("gemini-3-pro-preview", Some((3, 0))),
            ("publishers/google/models/Gemini-3.8-flash", Some((3, 8))),
            ("gemini-4-argon", Some((4, 0))),
            ("gemini-flash-latest", Some(NEWEST)),
            ("gemma-4-31b-it", None),
            ("", None),
        ] {
            assert_eq!(ModelFamily::of(name).version, version, "{name}");
        }
    }

    #[test]
    fn thinking_is_a_budget_or_a_level() {
        let thinking = |name: &str| ModelFamily::of(name).thinking();
        let levels = |name: &str| match thinking(name) {
            ThinkingControl::Level { levels, by_default } => (levels.len(), levels[0], by_default),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(thinking("gemini-2.0-flash"), ThinkingControl::Missing);
        assert_eq!(thinking("gemma-3-27b-it"), ThinkingControl::Missing);
        assert!(matches!(thinking("gemini-2.5-pro"), ThinkingControl::Budget { least: 128, can_be_off: false, .. }));
        assert!(matches!(thinking("gemini-2.5-flash"), ThinkingControl::Budget { can_be_off: true, .. }));
        assert!(matches!(thinking("gemini-2.5-flash-lite"), ThinkingControl::Budget { least: 512, .. }));
        assert_eq!(levels("gemini-3-pro-preview"), (2, "LOW", true));
        assert_eq!(levels("gemini-3-flash-preview"), (4, "MINIMAL", true));
        assert_eq!(levels("gemini-3.1-pro-preview"), (3, "LOW", true));
        assert_eq!(levels("gemini-3.1-flash-lite"), (4, "MINIMAL", false));
        assert_eq!(levels("gemini-3.8-flash"), (3, "LOW", true));
        assert_eq!(levels("gemini-4-argon"), (3, "LOW", true));
        assert_eq!(levels("gemini-pro-latest"), (3, "LOW", true));
    }
}
