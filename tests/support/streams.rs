//! Generators of agents' streams, legal and illegal, and the streams that the server makes of them.
//!
//! Ids come from small pools, so that they often collide within a kind of item and between kinds.

mod dice;
mod legal;
mod nonsense;

use std::{fmt, sync::Arc};

use agui_run::Run;
use agui_server::{
    agent::{AgentError, EventStream, RunContext},
    protocol::{Event, RunAgentInput},
};
use futures::{StreamExt as _, stream};
use proptest::{collection::vec, prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use dice::Dice;
use legal::Walk;

/// The input of a run, and the events that the agent sends.
#[derive(Clone)]
pub struct Script {
    pub input: RunAgentInput,
    pub events: Vec<Event>,
    pub ending: Ending,
}

/// Shows input and events as JSON.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = serde_json::to_string(&self.input).unwrap();
        write!(f, "\ninput {input}\n{}\nending {:?}", lines(&self.events), self.ending)
    }
}

/// Returns the events as JSON, one on each line.
pub fn lines(events: &[Event]) -> String {
    events.iter().map(|event| serde_json::to_string(event).unwrap()).collect::<Vec<_>>().join("\n")
}

/// The end of an agent's stream, after its last event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    Quiet,
    Fails,
    Panics,
}

/// The numbers that decide each step of a stream. Each step has its own list, so that proptest can remove steps.
fn steps(max: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
    vec(vec(any::<u32>(), 24), 0..max)
}

/// Inputs of clients.
pub fn input() -> impl Strategy<Value = RunAgentInput> {
    vec(any::<u32>(), 48).prop_map(|asked| nonsense::input(&mut Dice::new(&asked)))
}

/// Any events in any order, RUN_STARTED and the terminal events included. Most of these streams are illegal.
pub fn nonsense() -> impl Strategy<Value = Script> {
    (vec(any::<u32>(), 48), steps(40)).prop_map(|(asked, steps)| {
        let mut dice = Dice::new(&asked);
        let input = nonsense::input(&mut dice);
        let events = steps.iter().map(|numbers| nonsense::event(&mut Dice::new(numbers))).collect();
        Script { input, events, ending: ending(&mut dice) }
    })
}

/// Legal streams without RUN_STARTED and terminal event, with all items closed.
pub fn legal() -> impl Strategy<Value = Script> {
    (vec(any::<u32>(), 48), steps(40)).prop_map(|(asked, steps)| {
        let input = nonsense::input(&mut Dice::new(&asked));
        let mut walk = Walk::new(&input);
        steps.iter().for_each(|numbers| walk.step(&mut Dice::new(numbers)));
        let events = walk.finish();
        Script { input, events, ending: Ending::Quiet }
    })
}

/// Legal streams with a few random changes, so that they become illegal late, while many items are open.
pub fn mostly_legal() -> impl Strategy<Value = Script> {
    (legal(), steps(4), vec(any::<u32>(), 8)).prop_map(|(mut script, mutations, end)| {
        for numbers in &mutations {
            mutate(&mut script.events, &mut Dice::new(numbers));
        }
        let mut dice = Dice::new(&end);
        if dice.chance(3) {
            // Items stay open, as if a model's answer was cut off.
            script.events.truncate(dice.below(script.events.len() + 1));
        }
        script.ending = ending(&mut dice);
        script
    })
}

/// Streams of the three kinds above.
pub fn script() -> impl Strategy<Value = Script> {
    prop_oneof![1 => nonsense(), 1 => legal(), 2 => mostly_legal()]
}

/// Returns `count` scripts, the same on every call.
pub fn seeded(count: usize) -> Vec<Script> {
    let mut runner = TestRunner::deterministic();
    let strategy = script();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Returns the script that a fuzzer's bytes describe. 0xFF ends a step, so that a changed byte changes one step.
///
/// No agent panics: a fuzzer takes every panic for a find.
#[allow(dead_code, reason = "the fuzz targets call it")]
pub fn from_bytes(bytes: &[u8]) -> Script {
    let steps = bytes.split(|byte| *byte == 0xFF);
    let mut steps = steps.map(|step| step.iter().map(|byte| u32::from(*byte)).collect::<Vec<_>>());
    let asked = steps.next().unwrap_or_default();
    let mut dice = Dice::new(&asked);
    let (kind, fails) = (dice.below(3), dice.chance(4));
    let input = nonsense::input(&mut dice);
    let mut events = Vec::new();
    if kind == 0 {
        events.extend(steps.map(|numbers| nonsense::event(&mut Dice::new(&numbers))));
    } else {
        // A legal walk; with kind 2, the steps that begin with a high byte change it afterwards.
        let is_mutation =
            |numbers: &Vec<u32>| kind == 2 && numbers.first().is_some_and(|first| *first >= 0xF0);
        let (mutations, steps): (Vec<_>, Vec<_>) = steps.partition(is_mutation);
        let mut walk = Walk::new(&input);
        steps.iter().for_each(|numbers| walk.step(&mut Dice::new(numbers)));
        events.extend(walk.finish());
        mutations.iter().for_each(|numbers| mutate(&mut events, &mut Dice::new(&numbers[1..])));
    }
    Script { input, events, ending: if fails { Ending::Fails } else { Ending::Quiet } }
}

fn ending(dice: &mut Dice<'_>) -> Ending {
    match dice.below(8) {
        6 => Ending::Fails,
        7 => Ending::Panics,
        _ => Ending::Quiet,
    }
}

fn mutate(events: &mut Vec<Event>, dice: &mut Dice<'_>) {
    let at = dice.below(events.len() + 1);
    let hit = events.get(at).cloned();
    match (dice.below(6), hit) {
        (1, Some(_)) => drop(events.remove(at)),
        (2, Some(event)) => events.insert(at, event),
        (3, Some(_)) => {
            let other = dice.below(events.len());
            events.swap(at, other);
        }
        // The event with another owner.
        (4, Some(event)) => {
            events[at] =
                event.attributed_to(dice.pick(&[None, Some("s1"), Some("s")]).map(Into::into))
        }
        // The event again, at the end.
        (5, Some(event)) => events.push(event),
        _ => events.insert(at, nonsense::event(dice)),
    }
}

/// Returns the events that the server sends for a run in which the agent plays the script.
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
        stream::iter(events.clone().into_iter().map(Ok))
            .chain(end.filter_map(std::future::ready))
            .boxed()
    };
    let run = Run::alone(Arc::new(agent), script.input.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(run.into_events().collect())
}
