//! The interface of the decoders: they turn a provider's events into those of a model.

use std::collections::VecDeque;

use crate::{
    llm::{BlockStart, ModelEvent, StopReason},
    protocol::TokenUsage,
};

/// The most blocks of an answer. It bounds the memory; answers have far fewer.
const MAX_BLOCKS: usize = 1024;

pub(in crate::llm) trait Decoder: Send + 'static {
    fn event(&mut self, name: Option<&str>, data: &str, output: &mut AnswerEvents) -> Result<DecodeStep, DecodeError>;

    /// Closes the open blocks and adds the reason of the stop. Does nothing and returns `false` if the answer is
    /// incomplete. A second call does nothing.
    fn finish(&mut self, output: &mut AnswerEvents) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum DecodeStep {
    More,
    Complete,
}

/// An event that is not a part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::llm) enum DecodeError {
    /// The event is invalid. The reason is for the log.
    Malformed(String),
    Failed {
        kind: FailureKind,
        message: String,
    },
}

/// The kind of a provider's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum FailureKind {
    /// The provider is overloaded or has a temporary failure.
    Unavailable,
    RateLimited,
    /// Any other failure, which a retry would repeat.
    Other,
}

impl FailureKind {
    /// Returns the kind for the status of a response, or for a number in an error object.
    pub(in crate::llm) fn of_status(status: u64) -> Self {
        match status {
            429 => Self::RateLimited,
            408 | 409 | 500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }
}

/// The events that a decoder has made.
#[derive(Debug, Default)]
pub(in crate::llm) struct AnswerEvents {
    pub(super) events: VecDeque<ModelEvent>,
    /// `true` if a part of the answer was among them: then the request cannot be sent again.
    pub(super) has_answer: bool,
    blocks: usize,
}

impl AnswerEvents {
    pub(in crate::llm) fn start(&mut self, block: BlockStart) -> Result<usize, DecodeError> {
        let index = self.blocks;
        if index == MAX_BLOCKS {
            return Err(DecodeError::Malformed(format!("the answer has more than {MAX_BLOCKS} blocks")));
        }
        self.blocks += 1;
        self.has_answer = true;
        self.events.push_back(ModelEvent::Start { index, block });
        Ok(index)
    }

    /// Continues a block, unless the text is empty.
    pub(in crate::llm) fn delta(&mut self, index: usize, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.events.push_back(ModelEvent::Delta { index, text });
        }
    }

    pub(in crate::llm) fn end(&mut self, index: usize, artefact: Option<String>) {
        self.events.push_back(ModelEvent::End { index, artefact });
    }

    pub(in crate::llm) fn usage(&mut self, usage: TokenUsage) {
        self.events.push_back(ModelEvent::Usage(usage));
    }

    pub(in crate::llm) fn stop(&mut self, reason: StopReason) {
        self.events.push_back(ModelEvent::Stop(reason));
    }

    #[cfg(test)]
    pub(in crate::llm) fn take(&mut self) -> Vec<ModelEvent> {
        self.events.drain(..).collect()
    }
}
