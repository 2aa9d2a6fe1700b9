//! A store whose runs all live in their response. It is asked what any other is.

use agui_server::protocol::{RunId, ThreadId};
use agui_server::store::{
    Append, Begin, CancelRequest, Events, Held, Lease, Millis, NewRun, Pruned, Retention, RunEnd, RunRecord, Store,
    StoreError, Thread, ThreadContent, ThreadPage, ThreadSummary,
};
use async_trait::async_trait;

use crate::backends::Shared;

pub(crate) struct Foreground(pub(crate) Shared);

/// Passes a call on as it is.
macro_rules! same {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Foreground {
            fn is_shared(&self) -> bool {
                self.0.is_shared()
            }

            async fn begin(&self, run: &NewRun) -> Result<Begin, StoreError> {
                self.0.begin(&NewRun { detached: false, ..run.clone() }).await
            }

            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                self.0.$name($($argument),*).await
            })*
        }
    };
}

same! {
    fn save(lease: &Lease, content: &ThreadContent) -> ();
    fn append(batches: &[Append]) -> Vec<bool>;
    fn finish(lease: &Lease, content: Option<&ThreadContent>, last: Option<&Append>, end: &RunEnd) -> ();
    fn renew(holder: &str, until: Millis) -> Vec<Held>;
    fn cancel_requests(holder: &str) -> Vec<Held>;
    fn request_cancel(thread: &ThreadId, run: &RunId) -> CancelRequest;
    fn lost(holder: &str, now: Millis, limit: usize) -> Vec<Lease>;
    fn take_over(lost: &Lease, holder: &str, now: Millis, until: Millis) -> Option<Lease>;
    fn thread(id: &ThreadId) -> Option<Thread>;
    fn threads(owner: Option<&str>, page: &ThreadPage) -> Vec<ThreadSummary>;
    fn run(thread: &ThreadId, run: &RunId) -> Option<RunRecord>;
    fn runs(thread: &ThreadId, limit: usize) -> Vec<RunRecord>;
    fn events(thread: &ThreadId, run: &RunId, after: u64, max_bytes: usize) -> Option<Events>;
    fn delete(thread: &ThreadId) -> bool;
    fn prune(retention: &Retention, now: Millis) -> Pruned;
    fn check() -> ();
}
