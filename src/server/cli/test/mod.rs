//! `agui-server test`: plays the requests of recordings to an agent, and compares its events with the recorded ones.
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
    ids::{IdPairs, known_in, numbered},
    play::{Played, Player},
    report::{Report, TestOutcome},
    rules::Rules,
    steps::steps,
    update::accept,
};
use super::{
    arguments::TestArguments,
    output::print_line,
    target::{RunTarget, UrlMeaning},
};
use agui_observe::recording::{Recording, read_folder};

/// Plays all recordings and prints the results. Returns whether all of them passed.
pub(super) async fn test_recordings(arguments: TestArguments) -> Result<bool, Box<dyn Error>> {
    let recordings = read_folder(&arguments.dir)?;
    let rules = Rules::read_all(&arguments.dir, &recordings)?;
    let url = arguments.against.as_deref();
    let target =
        RunTarget::open("--against", url, UrlMeaning::ServerOrEndpoint, &arguments.target).await?;
    let player = Player { target: &target, timeout: Duration::from_secs(arguments.timeout_secs) };
    let mut report = Report::default();
    // The conversations of one thread build on each other, and their ids do, too.
    let mut threads = BTreeMap::<String, IdPairs>::new();
    for (recording, rules) in recordings.iter().zip(&rules) {
        if !recording.is_whole() {
            report.add(
                recording,
                Duration::ZERO,
                TestOutcome::Skipped("the recording has no end of its run"),
            );
            continue;
        }
        let ids = threads
            .entry(recording.head.request.thread_id.to_string())
            .or_insert_with(|| IdPairs::for_thread(&recording.head.request.thread_id));
        let agent = arguments.agent.as_deref().unwrap_or(&recording.head.agent);
        match player.play(target.url(Some(agent))?, recording, ids).await {
            Err(problem) => {
                report.add(recording, Duration::ZERO, TestOutcome::Failed(vec![problem]))
            }
            Ok(played) => report.add(
                recording,
                played.duration,
                test(&arguments, recording, rules, &played, ids)?,
            ),
        }
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
) -> Result<TestOutcome, String> {
    let request = &recording.head.request;
    let recorded = steps(&recording.events, request);
    let live: Vec<_> = steps(&played.events, &played.request)
        .into_iter()
        .map(|step| ids.to_recorded(step))
        .collect();
    let known = known_in(request);
    ids.pair(&known, &recorded, &live);
    let (recorded, live) = (numbered(recorded, &known), numbered(live, &known));
    let mut found = differences(rules, &recorded, &live, played);
    let mut is_updated = false;
    if arguments.update && !found.is_empty() {
        accept(&arguments.dir, recording, played, ids)?;
        is_updated = true;
        // Accepted events can still break a rule.
        found = differences(rules, &live, &live, played);
    }
    Ok(if found.is_empty() {
        TestOutcome::Passed { is_updated }
    } else {
        TestOutcome::Failed(found)
    })
}
