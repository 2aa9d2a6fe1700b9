//! The calls in flight of a session, to which the server's progress and questions belong.
//!
//! Progress names its call by a token. A question over HTTP arrives in the response to its call. On
//! other streams the protocol does not say which call a question belongs to: it belongs to the only
//! call in flight. With several calls it is not asked, because it could reach another run's user. A
//! server that has asked once on such a stream then gets its calls one at a time.
//!
//! The server may still work on a call that has timed out or was cancelled: many servers ignore the
//! cancellation, and a cancelled call needs no response. So such a call stays unfinished for a
//! while, and until then only calls of the same conversation get questions.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::Either;
use rmcp::model::{ElicitResult, ProgressNotificationParam, ProgressToken, RequestId};
use tokio::{
    sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc, oneshot},
    time::Instant,
};

use super::wanted::Wanted;
use agui_agent::Principal;
use agui_base::deadline::deadline;
use agui_protocol::ThreadId;

/// Further signals that a call has not read yet are dropped.
const MAX_WAITING_SIGNALS: usize = 16;

#[derive(Default)]
pub(super) struct CallsInFlight {
    /// A call that has ended and is not unfinished stays until the next one begins; its receiver is closed.
    calls: Mutex<HashMap<RequestId, CallLink>>,
    slots: RwLock<()>,
    asks_on_shared_streams: AtomicBool,
}

struct CallLink {
    progress_token: ProgressToken,
    signals: mpsc::Sender<CallSignal>,
    conversation: ConversationKey,
    is_finished: Arc<AtomicBool>,
    /// The time until which the server may work on the call.
    work_end: Instant,
}

/// The conversation that a call belongs to: its principal and its thread.
pub(super) type ConversationKey = (Option<Principal>, ThreadId);

/// The receiving end of a call. Dropping it ends the call, which stays unfinished unless [`finish`](Self::finish) was
/// called.
pub(super) struct StartedCall {
    pub(super) signals: mpsc::Receiver<CallSignal>,
    is_finished: Arc<AtomicBool>,
}

pub(super) enum CallSignal {
    Progress(ProgressNotificationParam),
    Question(Elicitation),
}

/// A question of the server to a person. Dropping it replies that the person has not decided.
pub(super) struct Elicitation {
    pub(super) message: String,
    pub(super) wanted: Wanted,
    pub(super) reply: oneshot::Sender<ElicitResult>,
}

impl CallsInFlight {
    /// Waits for other calls if the server has to get its calls one at a time. The caller holds the
    /// guard during a call.
    pub(super) async fn slot(&self) -> Either<RwLockWriteGuard<'_, ()>, RwLockReadGuard<'_, ()>> {
        if self.asks_on_shared_streams.load(Ordering::Relaxed) {
            Either::Left(self.slots.write().await)
        } else {
            Either::Right(self.slots.read().await)
        }
    }

    pub(super) async fn are_any_open(&self) -> bool {
        self.calls.lock().await.values().any(|call| !call.signals.is_closed())
    }

    /// Waits until no call is open.
    pub(super) async fn all_ended(&self) {
        loop {
            let calls = self.calls.lock().await;
            let open = calls.values().map(|call| &call.signals).find(|open| !open.is_closed());
            let Some(open) = open.cloned() else { return };
            drop(calls);
            open.closed().await;
        }
    }

    /// Registers the request that `send` makes. Signals of the server wait for the registration.
    /// A call takes at most `max_duration`; an unfinished one is remembered for as long again.
    pub(super) async fn begin<T, E>(
        &self,
        conversation: ConversationKey,
        max_duration: Duration,
        send: impl Future<Output = Result<(T, RequestId, ProgressToken), E>>,
    ) -> Result<(T, StartedCall), E> {
        let mut calls = self.calls.lock().await;
        let (sent, id, progress_token) = send.await?;
        let (signals, received) = mpsc::channel(MAX_WAITING_SIGNALS);
        let now = Instant::now();
        calls.retain(|_, call| !call.signals.is_closed() || call.is_unfinished(now));
        let is_finished = Arc::new(AtomicBool::new(false));
        let open = StartedCall { signals: received, is_finished: is_finished.clone() };
        let work_end = deadline(now, max_duration.saturating_mul(2));
        calls.insert(id, CallLink { progress_token, signals, conversation, is_finished, work_end });
        Ok((sent, open))
    }

    pub(super) async fn progress(&self, report: ProgressNotificationParam) {
        let calls = self.calls.lock().await;
        if let Some(call) = calls.values().find(|call| call.progress_token == report.progress_token)
        {
            let _ = call.signals.try_send(CallSignal::Progress(report));
        }
    }

