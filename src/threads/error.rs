//! The errors of operations on stored threads.

use crate::{
    run::{
        conversation::{ids::LongId, title::MAX_TITLE_CHARS},
        limits::stored_bytes::StorageLimit,
    },
    store::StoreError,
};

/// The longest comment of a feedback, in bytes.
pub(super) const MAX_COMMENT_BYTES: usize = 8 * 1024;
/// The largest metadata of a thread, in bytes of JSON.
pub(super) const MAX_METADATA_BYTES: usize = 16 * 1024;

/// The reason that a thread was not read, changed or copied. After a transient error of the store a change or a copy may have
/// been stored, otherwise nothing was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ThreadError {
    /// The principal has no such thread.
    #[error("there is no such thread")]
    NoThread,
    /// The thread has no such run.
    #[error("there is no such run")]
    NoRun,
    /// The run is not detached.
    #[error("this run has no log, because it was not detached: start it with onDisconnect \"continue\"")]
    NoLog,
    /// The server, or the principal, is at its limit of followers.
    #[error("too many clients follow runs; try again later")]
    TooManyFollowers,
    /// The run has not ended.
    #[error("the run has not ended; its recording can be read when it has")]
    Running,
    /// Retention has removed the log.
    #[error("the log of this run was removed")]
    LogRemoved,
    /// The thread has no such message.
    #[error("the thread has no such message")]
    NoMessage,
    /// The thread has no such message to give feedback on.
    #[error("the thread has no such message; the messages of a run are stored when it ends")]
    NoMessageYet,
    /// The comment of a feedback is too long.
    #[error("the comment has more than {MAX_COMMENT_BYTES} bytes")]
    CommentTooLong,
    /// The title has too many characters.
    #[error("the title has more than {MAX_TITLE_CHARS} characters")]
    TitleTooLong,
    /// The metadata would be too large.
    #[error("the metadata would have more than {MAX_METADATA_BYTES} bytes")]
    MetadataTooLarge,
    /// The branch cannot be changed during a run.
    #[error("the thread has a running run: change the branch when it has ended")]
    BranchIsRunning,
    /// Other changes came in between, several times.
    #[error("the thread was changed by other requests at the same time; try again")]
    Changed,
    /// There is a thread with the id of the copy.
    #[error("there is a thread with this id already: choose another `threadId`")]
    Exists,
    /// The principal, or the server, is at its limit of stored bytes.
    #[error(transparent)]
    Storage(#[from] StorageLimit),
    /// The content of an import is wrong.
    #[error("{path}: {problem}")]
    Invalid {
        /// The place of the problem in the JSON of an export.
        path: String,
        /// The problem.
        problem: String,
    },
    /// The copy would be larger than threads may be.
    #[error(
        "the thread has {messages} messages and {bytes} bytes, more than [threads] max_messages or max_bytes allow"
    )]
    TooLarge {
        /// The number of messages.
        messages: usize,
        /// The bytes of its content, as JSON.
        bytes: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<LongId> for ThreadError {
    fn from(id: LongId) -> Self {
        Self::Invalid { problem: id.problem(), path: id.path }
    }
}
