//! What turns the events of a provider into those of a model.

use std::collections::VecDeque;

use crate::{
    llm::{BlockStart, ModelEvent, StopReason},
    protocol::TokenUsage,
};

/// More blocks than any answer has. What opens more is out of its mind, and would fill the memory.
const MOST_BLOCKS: usize = 1024;

/// Reads the events of one answer.
pub(in crate::llm) trait Decoder: Send + 'static {
    /// Reads one event.
    fn event(&mut self, name: Option<&str>, data: &str, output: &mut Output) -> Result<Step, Fault>;

    /// Ends the answer: closes what is open and says why it stopped. Does nothing and returns `false` if it is not
    /// whole. Called again, it does nothing more.
    fn finish(&mut self, output: &mut Output) -> bool;
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum Step {
    /// It may.
    More,
    /// The answer is complete.
    Complete,
}

/// What an event may be instead of a part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::llm) enum Fault {
    /// It makes no sense; why is for the log.
    Malformed(String),
    /// The provider says that it has failed.
    Failed {
        /// In which way.
        kind: Kind,
        /// In its own words.
        message: String,
    },
}

/// In which way a provider has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum Kind {
    /// It is too busy, or broken for a moment.
    Unavailable,
    /// It was asked too often.
    RateLimited,
    /// In some other way, in which it would fail again.
    Other,
}

impl Kind {
    /// What the status of a response, or a number in an error object, says.
    pub(in crate::llm) fn of_status(status: u64) -> Self {
        match status {
            429 => Self::RateLimited,
            408 | 409 | 500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }
}

/// What a decoder has to say.
#[derive(Debug, Default)]
pub(in crate::llm) struct Output {
    /// In order; the reader takes from the front.
    pub(super) events: VecDeque<ModelEvent>,
    /// Whether a part of the answer was among it, after which the question cannot be asked again.
    pub(super) spoken: bool,
    blocks: usize,
}

impl Output {
    /// Opens a block and returns its index.
    pub(in crate::llm) fn start(&mut self, block: BlockStart) -> Result<usize, Fault> {
        let index = self.blocks;
        if index == MOST_BLOCKS {
            return Err(Fault::Malformed(format!("the answer has more than {MOST_BLOCKS} blocks")));
        }
        self.blocks += 1;
        self.spoken = true;
        self.events.push_back(ModelEvent::Start { index, block });
        Ok(index)
    }

    /// Continues a block, if there is something to continue it with.
    pub(in crate::llm) fn delta(&mut self, index: usize, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.events.push_back(ModelEvent::Delta { index, text });
        }
    }

    /// Ends a block.
    pub(in crate::llm) fn end(&mut self, index: usize, artefact: Option<String>) {
        self.events.push_back(ModelEvent::End { index, artefact });
    }

    /// Says what the answer has cost so far.
    pub(in crate::llm) fn usage(&mut self, usage: TokenUsage) {
        self.events.push_back(ModelEvent::Usage(usage));
    }

    /// Ends the answer.
    pub(in crate::llm) fn stop(&mut self, reason: StopReason) {
        self.events.push_back(ModelEvent::Stop(reason));
    }

    /// All that was said.
    #[cfg(test)]
    pub(in crate::llm) fn take(&mut self) -> Vec<ModelEvent> {
        self.events.drain(..).collect()
    }
}
