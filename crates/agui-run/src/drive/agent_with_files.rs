//! [`AgentWithFiles`]: the agent of a run whose conversation names files. It gets their data, or
//! URLs if it runs on another server.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, stream};

use crate::limits::memory::RunMemory;
use agui_agent::{
    A2ui, Agent, AgentError, EventStream, RunContext, delegate_agent,
    files::{FileUrls, LoadedFor, RunFiles, name_again},
};
use agui_base::RunErrorCode;
use agui_protocol::{Event, Messages, RunAgentInput};

/// An agent that gets the data of the files that its input names, and whose snapshots name them again.
pub(crate) struct AgentWithFiles {
    pub agent: Arc<dyn Agent>,
    pub files: RunFiles,
    pub memory: Option<RunMemory>,
}

impl Agent for AgentWithFiles {
    fn run(&self, mut input: RunAgentInput, cx: RunContext) -> EventStream {
        let Self { agent, files, memory } = self;
        let agent = agent.clone();
        let files = files.clone();
        let memory = memory.clone();
        let run = async move {
            let given = input.messages.clone();
            let reader = if agent.is_remote() { LoadedFor::RemoteAgent } else { LoadedFor::Agent };
            if let Err(error) = load(&files, reader, memory.as_ref(), &mut input.messages).await {
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

    delegate_agent!(agent);

    fn a2ui(&self) -> Option<&A2ui> {
        self.agent.a2ui()
    }
}

async fn load(
    run: &RunFiles,
    reader: LoadedFor,
    memory: Option<&RunMemory>,
    messages: &mut Messages,
) -> Result<(), AgentError> {
    let unavailable =
        |problem: &'static str| AgentError::new(RunErrorCode::FilesUnavailable, problem);
    let unreadable =
        |error| unavailable("the files cannot be read now; please try again").caused_by(error);
    if reader == LoadedFor::RemoteAgent
        && let Some(base) = &run.files.options().public_url
    {
        let signer = run.files.signer().await.map_err(unreadable)?;
        FileUrls::new(Some(signer), run.owner.clone(), base).present(messages.to_mut());
        return Ok(());
    }
    let loading =
        run.files.loading(&run.owner, messages.to_mut().iter_mut().collect(), reader).await;
    let loading = loading.map_err(unreadable)?;
    if let Some(memory) = memory
        && memory.files(loading.bytes()).await.is_err()
    {
        return Err(unavailable(
            "the server has no memory for the files of this conversation now; please try again",
        ));
    }
    loading.load().await;
    Ok(())
}
