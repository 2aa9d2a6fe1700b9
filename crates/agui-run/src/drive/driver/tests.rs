use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::{
    limits::start_error::StartError,
    request::{RunRequest, StartedRun},
    runs::{Runs, RunsBuilder},
};
use agui_agent::{
    AgentError, EventStream, emit,
    emit::TextMessage,
    event_stream, events,
    host::{Journal, RunJournal},
};
use agui_protocol::{Interrupt, event::RunError};

fn runs(agent: impl Agent) -> Arc<Runs> {
    limited(agent, RunLimits::default())
}

fn limited(agent: impl Agent, limits: RunLimits) -> Arc<Runs> {
    RunsBuilder {
        limits,
        max_concurrent: 2,
        begin_drawing: Some(agui_agent::surfaces::begin),
        ..Default::default()
    }
    .agent("a", Arc::new(agent))
    .build()
}

fn start(runs: &Arc<Runs>) -> Run {
    start_with(runs, RunAgentInput::new("t", "r", vec![]))
}

fn start_with(runs: &Arc<Runs>, input: RunAgentInput) -> Run {
    let request = RunRequest::new(runs.reserve(None).unwrap(), runs.agent(None).unwrap(), input);
    match runs.start_beside_thread(request).unwrap() {
        StartedRun::Unstored(run) => *run,
        _ => panic!("the run is stored"),
    }
}

async fn play(run: Run) -> Vec<Value> {
    run.into_events().map(|event| serde_json::to_value(event).unwrap()).collect().await
}

async fn after_the_start(agent: impl Agent) -> Vec<Value> {
    let mut events = play(start(&runs(agent))).await;
    let started =
        json!({ "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.1" });
    assert_eq!(events.remove(0), started);
    events
}

fn finished(outcome: Value) -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome })
}

const ENDED: [&str; 2] = ["TEXT_MESSAGE_END", "RUN_ERROR"];

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn silent() -> (impl Agent, Arc<AtomicBool>) {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = stopped.clone();
    let agent = move |_: RunAgentInput, _: RunContext| {
        let guard = Dropped(flag.clone());
        event_stream(async_stream::try_stream! {
            let _guard = guard;
            yield TextMessage::with_id("m").start();
            std::future::pending::<()>().await;
        })
    };
    (agent, stopped)
}

#[tokio::test]
async fn a_stream_that_ends_is_a_success() {
    let agent = |_: RunAgentInput, _: RunContext| events([]);
    assert_eq!(after_the_start(agent).await, [finished(json!({ "type": "success" }))]);
}

#[tokio::test]
async fn run_started_is_sent_before_the_agent_is_called() {
    let called = Arc::new(AtomicBool::new(false));
    let flag = called.clone();
    let mut run = start(&runs(move |_: RunAgentInput, _: RunContext| {
        flag.store(true, Ordering::SeqCst);
        events([])
    }));
    let mut sink = Vec::new();
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert_eq!(run.poll_progress(&mut cx, &mut sink), Poll::Ready(Progress::Moved));
    assert!(matches!(&sink[..], [Event::RunStarted(_)]));
    assert!(!called.load(Ordering::SeqCst));
    assert_eq!(run.poll_progress(&mut cx, &mut sink), Poll::Ready(Progress::Moved));
    assert!(called.load(Ordering::SeqCst));
    assert_eq!(run.poll_progress(&mut cx, &mut sink), Poll::Ready(Progress::Ended));
    assert_eq!(run.poll_progress(&mut cx, &mut sink), Poll::Ready(Progress::Ended));
    assert_eq!(sink.len(), 2);
}

#[tokio::test]
async fn an_error_closes_open_items_and_ends_the_run() {
    let agent = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            yield TextMessage::with_id("m").start();
            Err(AgentError::new("no_tea", "There is no tea").caused_by("the kettle is at 10.0.0.1"))?;
        })
    };
    let events = after_the_start(agent).await;
    assert_eq!(types(&events[1..]), ENDED);
    assert_eq!(
        events[2],
        json!({ "type": "RUN_ERROR", "message": "There is no tea", "code": "no_tea" })
    );
}

#[tokio::test]
async fn a_panic_is_an_error_without_its_message() {
    let mid_stream = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::stream! {
            yield Ok(TextMessage::with_id("m").start());
            panic!("secret");
        })
    };
    let error = json!({ "type": "RUN_ERROR", "message": "the agent failed unexpectedly", "code": "agent_panic" });
    let events = after_the_start(mid_stream).await;
    assert_eq!((types(&events[1..]), &events[2]), (ENDED.to_vec(), &error));
    let at_once = |_: RunAgentInput, _: RunContext| -> EventStream { panic!("secret") };
    assert_eq!(after_the_start(at_once).await, [error]);
}

