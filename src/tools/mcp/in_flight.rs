//! The calls in flight on a connection, to which the server's progress and questions belong.
//!
//! Progress names its call by a token. A question over HTTP arrives in the response to its call. On other streams the
//! protocol does not say which call a question belongs to: it is the only one in flight, or else the question is not
//! asked, because it could reach another run's user. A server that has asked once on such a stream gets its calls one
//! at a time from then on.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use serde_json::Value;
use tokio::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc, oneshot};

/// Signals of a server that sends more than a call reads are left out.
const MAX_WAITING_SIGNALS: usize = 16;

#[derive(Default)]
pub(super) struct CallsInFlight {
    /// A call that has ended stays until the next one begins; its receiver is closed.
    calls: Mutex<HashMap<RequestId, CallLink>>,
    turns: RwLock<()>,
    asks_on_shared_streams: AtomicBool,
}

struct CallLink {
    progress_token: ProgressToken,
    signals: mpsc::Sender<CallSignal>,
}

pub(super) enum CallSignal {
    Progress(CallProgress),
    Question(Elicitation),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallProgress {
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// A question of the server to a person. Dropping it answers that the person has not decided.
pub(super) struct Elicitation {
    pub(super) message: String,
    /// A JSON Schema of the answer, which is an object.
    pub(super) form: Value,
    pub(super) answer: oneshot::Sender<ElicitationAnswer>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ElicitationAnswer {
    Accepted(Value),
    Declined,
}

/// Held during a call.
pub(super) enum CallTurn<'c> {
    Shared(#[expect(dead_code, reason = "a lock")] RwLockReadGuard<'c, ()>),
    Alone(#[expect(dead_code, reason = "a lock")] RwLockWriteGuard<'c, ()>),
}

impl CallsInFlight {
    /// Waits for other calls if the server has to get its calls one at a time.
    pub(super) async fn turn(&self) -> CallTurn<'_> {
        match self.asks_on_shared_streams.load(Ordering::Relaxed) {
            true => CallTurn::Alone(self.turns.write().await),
            false => CallTurn::Shared(self.turns.read().await),
        }
    }

    pub(super) async fn are_any_open(&self) -> bool {
        self.calls.lock().await.values().any(|call| !call.signals.is_closed())
    }

    /// Registers the request that `send` makes. The server cannot be faster: its signals wait for the registration.
    pub(super) async fn begin<T, E>(
        &self,
        send: impl Future<Output = Result<(T, RequestId, ProgressToken), E>>,
    ) -> Result<(T, mpsc::Receiver<CallSignal>), E> {
        let mut calls = self.calls.lock().await;
        let (sent, id, progress_token) = send.await?;
        let (signals, received) = mpsc::channel(MAX_WAITING_SIGNALS);
        calls.retain(|_, call| !call.signals.is_closed());
        calls.insert(id, CallLink { progress_token, signals });
        Ok((sent, received))
    }

    pub(super) async fn progress(&self, params: ProgressNotificationParam) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = params;
        let calls = self.calls.lock().await;
        if let Some(call) = calls.values().find(|call| call.progress_token == progress_token) {
            let _ = call.signals.try_send(CallSignal::Progress(CallProgress { progress, total, message }));
        }
    }

    /// Passes a question to its call; `None` if the call is unknown.
    pub(super) async fn ask(&self, call: Option<&RequestId>, elicitation: Elicitation) -> Option<()> {
        let calls = self.calls.lock().await;
        let call = match call {
            Some(id) => calls.get(id)?,
            None => {
                self.asks_on_shared_streams.store(true, Ordering::Relaxed);
                let mut open = calls.values().filter(|call| !call.signals.is_closed());
                open.next().filter(|_| open.next().is_none())?
            }
        };
        call.signals.try_send(CallSignal::Question(elicitation)).ok()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    fn id(number: i64) -> RequestId {
        NumberOrString::Number(number)
    }

    async fn begin(calls: &CallsInFlight, number: i64) -> mpsc::Receiver<CallSignal> {
        let sent = async { Ok::<_, ()>(((), id(number), ProgressToken(id(number)))) };
        calls.begin(sent).await.unwrap().1
    }

    async fn ask(calls: &CallsInFlight, call: Option<i64>) -> Option<()> {
        let (answer, _) = oneshot::channel();
        let elicitation = Elicitation { message: "?".into(), form: Value::Null, answer };
        calls.ask(call.map(id).as_ref(), elicitation).await
    }

    #[tokio::test]
    async fn progress_reaches_its_call_and_a_flood_is_dropped() {
        let calls = CallsInFlight::default();
        let (mut first, mut second) = (begin(&calls, 1).await, begin(&calls, 2).await);
        for n in 0..1000 {
            calls.progress(ProgressNotificationParam::new(ProgressToken(id(2)), f64::from(n))).await;
        }
        assert!(first.try_recv().is_err());
        let mut received = 0;
        while second.try_recv().is_ok() {
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
        assert!(matches!(first.try_recv(), Ok(CallSignal::Question(_))));
        let mut second = begin(&calls, 2).await;
        assert_eq!(ask(&calls, None).await, None, "it could be either");
        assert_eq!(ask(&calls, Some(2)).await, Some(()));
        assert!(first.try_recv().is_err() && second.try_recv().is_ok());
        drop(second);
        assert_eq!(ask(&calls, None).await, Some(()));
    }

    #[tokio::test]
    async fn a_server_that_asks_on_a_shared_stream_gets_its_calls_one_at_a_time() {
        use futures::FutureExt as _;
        let calls = CallsInFlight::default();
        let both = (calls.turn().await, calls.turn().await);
        drop(both);
        ask(&calls, None).await;
        let alone = calls.turn().await;
        assert!(calls.turn().now_or_never().is_none());
        drop(alone);
        calls.turn().await;
    }
}
