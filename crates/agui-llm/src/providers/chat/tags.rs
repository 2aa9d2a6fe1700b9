//! Reasoning between tags, such as `<think>`, at the beginning of a text. Tags may be split between pieces.

use std::sync::Arc;

use crate::known_models::{ThinkTags, ThoughtBrackets};

/// The longest white space before a tag. A longer one is text.
const MAX_WHITE_SPACE: usize = 1024;

/// A part of the model's answer, with its text.
pub(crate) type AnswerPiece = (PieceKind, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text,
    Reasoning,
}

#[derive(Debug, Default)]
pub(crate) struct TagReader {
    state: TagState,
    /// Text that may be a part of a tag, or white space around one.
    held: String,
    brackets: Arc<[ThoughtBrackets]>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum TagState {
    /// Before the opening tag. `is_reasoning` is true if the reasoning begins without one.
    Begin {
        is_reasoning: bool,
    },
    /// Between the brackets of this number, or, without a number, before any closing bracket.
    Reasoning {
        brackets: Option<usize>,
        is_begun: bool,
    },
    AfterReasoning {
        brackets: usize,
    },
    /// In the answer. Later tags are text.
    #[default]
    Text,
}

impl TagReader {
    pub(crate) fn new(tags: ThinkTags, brackets: Arc<[ThoughtBrackets]>) -> Self {
        let state = match tags {
            ThinkTags::Paired => TagState::Begin { is_reasoning: false },
            ThinkTags::Closing => TagState::Begin { is_reasoning: true },
            ThinkTags::None => TagState::Text,
        };
        Self { state, held: String::new(), brackets }
    }

    /// Returns whether all further text is the answer's.
    pub(super) fn is_text(&self) -> bool {
        self.state == TagState::Text
    }

    pub(crate) fn read(&mut self, text: &str) -> Vec<AnswerPiece> {
        let (held, mut pieces) = (std::mem::take(&mut self.held) + text, Vec::new());
        let mut rest = held.as_str();
        while self.step(&mut rest, &mut pieces) {}
        self.held = rest.to_owned();
        pieces
    }

    /// Returns the held text. White space alone is left out.
    pub(super) fn end(&mut self) -> Vec<AnswerPiece> {
        let held = std::mem::take(&mut self.held);
        let is_blank = held.trim().is_empty();
        match self.state {
            TagState::Reasoning { .. } => vec![(PieceKind::Reasoning, held)],
            TagState::Begin { .. } if is_blank => Vec::new(),
            TagState::Begin { is_reasoning: true } => vec![(PieceKind::Reasoning, held)],
            TagState::Begin { is_reasoning: false } => {
                self.state = TagState::Text;
                vec![(PieceKind::Text, held)]
            }
            TagState::AfterReasoning { .. } if !is_blank => vec![(PieceKind::Text, held)],
            TagState::AfterReasoning { .. } | TagState::Text => Vec::new(),
        }
    }

    /// Takes the decided text from the beginning of `rest`. Returns whether the remaining text
    /// needs another step.
    fn step(&mut self, rest: &mut &str, pieces: &mut Vec<AnswerPiece>) -> bool {
        match self.state {
            TagState::Begin { is_reasoning } => {
                let text = rest.trim_start();
                let white_space = rest.len() - text.len();
                let mut pairs = self.brackets.iter();
                if let Some(at) = pairs.position(|pair| text.starts_with(&pair.opening)) {
                    *rest = &text[self.brackets[at].opening.len()..];
                    self.state = TagState::Reasoning { brackets: Some(at), is_begun: false };
                    return true;
                }
                if white_space <= MAX_WHITE_SPACE
                    && self.brackets.iter().any(|pair| pair.opening.starts_with(text))
                {
                    return false;
                }
                self.state = if is_reasoning {
                    TagState::Reasoning { brackets: None, is_begun: false }
                } else {
                    TagState::Text
                };
                true
            }
            TagState::Reasoning { brackets, is_begun } => {
                if !is_begun {
                    *rest = rest.trim_start();
                }
                let closing = self
                    .brackets
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| brackets.is_none_or(|number| number == *at));
                let (end, found) =
                    first_tag(rest, closing.map(|(at, pair)| (at, pair.closing.as_str())));
                if end > 0 {
                    pieces.push((PieceKind::Reasoning, rest[..end].to_owned()));
                    self.state = TagState::Reasoning { brackets, is_begun: true };
                }
                *rest = &rest[end + found.map_or(0, |at| self.brackets[at].closing.len())..];
                if let Some(at) = found {
                    self.state = TagState::AfterReasoning { brackets: at };
                }
                found.is_some()
            }
            TagState::AfterReasoning { brackets } => self.after_reasoning(rest, brackets),
            TagState::Text => {
                if !rest.is_empty() {
                    pieces.push((PieceKind::Text, std::mem::take(rest).to_owned()));
                }
                false
            }
        }
    }