#[tokio::test]
async fn a_destructor_that_panics_does_not_suppress_the_terminal_event() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("boom");
        }
    }
    let agent = |_: RunAgentInput, _: RunContext| {
        let bomb = Bomb;
        event_stream(async_stream::try_stream! {
            let _bomb = &bomb;
            Err(AgentError::new("x", "y"))?;
            yield TextMessage::with_id("m").start();
        })
    };
    assert_eq!(types(&after_the_start(agent).await), ["RUN_ERROR"]);
}

#[tokio::test]
async fn a_violation_ends_the_run_and_stops_the_agent() {
    let agent = |_: RunAgentInput, _: RunContext| {
        events([
            TextMessage::with_id("m").start(),
            TextMessage::with_id("n").delta("x"),
            TextMessage::with_id("m").end(),
        ])
    };
    let events = after_the_start(agent).await;
    assert_eq!(types(&events[1..]), ENDED);
    assert_eq!(events[2]["code"], "protocol_violation");
    assert_eq!(events[2]["message"], "TEXT_MESSAGE_CONTENT: message \"n\" is not open");
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_cancels_the_run() {
    let (agent, stopped) = silent();
    let limits = RunLimits { max: Some(Duration::from_secs(600)), ..RunLimits::default() };
    let started = Instant::now();
    let events = play(start(&limited(agent, limits))).await;
    assert_eq!(started.elapsed().as_secs(), 600);
    assert_eq!(types(&events[2..]), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert_eq!(events[3], finished(json!({ "type": "cancelled" })));
    assert!(stopped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn the_time_limit_holds_for_an_agent_that_never_pauses() {
    let agent = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            let message = TextMessage::with_id("m");
            yield message.start();
            loop {
                yield message.delta("x");
            }
        })
    };
    let limits = RunLimits { max: Some(Duration::from_millis(20)), ..RunLimits::default() };
    let events = play(start(&limited(agent, limits))).await;
    assert_eq!(events.last(), Some(&finished(json!({ "type": "cancelled" }))));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_silent_for_too_long_fails() {
    let agent = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            let message = TextMessage::with_id("m");
            yield message.start();
            // The second event comes at the time at which the timer fires.
            for pause in [100, 120, 100] {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                yield message.delta("x");
            }
            std::future::pending::<()>().await;
        })
    };
    let limits = RunLimits { idle: Some(Duration::from_secs(120)), ..RunLimits::default() };
    let started = Instant::now();
    let playing = play(start(&limited(agent, limits)));
    let events = tokio::time::timeout(Duration::from_secs(1_000), playing)
        .await
        .expect("the silence is noticed");
    assert_eq!(started.elapsed().as_secs(), 320 + 120);
    assert_eq!(types(&events[5..]), ENDED);
    assert_eq!(events[6]["code"], "agent_timeout");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_sent_during_silence_and_do_not_count_as_events() {
    let (agent, _) = silent();
    let limits = RunLimits {
        heartbeat: Some(Duration::from_secs(15)),
        idle: Some(Duration::from_secs(50)),
        ..RunLimits::default()
    };
    let mut run = start(&limited(agent, limits));
    let (started, mut beats, mut sink) = (Instant::now(), Vec::new(), Vec::new());
    while let progress = std::future::poll_fn(|cx| run.poll_progress(cx, &mut sink)).await
        && progress != Progress::Ended
    {
        if progress == Progress::Heartbeat {
            beats.push(started.elapsed().as_secs());
        }
    }
    assert_eq!(beats, [15, 30, 45]);
    assert_eq!(started.elapsed().as_secs(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stops_its_agent_and_ends_as_cancelled() {
    let (agent, stopped) = silent();
    let runs = runs(agent);
    let run = start(&runs);
    let control = run.control();
    let play = tokio::spawn(play(run));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!stopped.load(Ordering::SeqCst));
    control.cancel();
    let events = play.await.unwrap();
    assert!(stopped.load(Ordering::SeqCst));
    assert_eq!(types(&events[2..]), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert_eq!(events[3]["outcome"]["type"], "cancelled");
    control.cancel();
    assert_eq!(runs.live_runs(), 0);
}

/// The waker of the first task must not be used after the move.
#[tokio::test(start_paused = true)]
async fn a_run_that_moves_to_another_task_wakes_that_task() {
    let limits = RunLimits { max: Some(Duration::from_secs(600)), ..RunLimits::default() };
    for cancels in [true, false] {
        let (agent, stopped) = silent();
        let mut run = start(&limited(agent, limits));
        let (control, started) = (run.control(), Instant::now());
        let begun = tokio::spawn(async move {
            std::future::poll_fn(|cx| {
                while run.poll_progress(cx, &mut Vec::new()).is_ready() {}
                Poll::Ready(())
            })
            .await;
            run
        });
        let there = tokio::spawn(play(begun.await.unwrap()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        if cancels {
            control.cancel();
        }
        let events = there.await.unwrap();
        assert_eq!(started.elapsed().as_secs(), if cancels { 1 } else { 600 });
        assert_eq!(types(&events), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
        assert!(stopped.load(Ordering::SeqCst));
    }
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_runs_and_then_stops_each() {
    let (agent, stopped) = silent();
    let runs = runs(agent);
    let play = tokio::spawn(play(start(&runs)));
    tokio::task::yield_now().await;
    let started = Instant::now();
    runs.drain(Duration::from_secs(10)).await;
    assert_eq!(started.elapsed().as_secs(), 10);
    assert!(stopped.load(Ordering::SeqCst));
    let events = play.await.unwrap();
    assert_eq!(types(&events[2..]), ENDED);
    assert_eq!(events[3]["code"], "server_shutdown");
    assert!(matches!(runs.reserve(None), Err(StartError::ShuttingDown)));
    assert!(!runs.is_ready());
}

/// The journal of a run that another server continues, or not.
struct KeptJournal(bool);

impl Journal for KeptJournal {
    fn mark(&self, _: Value) {}

    fn written(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
    fn is_kept(&self) -> bool {
        self.0
    }

    fn is_left(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_run_that_another_server_continues_does_not_end_by_a_shutdown() {
    for is_kept in [true, false] {
        let runs = runs(silent().0);
        let mut run = start(&runs);
        let log = Arc::new(KeptJournal(is_kept));
        run.cx = run.cx.clone().with_journal(Some(RunJournal { log, continuation: None }));
        run.control().stop(Stop::Shutdown);
        let played = play(run).await;
        let expected: &[_] = if is_kept { &["RUN_STARTED"] } else { &["RUN_STARTED", "RUN_ERROR"] };
        assert_eq!(types(&played), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn drain_returns_when_all_runs_have_ended() {
    let agent = |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            tokio::time::sleep(Duration::from_secs(3)).await;
            yield TextMessage::with_id("m").start();
        })
    };
    let runs = runs(agent);
    let play = tokio::spawn(play(start(&runs)));
    tokio::task::yield_now().await;
    let started = Instant::now();
    runs.drain(Duration::from_secs(10)).await;
    assert_eq!(started.elapsed().as_secs(), 3);
    assert_eq!(play.await.unwrap().last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test]
async fn a_dropped_run_stops_its_agent_and_releases_its_permit() {
    let (agent, stopped) = silent();
    let runs = runs(agent);
    let (first, second) = (start(&runs), start(&runs));
    assert!(matches!(runs.reserve(None), Err(StartError::TooManyRuns)));
    assert_eq!(runs.live_runs(), 2);
    let mut events = first.into_events().boxed();
    events.next().await;
    events.next().await;
    assert!(!stopped.load(Ordering::SeqCst));
    drop(events);
    assert!(stopped.load(Ordering::SeqCst));
    assert_eq!(runs.live_runs(), 1);
    drop(runs.reserve(None).unwrap());
    drop(second);
}

#[tokio::test]
async fn usage_is_summed_by_provider_and_model_also_when_the_run_fails() {
    let usage = |model: &str, input| TokenUsage {
        model: Some(model.to_owned()),
        input_tokens: Some(input),
        ..TokenUsage::default()
    };
    let agent = move |_: RunAgentInput, cx: RunContext| {
        cx.add_usage(usage("m", 1));
        cx.add_usage(usage("n", 5));
        let mut error = RunError::new("x", "y");
        error.usage = vec![usage("m", 2)];
        events([error.into()])
    };
    let events = after_the_start(agent).await;
    assert_eq!(
        events[0]["usage"],
        json!([{ "model": "m", "inputTokens": 3 }, { "model": "n", "inputTokens": 5 }])
    );
}

#[tokio::test]
async fn a_terminal_event_of_the_agent_ends_the_run() {
    let agent = |_: RunAgentInput, cx: RunContext| {
        events([
            TextMessage::with_id("m").start(),
            emit::finish(&cx, json!({ "n": 1 })),
            TextMessage::with_id("n").start(),
        ])
    };
    let events = after_the_start(agent).await;
    assert_eq!(types(&events), ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert_eq!(
        (&events[2]["result"], &events[2]["outcome"]),
        (&json!({ "n": 1 }), &json!({ "type": "success" }))
    );
}

#[tokio::test]
async fn an_agent_may_end_with_interrupts_but_not_with_an_empty_list() {
    let ask = |_: RunAgentInput, cx: RunContext| {
        events([emit::interrupt(&cx, vec![Interrupt::new("approval")])])
    };
    let asked = after_the_start(ask).await;
    assert_eq!(asked[0]["outcome"]["interrupts"][0]["reason"], "approval");
    let nothing = |_: RunAgentInput, cx: RunContext| events([emit::interrupt(&cx, vec![])]);
    assert_eq!(after_the_start(nothing).await[0]["code"], "protocol_violation");
}

#[tokio::test]
async fn run_started_of_an_agent_is_ignored() {
    let agent = |_: RunAgentInput, _: RunContext| {
        events([RunStarted::new("other".into(), "x".into()).into()])
    };
    assert_eq!(types(&after_the_start(agent).await), ["RUN_FINISHED"]);
}

#[tokio::test]
async fn run_started_names_the_parent_run() {
    let runs = runs(|_: RunAgentInput, _: RunContext| events([]));
    let mut input = RunAgentInput::new("t", "r", vec![]);
    input.parent_run_id = Some("p".into());
    assert_eq!(play(start_with(&runs, input)).await[0]["parentRunId"], "p");
}

/// Renders half a surface and half of a page's HTML, then does what it is asked to.
fn draws_half(input: RunAgentInput, _: RunContext) -> EventStream {
    let half = |tool: &str, arguments: &str| {
        let call = emit::ToolCallEvents::with_id(tool, tool);
        vec![call.start(), call.delta(arguments)]
    };
    let components =
        r#"{"surfaceId":"s","components":[{"id":"root","component":"Text","text":"x"}],"data":{"#;
    let (painted, begun) =
        (half("render_a2ui", components), half("generateSandboxedUi", r#"{"html":"<p>"#));
    let (text, second) = (
        input.last_user_text().unwrap_or_default().into_owned(),
        emit::ToolCallEvents::with_id("second", "render_a2ui"),
    );
    let drawn = stream::iter(
        [painted, begun, vec![second.start(), second.delta("{")]].concat().into_iter().map(Ok),
    );
    let then = stream::poll_fn(move |_| match &*text {
        "panic" => panic!("it was asked to"),
        "fail" => Poll::Ready(Some(Err(AgentError::new("failed", "it was asked to")))),
        _ => Poll::Pending,
    });
    event_stream(drawn.chain(then))
}

#[tokio::test(start_paused = true)]
async fn what_is_drawn_in_part_has_failed_when_its_run_is_cancelled_fails_or_panics() {
    for text in ["panic", "fail", "stay silent"] {
        let mut input = RunAgentInput::new("t", "r", vec![agui_protocol::Message::user("m", text)]);
        input.forwarded_props = Some(json!({ "a2uiCatalogAvailable": true }));
        let tool = json!([{ "name": "generateSandboxedUi", "description": "", "parameters": {} }]);
        input.tools = serde_json::from_value(tool).unwrap();
        let limits = RunLimits { max: Some(Duration::from_secs(9)), ..RunLimits::default() };
        let events = play(start_with(&limited(draws_half, limits), input)).await;
        let last = |id: &str| events.iter().rfind(|event| event["messageId"] == id).unwrap();
        assert_eq!(last("a2ui-surface-second")["content"]["status"], "failed", "{text}");
        assert!(
            last("a2ui-surface-render_a2ui")["content"]["a2ui_operations"].is_array(),
            "{text}"
        );
        let ended = json!([{ "op": "add", "path": "/generating", "value": false }]);
        assert_eq!(last("generateSandboxedUi-activity")["patch"], ended, "{text}");
        let ending = if text == "stay silent" { "RUN_FINISHED" } else { "RUN_ERROR" };
        assert_eq!(types(&events).last(), Some(&ending));
    }
}
