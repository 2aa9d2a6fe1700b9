//! [`AgentWithFiles`]: the agent of a run whose conversation names files. It gets their data.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, stream};

use super::{
    limits::{memory::RunMemory, start_error::StartError},
    turn::thread_runs::ThreadRuns,
};
use crate::{
    agent::{A2ui, Agent, AgentError, EventStream, RunContext},
    base::RunErrorCode,
    files::{AbsorbError, Files, InPlaceOfFile, has_media, name_again},
    protocol::{AgentCapabilities, Event, Messages, RunAgentInput},
};

/// An agent that gets the data of the files that its input names, and whose snapshots name them again.
pub(super) struct AgentWithFiles {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) files: Files,
    pub(super) owner: Arc<str>,
    pub(super) memory: Option<RunMemory>,
}

impl Agent for AgentWithFiles {
    fn run(&self, mut input: RunAgentInput, cx: RunContext) -> EventStream {
        let Self { agent, files, owner, memory } = self;
        let (agent, files, owner, memory) = (agent.clone(), files.clone(), owner.clone(), memory.clone());
        let run = async move {
            let given = input.messages.clone();
            if let Err(error) = load(&files, &owner, memory.as_ref(), &mut input.messages).await {
                return stream::iter([Err(error)]).boxed();
            }
            let named = move |mut event: Event| {
                name_again(&mut event, &given);
                event
            };
            agent.run(input, cx).map(move |event| event.map(&named)).boxed()
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

async fn load(
    files: &Files,
    owner: &str,
    memory: Option<&RunMemory>,
    messages: &mut Messages,
) -> Result<(), AgentError> {
    let unavailable = |problem: &'static str| AgentError::new(RunErrorCode::FilesUnavailable, problem);
    let loading = files.loading(owner, messages.to_mut().iter_mut().collect()).await;
    let loading =
        loading.map_err(|error| unavailable("the files cannot be read now; please try again").caused_by(error))?;
    if let Some(memory) = memory
        && memory.files(loading.bytes()).await.is_err()
    {
        return Err(unavailable("the server has no memory for the files of this conversation now; please try again"));
    }
    loading.load(InPlaceOfFile::Note).await;
    Ok(())
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