    /// Drops white space and tags between reasoning and the answer, or before another thought.
    fn after_reasoning(&mut self, rest: &mut &str, brackets: usize) -> bool {
        *rest = rest.trim_start();
        let then = &self.brackets[brackets].then;
        if rest.is_empty() {
            return false;
        }
        if let Some(after) = then.iter().find_map(|tag| rest.strip_prefix(tag.as_str())) {
            *rest = after;
            return true;
        }
        let is_next = |pair: &ThoughtBrackets| !then.is_empty() && pair.then == *then;
        let mut more = self.brackets.iter().enumerate().filter(|(_, pair)| is_next(pair));
        if let Some((at, next)) = more.clone().find(|(_, pair)| rest.starts_with(&pair.opening)) {
            *rest = &rest[next.opening.len()..];
            self.state = TagState::Reasoning { brackets: Some(at), is_begun: false };
            return true;
        }
        let is_start = |tag: &String| tag.starts_with(*rest);
        if then.iter().any(is_start) || more.any(|(_, pair)| is_start(&pair.opening)) {
            return false;
        }
        self.state = TagState::Text;
        true
    }
}

/// Returns the place and the number of the first of some tags. Without one, returns the place from
/// which the text may be the beginning of a tag, or else the end of the text. Reads each place
/// once.
pub(super) fn first_tag<'t>(
    text: &str,
    tags: impl Iterator<Item = (usize, &'t str)> + Clone,
) -> (usize, Option<usize>) {
    for (place, _) in text.char_indices() {
        let rest = &text[place..];
        if let Some((number, _)) = tags.clone().find(|(_, tag)| rest.starts_with(tag)) {
            return (place, Some(number));
        }
        if tags.clone().any(|(_, tag)| tag.starts_with(rest)) {
            return (place, None);
        }
    }
    (text.len(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KnownModels, ProfileOptions};

    fn reader_of(tags: ThinkTags, server: &str) -> TagReader {
        let url = reqwest::Url::parse("http://host").unwrap();
        let profile =
            KnownModels::default().profile(Some(&ProfileOptions::named(server)), &url).unwrap();
        TagReader::new(tags, profile.thoughts.clone())
    }

    /// Returns the text and the reasoning of an answer in these pieces.
    fn split(tags: ThinkTags, pieces: &[&str]) -> (String, String) {
        split_of("vllm", tags, pieces)
    }

    fn split_of(server: &str, tags: ThinkTags, pieces: &[&str]) -> (String, String) {
        let mut reader = reader_of(tags, server);
        let (mut text, mut reasoning) = (String::new(), String::new());
        let mut add = |pieces: Vec<AnswerPiece>| {
            for (kind, more) in pieces {
                match kind {
                    PieceKind::Text => text.push_str(&more),
                    PieceKind::Reasoning => {
                        assert!(text.is_empty(), "reasoning after text");
                        reasoning.push_str(&more);
                    }
                }
            }
        };
        pieces.iter().for_each(|piece| add(reader.read(piece)));
        add(reader.end());
        (text, reasoning)
    }

    #[test]
    fn an_answer_is_the_same_however_it_is_split() {
        use ThinkTags::{Closing, None, Paired};
        for (tags, answer, text, reasoning) in [
            (Paired, "<think>hm, ü</think>yes", "yes", "hm, ü"),
            (Paired, " \n<think>\nhm\n</think>\n\nyes <think>", "yes <think>", "hm\n"),
            (Paired, "<thinking>a </think> b</thinking> yes", "yes", "a </think> b"),
            (Paired, "<think></think>yes", "yes", ""),
            (Paired, "<think>\n\n</think>\n\nyes", "yes", ""),
            (Paired, "<think>hm < / </ </thin", "", "hm < / </ </thin"),
            (Paired, "<think>hm", "", "hm"),
            (Paired, "<thin", "<thin", ""),
            (Paired, "<thinker>yes", "<thinker>yes", ""),
            (Paired, "yes, <think>no</think>", "yes, <think>no</think>", ""),
            (Paired, "  yes", "  yes", ""),
            (Paired, "yes</think>", "yes</think>", ""),
            (Closing, "hm</think>yes</think>", "yes</think>", "hm"),
            (Closing, "<think>hm</think>yes", "yes", "hm"),
            (Closing, "<b>hm</thinking>yes", "yes", "<b>hm"),
            (Paired, "[THINK]hm [/THI[/THINK] yes", "yes", "hm [/THI"),
            (Paired, "\n<seed:think>hm</seed:think>\nyes", "yes", "hm"),
            (Closing, "hm</seed:think>yes", "yes", "hm"),
            (
                Paired,
                "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|>\
                 <|start|>assistant<|channel|>final<|message|>yes <|x",
                "yes <|x",
                "ab",
            ),
            (Paired, "<|channel|>analysis<|message|>a<|end|><|start|>assis", "<|start|>assis", "a"),
            (Paired, "<|channel|>final", "<|channel|>final", ""),
            (None, "<think>hm</think>yes", "<think>hm</think>yes", ""),
        ] {
            let expected = (text.to_owned(), reasoning.to_owned());
            assert_eq!(split(tags, &[answer]), expected, "{answer}");
            let characters: Vec<_> =
                answer.char_indices().map(|(at, c)| &answer[at..at + c.len_utf8()]).collect();
            assert_eq!(split(tags, &characters), expected, "{answer}");
            for (at, _) in answer.char_indices() {
                assert_eq!(
                    split(tags, &[&answer[..at], &answer[at..]]),
                    expected,
                    "{answer} at {at}"
                );
            }
        }
    }

    #[test]
    fn a_server_that_parses_the_output_gives_other_brackets_as_text() {
        let split = |server: &str, text: &str| split_of(server, ThinkTags::Paired, &[text]).1;
        assert_eq!(
            (split("openai", "<think>a</think>b"), split("openai", "[THINK]a[/THINK]b")),
            ("a".into(), "".into())
        );
        assert_eq!(split("compatible", "[THINK]a[/THINK]b"), "a");
    }

    #[test]
    fn only_what_may_be_a_tag_is_held_back() {
        let mut reader = reader_of(ThinkTags::Paired, "vllm");
        assert_eq!(reader.read("<thi"), []);
        assert_eq!(reader.read("s"), [(PieceKind::Text, "<this".to_owned())]);
        assert!(reader.is_text());
        let mut reader = reader_of(ThinkTags::Paired, "vllm");
        assert_eq!(reader.read("<think>a <"), [(PieceKind::Reasoning, "a ".to_owned())]);
        assert_eq!(reader.read("b"), [(PieceKind::Reasoning, "<b".to_owned())]);
        assert_eq!(reader.read("</think"), []);
        assert_eq!(reader.read(">c"), [(PieceKind::Text, "c".to_owned())]);
    }

    #[test]
    fn endless_white_space_is_not_held() {
        let mut reader = reader_of(ThinkTags::Paired, "vllm");
        let pieces: usize = (0..100).map(|_| reader.read(&" ".repeat(100)).len()).sum();
        assert!(pieces > 0 && reader.held.is_empty());
    }
}
