//! Stored threads: the [`Store`] trait, and its implementations in memory, SQLite and Postgres.

#[cfg(feature = "postgres")]
#[doc(inline)]
pub use agui_store::PostgresStore;
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use agui_store::SqliteStore;
#[doc(inline)]
pub use agui_store::{
    BeginOutcome, BranchWrite, CancelRequest, CopiedMessage, CopiedRun, EndReason, EndState,
    EndedRun, EventBatch, EventPage, Feedback, FinishedRun, HeadUpdate, IntoStore, Lease, LostRun,
    MemoryStore, MessageNode, MessageOrigin, MessagePage, MessageQuery, Millis, NewRun, OpenError,
    Retention, RunEnd, RunFailure, RunRecord, RunStart, RunStatus, SharedStore, Signals, Store,
    StoreError, SweepResult, Thread, ThreadContent, ThreadKey, ThreadPage, ThreadParts, ThreadSize,
    ThreadUpdate, ThreadVersion, ThreadView, Topic, TopicWatch,
};
