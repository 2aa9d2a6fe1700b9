//! The interface of the decoders of providers' events.

use std::collections::VecDeque;

use crate::{
    llm::{BlockStart, ModelEvent, StopReason},
    protocol::TokenUsage,
};

/// Bounds the memory; answers have far fewer.
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

#[derive(Debug, PartialEq, Eq)]
pub(in crate::llm) enum DecodeError {
    /// With the reason, for the log.
    Malformed(String),
    Failed {
        kind: FailureKind,
        message: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum FailureKind {
    Unavailable,
    RateLimited,
    /// A failure that a retry would repeat.
    Other,
}

impl FailureKind {
    pub(in crate::llm) fn of_status(status: u64) -> Self {
        match status {
            429 => Self::RateLimited,
            408 | 409 | 500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::llm) struct AnswerEvents {
    pub(super) events: VecDeque<ModelEvent>,
    /// A request whose answer has begun cannot be sent again.
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
