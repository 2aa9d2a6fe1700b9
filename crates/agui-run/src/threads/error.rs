//! The errors of operations on stored threads.

use crate::{
    conversation::{ids::LongId, title::MAX_TITLE_CHARS},
    limits::stored_bytes::StorageLimit,
};
use agui_base::refusals;
use agui_store::StoreError;

/// The longest comment of a feedback, in bytes.
pub(super) const MAX_COMMENT_BYTES: usize = 8 * 1024;
/// The largest metadata of a thread, in bytes of JSON.
pub(super) const MAX_METADATA_BYTES: usize = 16 * 1024;

refusals! {
    /// The reason that a thread was not read, changed or copied. After a transient error of the
    /// store, a change or a copy may have been stored; otherwise nothing was stored.
    #[derive(Debug, thiserror::Error)]
    pub enum ThreadError {
        /// The principal has no such thread.
        #[error("there is no such thread")]
        #[refusal(NOT_FOUND, "unknown_thread", Thread, Follow)]
        NoThread,
        /// The thread has no such run.
        #[error("there is no such run")]
        #[refusal(NOT_FOUND, "unknown_run", Run, Follow)]
        NoRun,
        /// The run is not detached.
        #[error("this run has no log, because it was not detached: start it with onDisconnect \"continue\"")]
        #[refusal(NOT_FOUND, "run_has_no_log", Follow)]
        NoLog,
        /// The server, or the principal, is at its limit of followers.
        #[error("too many clients follow runs; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_followers", Follow, Followers)]
        TooManyFollowers,
        /// The run has not ended.
        #[error("the run has not ended; its recording can be read when it has")]
        #[refusal(CONFLICT, "run_is_running", Running)]
        Running,
        /// Retention has removed the log.
        #[error("the log of this run was removed")]
        #[refusal(GONE, "log_removed", Follow)]
        LogRemoved,
        /// The thread has no such message.
        #[error("the thread has no such message")]
        #[refusal(NOT_FOUND, "unknown_message", Message)]
        NoMessage,
        /// The thread has no such message to give feedback on.
        #[error("the thread has no such message; the messages of a run are stored when it ends")]
        #[refusal(NOT_FOUND, "unknown_message", Message)]
        NoMessageYet,
        /// The comment of a feedback is too long.
        #[error("the comment has more than {MAX_COMMENT_BYTES} bytes")]
        #[refusal(BAD_REQUEST, "invalid_input", Body)]
        CommentTooLong,
        /// The title has too many characters.
        #[error("the title has more than {MAX_TITLE_CHARS} characters")]
        #[refusal(BAD_REQUEST, "invalid_input", Body)]
        TitleTooLong,
        /// The metadata would be too large.
        #[error("the metadata would have more than {MAX_METADATA_BYTES} bytes")]
        #[refusal(PAYLOAD_TOO_LARGE, "metadata_too_large", Edit)]
        MetadataTooLarge,
        /// The branch cannot be changed during a run.
        #[error("the thread has a running run: change the branch when it has ended")]
        #[refusal(CONFLICT, "run_is_running", Edit)]
        BranchIsRunning,
        /// Other requests changed the thread at each try.
        #[error("the thread was changed by other requests at the same time; try again")]
        #[refusal(CONFLICT, "thread_changed", Edit)]
        Changed,
        /// There is a thread with the id of the copy.
        #[error("there is a thread with this id already: choose another `threadId`")]
        #[refusal(CONFLICT, "thread_exists", Copy)]
        Exists,
        /// The principal, or the server, is at its limit of stored bytes.
        #[error(transparent)]
        #[refusal(StorageLimit)]
        Storage(#[from] StorageLimit),
        /// The content of an import is wrong.
        #[error("{path}: {problem}")]
        #[refusal(BAD_REQUEST, "invalid_input", Copy)]
        Invalid {
            /// The place of the problem in the JSON of an export.
            path: String,
            /// The problem.
            problem: String,
        },
        /// The copy would exceed the limits of a thread.
        #[error(
            "the thread has {messages} messages and {bytes} bytes, more than [threads] max_messages or max_bytes allow"
        )]
        #[refusal(PAYLOAD_TOO_LARGE, "thread_too_large", Copy)]
        TooLarge {
            /// The number of messages.
            messages: usize,
            /// The bytes of its content, as JSON.
            bytes: u64,
        },
        /// The store failed.
        #[error(transparent)]
        #[refusal(StoreError)]
        Store(#[from] StoreError),
    }
}

impl ThreadError {
    /// The member of the request that is wrong.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::CommentTooLong => Some("comment"),
            Self::TitleTooLong => Some("title"),
            Self::MetadataTooLarge => Some("metadata"),
            Self::Invalid { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl From<LongId> for ThreadError {
    fn from(id: LongId) -> Self {
        Self::Invalid { problem: id.problem(), path: id.path }
    }
}
