use super::*;
use agui_protocol::UserMessage;
use agui_store::{
    MessageNode, MessageNumber, MessageOrigin, RunNumber, RunRecord, Thread, ThreadKey,
    ThreadNumber,
};

/// Returns a thread in which each run answered one message and left a state of `state_bytes` bytes. The runs are numbered from 1, and
/// the view has the newest `read` ones.
fn view(runs: i64, read: usize, state_bytes: usize) -> ThreadView {
    let state =
        |run: i64| (StateNumber(run), json!({ "run": run, "text": "x".repeat(state_bytes) }));
    let mut view = ThreadView::new(Thread::new(
        ThreadNumber(1),
        ThreadKey::default(),
        RunId::from(format!("r{runs}")),
    ));
    for run in 1..=runs {
        let user = Message::User(UserMessage::new(format!("u{run}"), "hello"));
        let assistant = Message::Assistant(AssistantMessage::new(format!("a{run}")));
        let of_run = MessageOrigin::Run { run: RunNumber(run), delivered: true };
        for (message, origin) in [(user, MessageOrigin::Client), (assistant, of_run)] {
            let parent = view.nodes.len() as i64;
            view.nodes.push(MessageNode {
                number: MessageNumber(parent + 1),
                parent: MessageNumber(parent),
                origin,
                message,
                feedback: None,
            });
        }
        let record = RunRecord::new(
            RunNumber(run),
            ThreadNumber(1),
            RunId::from(format!("r{run}")),
            "agent".to_owned(),
        );
        view.runs.insert(0, RunRecord { state: Some(StateNumber(run)), ..record });
        view.run_states.push(state(run));
    }
    view.runs.truncate(read);
    (view.thread.head, view.thread.state) =
        (MessageNumber(view.nodes.len() as i64), Some(state(runs)));
    view
}

/// Returns one letter an event: the run that starts, messages, state, completed message, end.
fn shape(restated: &RestatedThread) -> String {
    let letter = |event: &Event| match event {
        Event::RunStarted(started) => started.run_id.to_string(),
        Event::MessagesSnapshot(snapshot) => format!("M{}", snapshot.messages.len()),
        Event::StateSnapshot(snapshot) => format!("S{}", snapshot.snapshot["run"]),
        Event::TextMessageChunk(chunk) => chunk.message_id.clone().unwrap_or_default().to_string(),
        Event::RunFinished(_) => "|".to_owned(),
        event => format!("{event:?}"),
    };
    restated.events.iter().map(letter).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_run_completes_its_messages_and_has_its_state() {
    assert_eq!(shape(&restate(&view(3, 9, 1), None)), "r1 M6 S1 | r2 u2 a2 S2 | r3 u3 a3 S3");
    assert_eq!(shape(&restate(&view(1, 9, 1), None)), "r1 M2 S1");
}

#[test]
fn runs_that_were_not_read_are_restated_with_the_oldest_one() {
    assert_eq!(shape(&restate(&view(3, 2, 1), None)), "r2 M6 S2 | r3 u3 a3 S3");
    assert_eq!(shape(&restate(&view(3, 1, 1), None)), "r3 M6 S3");
}

#[test]
fn the_states_beside_the_current_one_are_bounded() {
    let size = usize::try_from(MAX_STATE_BYTES).unwrap() / 2 - 100;
    assert_eq!(shape(&restate(&view(4, 9, size), None)), "r2 M8 S2 | r3 u3 a3 S3 | r4 u4 a4 S4");
    assert_eq!(shape(&restate(&view(2, 9, 3 * size), None)), "r2 M4 S2");
}

#[test]
fn a_state_that_did_not_change_is_sent_once() {
    let mut same = view(3, 9, 1);
    same.runs.iter_mut().for_each(|run| run.state = Some(StateNumber(3)));
    assert_eq!(shape(&restate(&same, None)), "r1 M6 S3 | r2 u2 a2 | r3 u3 a3");
}

#[test]
fn what_no_run_has_answered_is_of_the_newest_run() {
    let mut failed = view(2, 9, 1);
    failed.nodes.pop();
    (failed.thread.head, failed.thread.run_id) = (MessageNumber(3), "r3".into());
    assert_eq!(shape(&restate(&failed, None)), "r1 M3 S1 | r3 u2 S2");
    assert_eq!(shape(&restate(&view(1, 9, 1), Some(&"r2".into()))), "r1 M2 S1 | r2");
    let empty = ThreadView::new(Thread::new(ThreadNumber(1), ThreadKey::default(), "r".into()));
    assert_eq!(shape(&restate(&empty, None)), "r M0 Snull");
}

#[test]
fn an_activity_of_a_later_run_is_created_in_its_place() {
    let mut drawn = view(2, 9, 1);
    let content = json!({ "steps": 3 }).as_object().cloned().unwrap_or_default();
    drawn.nodes[3].message = Message::Activity(ActivityMessage::new("a2", "plan", content.clone()));
    let restated = restate(&drawn, None);
    let Event::MessagesSnapshot(snapshot) = &restated.events[1] else {
        panic!("{:?}", restated.events)
    };
    assert_eq!(snapshot.messages[3], Message::Assistant(AssistantMessage::new("a2")));
    let created = Event::from(ActivitySnapshot::new("a2", "plan", content));
    assert!(restated.events.contains(&created), "{:?}", restated.events);
}