    /// Passes a question to its call; `None` if the call is unknown.
    pub(super) async fn ask(
        &self,
        call: Option<&RequestId>,
        elicitation: Elicitation,
    ) -> Option<()> {
        let calls = self.calls.lock().await;
        let call = match call {
            Some(id) => calls.get(id)?,
            None => {
                self.asks_on_shared_streams.store(true, Ordering::Relaxed);
                let mut open = calls.values().filter(|call| !call.signals.is_closed());
                let only = open.next().filter(|_| open.next().is_none())?;
                let now = Instant::now();
                let is_of_another = |call: &CallLink| {
                    call.is_unfinished(now) && call.conversation != only.conversation
                };
                if calls.values().any(is_of_another) {
                    return None;
                }
                only
            }
        };
        call.signals.try_send(CallSignal::Question(elicitation)).ok()
    }
}

impl CallLink {
    /// Returns whether the call has ended, and the server may still work on it.
    fn is_unfinished(&self, now: Instant) -> bool {
        self.signals.is_closed() && !self.is_finished.load(Ordering::Acquire) && now < self.work_end
    }
}

impl StartedCall {
    /// Notes that the server has finished the call.
    pub(super) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use serde_json::Value;

    use super::*;

    fn id(number: i64) -> RequestId {
        NumberOrString::Number(number)
    }

    const MAX_DURATION: Duration = Duration::from_secs(60);

    async fn begin_in(calls: &CallsInFlight, number: i64, thread: &str) -> StartedCall {
        let sent = async { Ok::<_, ()>(((), id(number), ProgressToken(id(number)))) };
        let conversation = (None, thread.into());
        calls.begin(conversation, MAX_DURATION, sent).await.unwrap().1
    }

    async fn begin(calls: &CallsInFlight, number: i64) -> StartedCall {
        begin_in(calls, number, "t").await
    }

    async fn ask(calls: &CallsInFlight, call: Option<i64>) -> Option<()> {
        let (reply, _) = oneshot::channel();
        let elicitation =
            Elicitation { message: "?".into(), wanted: Wanted::Form(Value::Null), reply };
        calls.ask(call.map(id).as_ref(), elicitation).await
    }

    #[tokio::test]
    async fn progress_reaches_its_call_and_a_flood_is_dropped() {
        let calls = CallsInFlight::default();
        let (mut first, mut second) = (begin(&calls, 1).await, begin(&calls, 2).await);
        for n in 0..1000 {
            calls
                .progress(ProgressNotificationParam::new(ProgressToken(id(2)), f64::from(n)))
                .await;
        }
        assert!(first.signals.try_recv().is_err());
        let mut received = 0;
        while second.signals.try_recv().is_ok() {
            received += 1;
        }
        assert_eq!(received, MAX_WAITING_SIGNALS);
    }

    #[tokio::test]
    async fn a_question_without_a_call_belongs_to_the_only_one() {
        let calls = CallsInFlight::default();
        assert_eq!(ask(&calls, None).await, None);
        let mut first = begin(&calls, 1).await;
        assert_eq!(ask(&calls, None).await, Some(()));
        assert!(matches!(first.signals.try_recv(), Ok(CallSignal::Question(_))));
        let mut second = begin(&calls, 2).await;
        assert_eq!(ask(&calls, None).await, None, "it could be either");
        assert_eq!(ask(&calls, Some(2)).await, Some(()));
        assert!(first.signals.try_recv().is_err() && second.signals.try_recv().is_ok());
        drop(second);
        assert_eq!(ask(&calls, None).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_the_server_may_still_work_on_keeps_questions_from_other_conversations() {
        let calls = CallsInFlight::default();
        // The first call has timed out, or was cancelled.
        drop(begin_in(&calls, 1, "a").await);
        let mut of_another = begin_in(&calls, 2, "b").await;
        assert_eq!(ask(&calls, None).await, None, "it could be of the first call");
        assert!(of_another.signals.try_recv().is_err());
        assert_eq!(ask(&calls, Some(2)).await, Some(()));
        of_another.finish();
        drop(of_another);
        let same = begin_in(&calls, 3, "a").await;
        assert_eq!(ask(&calls, None).await, Some(()));
        same.finish();
        drop(same);
        tokio::time::advance(2 * MAX_DURATION).await;
        let _late = begin_in(&calls, 4, "b").await;
        assert_eq!(ask(&calls, None).await, Some(()));
        assert_eq!(calls.calls.lock().await.len(), 1, "ended calls are forgotten");
    }

    #[tokio::test]
    async fn a_call_that_is_finished_keeps_no_question_from_others() {
        let calls = CallsInFlight::default();
        begin_in(&calls, 1, "a").await.finish();
        let _other = begin_in(&calls, 2, "b").await;
        assert_eq!(ask(&calls, None).await, Some(()));
    }

    #[tokio::test]
    async fn a_server_that_asks_on_a_shared_stream_gets_its_calls_one_at_a_time() {
        use futures::FutureExt as _;
        let calls = CallsInFlight::default();
        let both = (calls.slot().await, calls.slot().await);
        drop(both);
        ask(&calls, None).await;
        let alone = calls.slot().await;
        assert!(calls.slot().now_or_never().is_none());
        drop(alone);
        calls.slot().await;
    }
}
