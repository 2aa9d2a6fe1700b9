//! [`AgentWithFiles`]: the agent of a run whose conversation names files. It gets their data.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};

use super::{limits::start_error::StartError, turn::thread_runs::ThreadRuns};
use crate::{
    agent::{A2ui, Agent, EventStream, RunContext},
    files::{AbsorbError, Files, has_media, name_again},
    protocol::{AgentCapabilities, Messages, RunAgentInput},
};

/// An agent that gets the data of the files that its input names, and whose snapshots name them again.
pub(super) struct AgentWithFiles {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) files: Files,
    pub(super) owner: Arc<str>,
}

impl Agent for AgentWithFiles {
    fn run(&self, mut input: RunAgentInput, cx: RunContext) -> EventStream {
        let Self { agent, files, owner } = self;
        let (agent, files, owner) = (agent.clone(), files.clone(), owner.clone());
        let run = async move {
            let given = input.messages.clone();
            files.load(&owner, &mut input.messages).await;
            agent.run(input, cx).map(move |mut event| {
                if let Ok(event) = &mut event {
                    name_again(event, &given);
                }
                event
            })
        };
        run.flatten_stream().boxed()
    }

    fn respond_to_app(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        self.agent.respond_to_app(input, cx)
    }

    fn capabilities(&self) -> AgentCapabilities {
        self.agent.capabilities()
    }

    fn can_continue(&self) -> bool {
        self.agent.can_continue()
    }

    fn is_repeatable(&self) -> bool {
        self.agent.is_repeatable()
    }

    fn a2ui(&self) -> Option<&A2ui> {
        self.agent.a2ui()
    }
}

impl ThreadRuns {
    /// Makes files of the media that a client has sent. Returns whether some of them came as data.
    pub(super) async fn absorb(&self, owner: &str, messages: &mut Messages) -> Result<bool, StartError> {
        let Some(files) = self.files.as_ref().filter(|_| messages.iter().any(has_media)) else { return Ok(false) };
        files.absorb(owner, messages.to_mut()).await.map_err(|error| match error {
            AbsorbError::UnknownFile { message, part } => StartError::InvalidInput {
                path: format!("messages[{message}].content[{part}].source.value"),
                problem: "there is no such file".to_owned(),
            },
            AbsorbError::Store(error) => error.into(),
        })
    }
}
