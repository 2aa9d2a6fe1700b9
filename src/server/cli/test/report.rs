//! The results of tests, as text and as JUnit's XML.

use std::{fmt::Write as _, time::Duration};

use agui_observe::recording::Recording;

/// The results of all tests.
#[derive(Debug, Default)]
pub(super) struct Report {
    results: Vec<TestResult>,
}

/// The result of one recording.
#[derive(Debug)]
struct TestResult {
    name: String,
    agent: String,
    duration: Duration,
    outcome: TestOutcome,
}

#[derive(Debug)]
pub(super) enum TestOutcome {
    Passed { is_updated: bool },
    Failed(Vec<String>),
    Skipped(&'static str),
}

impl Report {
    pub(super) fn add(&mut self, recording: &Recording, duration: Duration, outcome: TestOutcome) {
        let (name, agent) = (recording.name.clone(), recording.head.agent.clone());
        self.results.push(TestResult { name, agent, duration, outcome });
    }

    /// Returns whether at least one test passed and none failed.
    pub(super) fn has_passed(&self) -> bool {
        let (passed, failed, _) = self.counts();
        passed > 0 && failed == 0
    }

    fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&TestOutcome) -> bool| {
            self.results.iter().filter(|result| is(&result.outcome)).count()
        };
        (
            count(|outcome| matches!(outcome, TestOutcome::Passed { .. })),
            count(|outcome| matches!(outcome, TestOutcome::Failed(_))),
            count(|outcome| matches!(outcome, TestOutcome::Skipped(_))),
        )
    }

    /// Returns the lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for TestResult { name, duration, outcome, .. } in &self.results {
            let millis = duration.as_millis();
            match outcome {
                TestOutcome::Passed { is_updated: false } => {
                    lines.push(format!("ok       {name} ({millis} ms)"))
                }
                TestOutcome::Passed { is_updated: true } => {
                    lines.push(format!("updated  {name} ({millis} ms)"))
                }
                TestOutcome::Skipped(why) => lines.push(format!("skipped  {name}: {why}")),
                TestOutcome::Failed(differences) => {
                    lines.push(format!("FAILED   {name} ({millis} ms)"));
                    lines.extend(
                        differences.iter().map(|difference| format!("         {difference}")),
                    );
                }
            }
        }
        let (passed, failed, skipped) = self.counts();
        lines.push(format!("{passed} passed, {failed} failed, {skipped} skipped"));
        lines
    }

    /// Returns JUnit's XML.
    pub(super) fn junit(&self, suite: &str) -> String {
        let (_, failed, skipped) = self.counts();
        let seconds = |duration: &Duration| format!("{:.3}", duration.as_secs_f64());
        let total: Duration = self.results.iter().map(|result| result.duration).sum();
        let (suite, tests) = (escaped(suite), self.results.len());
        let counts = format!(
            "tests=\"{tests}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{}\"",
            seconds(&total)
        );
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{suite}\" {counts}>\n"
        );
        for TestResult { name, agent, duration, outcome } in &self.results {
            let (name, agent) = (escaped(name), escaped(agent));
            let time = seconds(duration);
            // Writing to a text cannot fail.
            let _ = write!(xml, "<testcase classname=\"{agent}\" name=\"{name}\" time=\"{time}\"");
            let _ = match outcome {
                TestOutcome::Passed { .. } => writeln!(xml, "/>"),
                TestOutcome::Skipped(why) => {
                    writeln!(xml, "><skipped message=\"{}\"/></testcase>", escaped(why))
                }
                TestOutcome::Failed(differences) => {
                    let first = differences.first().map_or("", String::as_str);
                    let all = escaped(&differences.join("\n"));
                    writeln!(
                        xml,
                        "><failure message=\"{}\">{all}</failure></testcase>",
                        escaped(first)
                    )
                }
            };
        }
        xml + "</testsuite>\n</testsuites>\n"
    }
}

/// Escapes a text for XML, which cannot have most control characters at all.
fn escaped(text: &str) -> String {
    let is_impossible =
        |c: char| (c.is_control() && !"\n\t".contains(c)) || "\u{fffe}\u{ffff}".contains(c);
    let text = text.replace(is_impossible, "\u{fffd}").replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;").replace('\n', "&#10;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_escaped() {
        assert_eq!(
            escaped("<a b=\"c\"> & \0\u{1b}[0m\n"),
            "&lt;a b=&quot;c&quot;&gt; &amp; \u{fffd}\u{fffd}[0m&#10;"
        );
    }
}
