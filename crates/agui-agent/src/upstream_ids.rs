//! The ids of threads and runs at other people's servers: the one place that makes them.
//!
//! The same thread id of two owners is two threads here. A server that identifies conversations by
//! the id alone would give the second owner the conversation of the first. So it gets a keyed
//! digest of owner and id, which no client can choose.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use uuid::Uuid;

use agui_base::hmac::hmac_sha256;
use agui_protocol::RunAgentInput;
use agui_store::{
    Millis, RunNumber, Store,
    files::{SecretName, new_secret},
    host::StoreResult,
};

/// The key of runs whose store keeps no secrets. After a restart, an endpoint gets new ids and
/// whole conversations.
static PROCESS_KEY: LazyLock<[u8; 32]> = LazyLock::new(new_secret);

/// The ids that a remote agent's endpoint gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ThreadIds {
    /// An id of this server for each branch of a thread: an edited conversation is another one.
    #[default]
    Branch,
    /// An id of this server for each thread, also after an edit; for endpoints that read only the
    /// newest message.
    Thread,
    /// The client's ids, so that two callers with the same id share what the endpoint remembers.
    Client,
}

/// The key of a store, read once.
pub struct UpstreamKey {
    store: Arc<dyn Store>,
    secret: OnceCell<[u8; 32]>,
}

impl UpstreamKey {
    /// Creates the key of a store, which is read when a run first needs it.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, secret: OnceCell::new() })
    }

    /// Returns the key of the process if the store keeps no secrets.
    async fn read(&self) -> StoreResult<[u8; 32]> {
        let Some(secrets) = self.store.files() else { return Ok(*PROCESS_KEY) };
        self.secret.get_or_try_init(|| secrets.secret(SecretName::Upstream)).await.copied()
    }
}

/// The conversation that a run belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub enum Conversation {
    /// A branch of a stored thread. A thread that is made again after its deletion has another time.
    Stored {
        /// The time at which the thread was created.
        created_at: Millis,
        /// The number of the first run of the branch.
        first_run: RunNumber,
    },
    /// The conversation of this run alone. The run is not stored, so the thread at the other server
    /// must not contain it either.
    #[default]
    Once,
}

/// The run whose ids are replaced.
pub(super) struct ReplacedRun<'a> {
    pub(super) key: Option<&'a UpstreamKey>,
    pub(super) conversation: Conversation,
    /// Owner, agent, thread and task.
    pub(super) place: Value,
    pub(super) seed: Uuid,
}

impl ReplacedRun<'_> {
    /// Replaces the ids of the thread and its runs in an input.
    pub(super) async fn replace_in(
        &self,
        input: &mut RunAgentInput,
        ids: ThreadIds,
    ) -> StoreResult<()> {
        if ids == ThreadIds::Client {
            return Ok(());
        }
        let key = match self.key {
            Some(key) => key.read().await?,
            None => *PROCESS_KEY,
        };
        let (created_at, first_run, seed) = match self.conversation {
            Conversation::Stored { created_at, first_run } => {
                (Some(created_at), Some(first_run), None)
            }
            Conversation::Once => (None, None, Some(self.seed.simple().to_string())),
        };
        let thread = json!([self.place, created_at, seed]);
        // A version 4 UUID, because some servers take no other ids.
        let id = |of: Value| {
            let digest = hmac_sha256(&key, of.to_string().as_bytes());
            uuid::Builder::from_random_bytes(digest.first_chunk().copied().unwrap_or_default())
                .into_uuid()
                .to_string()
        };
        let branch = first_run.filter(|_| ids == ThreadIds::Branch);
        input.thread_id = id(json!(["thread", thread, branch])).into();
        let run = |run: &str| id(json!(["run", thread, run]));
        input.run_id = run(&input.run_id).into();
        input.parent_run_id = input.parent_run_id.as_deref().map(|parent| run(parent).into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{
        Principal, RunContext,
        context::{ContextParts, RunIdentity},
    };
    use agui_protocol::{RunId, ThreadId};

    fn context(owner: &str, agent: &str, thread: &str, conversation: Conversation) -> RunContext {
        let (thread_id, run_id, principal) =
            (thread.into(), "r".into(), Some(Principal::new("key", owner)));
        let identity = RunIdentity { thread_id, run_id, agent: agent.into(), principal };
        let mut parts = ContextParts::new(identity);
        parts.conversation = conversation;
        parts.into()
    }

    async fn ids(cx: &RunContext, by: ThreadIds) -> (ThreadId, RunId) {
        let mut input = RunAgentInput::new(cx.thread_id().clone(), cx.run_id().clone(), vec![]);
        cx.replace_ids(&mut input, by).await.unwrap();
        (input.thread_id, input.run_id)
    }

    #[tokio::test]
    async fn each_part_of_a_conversation_makes_ids_of_its_own() {
        let first = |created_at| Conversation::Stored { created_at, first_run: RunNumber(1) };
        let cx = || context("ann", "a", "t", first(1));
        let all = [
            cx(),
            context("bob", "a", "t", first(1)),
            context("ann", "b", "t", first(1)),
            context("ann", "a", "u", first(1)),
            context("ann", "a", "t", first(2)),
            context("ann", "a", "t", Conversation::Once),
            context("ann", "a", "t", Conversation::Once),
            cx().for_task("task".into()),
            cx().for_task("other".into()),
        ];
        for by in [ThreadIds::Branch, ThreadIds::Thread] {
            let (mut threads, mut runs) = (HashSet::new(), HashSet::new());
            for cx in &all {
                let (thread, run) = ids(cx, by).await;
                assert_eq!(ids(cx, by).await, (thread.clone(), run.clone()));
                assert!(threads.insert(thread) && runs.insert(run), "{cx:?}");
            }
        }
        // A task that continues after a question is the same conversation.
        let [before, after] = [cx().for_task("task".into()), cx().for_task("task".into())];
        assert_eq!(ids(&before, ThreadIds::Branch).await, ids(&after, ThreadIds::Branch).await);
    }

    #[tokio::test]
    async fn branches_have_the_runs_of_one_thread() {
        let of = |run| {
            context(
                "ann",
                "a",
                "t",
                Conversation::Stored { created_at: 1, first_run: RunNumber(run) },
            )
        };
        let [(first, run), (second, same_run)] =
            [ids(&of(1), ThreadIds::Branch).await, ids(&of(2), ThreadIds::Branch).await];
        assert!(first != second && run == same_run);
        assert_eq!(ids(&of(1), ThreadIds::Thread).await, ids(&of(2), ThreadIds::Thread).await);
    }
}
