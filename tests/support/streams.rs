//! Streams that agents might send, sensible or not, and what the server makes of them.
//!
//! Identifiers come from pools so small that they collide all the time, within a kind and between kinds.

mod dice;
mod legal;
mod nonsense;

use std::{fmt, sync::Arc};

use agui_server::{
    agent::{AgentError, EventStream, RunContext},
    protocol::{Event, RunAgentInput},
    run::Run,
};
use futures::{StreamExt as _, stream};
use proptest::{collection::vec, prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use dice::Dice;
use legal::Walk;

/// What an agent is asked and how it answers.
#[derive(Clone)]
pub struct Script {
    pub input: RunAgentInput,
    pub events: Vec<Event>,
    pub ending: Ending,
}

/// A failing script is best read as what goes over the wire.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = serde_json::to_string(&self.input).unwrap();
        write!(f, "\ninput {input}\n{}\nending {:?}", lines(&self.events), self.ending)
    }
}

/// Events as JSON, one a line.
pub fn lines(events: &[Event]) -> String {
    events.iter().map(|event| serde_json::to_string(event).unwrap()).collect::<Vec<_>>().join("\n")
}

/// What comes after an agent's last event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    Quiet,
    Fails,
    Panics,
}

/// The numbers that decide about each step of a stream. One list a step lets proptest leave out steps.
fn steps(most: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
    vec(vec(any::<u32>(), 24), 0..most)
}

/// What clients ask.
pub fn input() -> impl Strategy<Value = RunAgentInput> {
    vec(any::<u32>(), 48).prop_map(|asked| nonsense::input(&mut Dice::new(&asked)))
}

/// Mostly nonsense: any events in any order, the run's own among them.
pub fn nonsense() -> impl Strategy<Value = Script> {
    (vec(any::<u32>(), 48), steps(40)).prop_map(|(asked, steps)| {
        let mut dice = Dice::new(&asked);
        let input = nonsense::input(&mut dice);
        let events = steps.iter().map(|numbers| nonsense::event(&mut Dice::new(numbers))).collect();
        Script { input, events, ending: ending(&mut dice) }
    })
}

/// Legal streams without a run's own events, every item closed.
pub fn legal() -> impl Strategy<Value = Script> {
    (vec(any::<u32>(), 48), steps(40)).prop_map(|(asked, steps)| {
        let input = nonsense::input(&mut Dice::new(&asked));
        let mut walk = Walk::new(&input);
        steps.iter().for_each(|numbers| walk.step(&mut Dice::new(numbers)));
        let events = walk.finish();
        Script { input, events, ending: Ending::Quiet }
    })
}

/// Legal streams that a few accidents happened to, so that they go wrong late and in a rich state.
pub fn mostly_legal() -> impl Strategy<Value = Script> {
    (legal(), steps(4), vec(any::<u32>(), 8)).prop_map(|(mut script, accidents, end)| {
        for numbers in &accidents {
            accident(&mut script.events, &mut Dice::new(numbers));
        }
        let mut dice = Dice::new(&end);
        if dice.chance(3) {
            // Items stay open, as when a model is cut off.
            script.events.truncate(dice.below(script.events.len() + 1));
        }
        script.ending = ending(&mut dice);
        script
    })
}

/// Any of these.
pub fn script() -> impl Strategy<Value = Script> {
    prop_oneof![1 => nonsense(), 1 => legal(), 2 => mostly_legal()]
}

/// The same scripts every time.
pub fn seeded(count: usize) -> Vec<Script> {
    let mut runner = TestRunner::deterministic();
    let strategy = script();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn ending(dice: &mut Dice<'_>) -> Ending {
    match dice.below(8) {
        6 => Ending::Fails,
        7 => Ending::Panics,
        _ => Ending::Quiet,
    }
}

fn accident(events: &mut Vec<Event>, dice: &mut Dice<'_>) {
    let at = dice.below(events.len() + 1);
    let hit = events.get(at).cloned();
    match (dice.below(6), hit) {
        (1, Some(_)) => drop(events.remove(at)),
        (2, Some(event)) => events.insert(at, event),
        (3, Some(_)) => {
            let other = dice.below(events.len());
            events.swap(at, other);
        }
        // The same event in another's name, or again and late.
        (4, Some(event)) => events[at] = event.attributed_to(dice.pick(&[None, Some("s1"), Some("s")]).map(Into::into)),
        (5, Some(event)) => events.push(event),
        _ => events.insert(at, nonsense::event(dice)),
    }
}

/// Everything that leaves the run in which an agent plays the script.
pub fn play(script: &Script) -> Vec<Event> {
    let (events, ending) = (script.events.clone(), script.ending);
    let agent = move |_: RunAgentInput, _: RunContext| -> EventStream {
        let end = stream::once(async move {
            match ending {
                Ending::Quiet => None,
                Ending::Fails => Some(Err(AgentError::new("out_of_luck", "as the script says"))),
                Ending::Panics => panic!("as the script says"),
            }
        });
        stream::iter(events.clone().into_iter().map(Ok)).chain(end.filter_map(std::future::ready)).boxed()
    };
    let run = Run::alone(Arc::new(agent), script.input.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(run.into_events().collect())
}
