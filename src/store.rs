//! Stored threads: the [`Store`] trait, and its implementations in memory, SQLite and Postgres.

#[cfg(feature = "postgres")]
#[doc(inline)]
pub use agui_store::PostgresStore;
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use agui_store::SqliteStore;
#[doc(inline)]
pub use agui_store::{
    BeginOutcome, Begun, BranchWrite, CancelRequest, CopiedMessage, CopiedRun, EndReason, EndState,
    EndedRun, EventBatch, EventPage, Feedback, FinishedRun, HeadUpdate, IntoStore, Lease, LostRun,
    MemoryStore, MessageNode, MessageNumber, MessageOrigin, MessagePage, MessageQuery, Millis,
    NewRun, OpenError, Retention, RunEnd, RunFailure, RunNumber, RunRecord, RunStart, RunStatus,
    SharedStore, Signals, StateNumber, Store, StoreError, SweepResult, Thread, ThreadContent,
    ThreadKey, ThreadNumber, ThreadPage, ThreadParts, ThreadSize, ThreadUpdate, ThreadVersion,
    ThreadView, Topic, TopicWatch,
};
