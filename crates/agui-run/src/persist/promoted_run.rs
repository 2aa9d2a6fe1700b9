//! The response of a run that was promoted: it continues with the run's log, after what it has sent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::time::{Instant, Sleep, sleep};

use crate::{
    drive::{
        ending::thread_deleted,
        progress::{EventSink, Progress},
    },
    log::{FollowError, Follower, LiveLog, live::LogChunk},
    turn::{live_run::LiveRun, thread_core::ThreadCore},
};
use agui_protocol::Event;
use agui_store::ThreadKey;

type Next = BoxFuture<'static, (Follower, Result<Option<LogChunk>, FollowError>)>;

pub(crate) struct PromotedRun {
    threads: Arc<ThreadCore>,
    /// Reads the next chunk; `None` after the last one.
    next: Option<Next>,
    /// Set when the log has been read to its end.
    follower: Option<Follower>,
    /// Events that were read and are not sent yet, the next one last.
    ready: Vec<Event>,
    heartbeat: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl PromotedRun {
    /// Follows the log after its first `told` lines.
    pub(crate) fn new(
        threads: &Arc<ThreadCore>,
        key: &ThreadKey,
        run: &LiveRun,
        log: Arc<LiveLog>,
        told: u64,
    ) -> Self {
        let logs = &threads.followed_logs;
        let follower = Follower::from_live_log(logs, key.clone(), run.run_id.clone(), log, None);
        Self {
            threads: threads.clone(),
            next: Some(read(follower.after(told))),
            follower: None,
            ready: Vec::new(),
            heartbeat: None,
        }
    }

    pub(crate) fn with_heartbeat(self, heartbeat: Option<Duration>) -> Self {
        Self { heartbeat: heartbeat.map(|time| (time, Box::pin(sleep(time)))), ..self }
    }

    pub(crate) fn poll_progress(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut impl EventSink,
    ) -> Poll<Progress> {
        loop {
            if let Some(event) = self.ready.pop() {
                if let Some((time, timer)) = &mut self.heartbeat {
                    timer.as_mut().reset(Instant::now() + *time);
                }
                sink.emit(&event);
                return Poll::Ready(Progress::Moved);
            }
            let Some(next) = &mut self.next else { return Poll::Ready(Progress::Ended) };
            match next.poll_unpin(cx) {
                Poll::Pending => return self.poll_heartbeat(cx),
                Poll::Ready((follower, Ok(Some(chunk)))) => {
                    let events = chunk.events().map(|(_, line)| serde_json::from_str(line));
                    self.ready = events.filter_map(Result::ok).collect();
                    self.ready.reverse();
                    self.next = Some(read(follower));
                }
                Poll::Ready((follower, Ok(None))) => {
                    (self.next, self.follower) = (None, Some(follower));
                }
                Poll::Ready((_, Err(FollowError::ThreadDeleted))) => {
                    self.next = None;
                    sink.emit(&thread_deleted());
                    return Poll::Ready(Progress::Moved);
                }
                Poll::Ready((_, Err(error))) => {
                    tracing::warn!(?error, "cannot follow a promoted run to its end");
                    self.next = None;
                    return Poll::Ready(Progress::Broken);
                }
            }
        }
    }

    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Poll<Progress> {
        let Some((time, timer)) = &mut self.heartbeat else { return Poll::Pending };
        if timer.poll_unpin(cx).is_pending() {
            return Poll::Pending;
        }
        timer.as_mut().reset(Instant::now() + *time);
        Poll::Ready(Progress::Heartbeat)
    }

    /// Stores that the client has read the run to its end.
    pub(crate) fn delivered(&mut self) {
        let Some(follower) = self.follower.take().filter(|follower| !follower.set_delivered())
        else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let threads = self.threads.clone();
            runtime.spawn(async move {
                let (thread, run) = follower.numbers;
                threads.set_delivered(&follower.key, thread, run, true).await;
            });
        }
    }
}

fn read(mut follower: Follower) -> Next {
    async move {
        let next = follower.next().await;
        (follower, next)
    }
    .boxed()
}
