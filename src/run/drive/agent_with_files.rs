//! [`AgentWithFiles`]: the agent of a run whose conversation names files. It gets their data.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, stream};

use crate::run::limits::memory::RunMemory;
use crate::{
    agent::{A2ui, Agent, AgentError, EventStream, RunContext},
    base::RunErrorCode,
    files::{InPlaceOfFile, RunFiles, name_again},
    protocol::{AgentCapabilities, Event, Messages, RunAgentInput},
};

/// An agent that gets the data of the files that its input names, and whose snapshots name them again.
pub(crate) struct AgentWithFiles {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) files: RunFiles,
    pub(crate) memory: Option<RunMemory>,
}

impl Agent for AgentWithFiles {
    fn run(&self, mut input: RunAgentInput, cx: RunContext) -> EventStream {
        let Self { agent, files, memory } = self;
        let (agent, files, memory) = (agent.clone(), files.clone(), memory.clone());
        let run = async move {
            let given = input.messages.clone();
            if let Err(error) = load(&files, memory.as_ref(), &mut input.messages).await {
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

async fn load(run: &RunFiles, memory: Option<&RunMemory>, messages: &mut Messages) -> Result<(), AgentError> {
    let unavailable = |problem: &'static str| AgentError::new(RunErrorCode::FilesUnavailable, problem);
    let loading = run.files.loading(&run.owner, messages.to_mut().iter_mut().collect(), InPlaceOfFile::Note).await;
    let loading =
        loading.map_err(|error| unavailable("the files cannot be read now; please try again").caused_by(error))?;
    if let Some(memory) = memory
        && memory.files(loading.bytes()).await.is_err()
    {
        return Err(unavailable("the server has no memory for the files of this conversation now; please try again"));
    }
    loading.load().await;
    Ok(())
}
