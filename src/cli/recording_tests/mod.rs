//! `agui-server test`: plays the requests of recordings to an agent, and compares what comes with what was recorded.
//!
//! `play` sends the requests. `steps` brings both streams into a form in which identifiers, times and the cuts between
//! deltas do not count. `compare` applies the `rules` of the recording, and `report` prints.

mod compare;
mod ids;
mod play;
mod report;
mod rules;
mod steps;
mod update;

use std::{collections::BTreeMap, error::Error, time::Duration};

use self::{
    compare::differences,
    ids::IdPairs,
    play::{Client, Played},
    report::{Report, TestResult},
    rules::Rules,
    steps::{Steps, steps},
    update::accept,
};
use super::{
    arguments::TestArguments,
    output::print_line,
    target::{Target, TargetArguments},
};
use crate::recording::{Recording, read_folder};

/// Plays all recordings and prints the results. Returns whether all of them passed.
pub(super) fn run_tests(arguments: TestArguments) -> Result<bool, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_all(arguments))
}

async fn run_all(arguments: TestArguments) -> Result<bool, Box<dyn Error>> {
    let recordings = read_folder(&arguments.dir)?;
    let rules = Rules::read_all(&arguments.dir, &recordings)?;
    let target = Target::open(TargetArguments {
        url_argument: "--against",
        url: arguments.against.as_deref(),
        is_server: false,
        key_env: arguments.key_env.as_deref(),
        config: arguments.config.clone(),
        log: arguments.log.clone(),
    })
    .await?;
    let client = Client::new(&target, Duration::from_secs(arguments.timeout_secs))?;
    let mut report = Report::default();
    // The conversations of one thread build on each other, and their ids do, too.
    let mut threads = BTreeMap::<String, IdPairs>::new();
    for (recording, rules) in recordings.iter().zip(&rules) {
        if !recording.is_whole() {
            report.add(TestResult::skipped(recording, "the recording has no end of its run"));
            continue;
        }
        let ids = threads
            .entry(recording.head.request.thread_id.to_string())
            .or_insert_with(|| IdPairs::for_thread(&recording.head.request.thread_id));
        let agent = arguments.agent.as_deref().unwrap_or(&recording.head.agent);
        let result = match client.play(target.url(Some(agent))?, recording, ids).await {
            Err(problem) => TestResult::failed(recording, Duration::ZERO, vec![problem]),
            Ok(played) => test(&arguments, recording, rules, &played, ids)?,
        };
        report.add(result);
    }
    target.close().await;
    report.lines().iter().for_each(|line| print_line(line));
    if let Some(path) = &arguments.junit {
        let name = arguments.dir.display().to_string();
        std::fs::write(path, report.junit(&name))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(report.has_passed())
}

fn test(
    arguments: &TestArguments,
    recording: &Recording,
    rules: &Rules,
    played: &Played,
    ids: &mut IdPairs,
) -> Result<TestResult, Box<dyn Error>> {
    let request = &recording.head.request;
    let recorded = steps(&recording.events, request);
    let live = steps(&played.events, &played.request);
    let live = Steps { values: live.values.iter().map(|value| ids.to_recorded(value)).collect() };
    let known = ids::known_in(request);
    ids.pair(&known, &recorded, &live);
    let numbered = |steps: &Steps| ids::numbered(steps, &known);
    let (recorded, live) = (numbered(&recorded), numbered(&live));
    let mut found = differences(rules, &recorded, &live, played)?;
    let mut is_updated = false;
    if arguments.update && !found.is_empty() {
        accept(&arguments.dir, recording, played, ids)?;
        is_updated = true;
        // What a rule refuses is not accepted with the events.
        found = differences(rules, &live, &live, played)?;
    }
    let duration = played.duration;
    Ok(match found.is_empty() {
        true => TestResult::passed(recording, duration, is_updated),
        false => TestResult::failed(recording, duration, found),
    })
}
