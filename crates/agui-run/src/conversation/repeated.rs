//! What a request gets that has come before, from the ends of its attempts. Reads no store.

use agui_store::{EndReason, RunNumber, RunRecord, RunStatus};

/// The answer to a request whose earlier attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// It runs again, as a new attempt.
    Anew,
    /// A new attempt continues from the calls of this one, if its agent can.
    Continued,
    /// It gets what the attempt left in the store.
    Restated,
}

/// Returns the newest attempt that continues the one with number `first`: with replies, or after an error. `attempts` are those of
/// the run's id, ascending.
pub(crate) fn newest_continuing(attempts: Vec<RunRecord>, first: RunNumber) -> Option<RunRecord> {
    let mut later = attempts.into_iter().skip_while(|attempt| attempt.number != first);
    let found = later.next();
    later.take_while(|attempt| attempt.continues).last().or(found)
}

impl Repeated {
    /// `is_newest` tells whether the attempt is the thread's newest run. If it is not, nothing moves.
    pub(crate) fn of(attempt: &RunRecord, is_newest: bool) -> Self {
        let runs_anew = match (attempt.status, attempt.end_reason) {
            // The same line that is pasted again is to be seen streaming again.
            (RunStatus::Finished, _) => attempt.delivered,
            (RunStatus::Failed, _) => true,
            (RunStatus::Cancelled, reason) => reason == Some(EndReason::Left),
            (RunStatus::Interrupted | RunStatus::Running, _) => false,
        };
        if !runs_anew || !is_newest {
            Self::Restated
        } else if !attempt.has_unsafe_calls {
            Self::Anew
        } else if attempt.status != RunStatus::Finished {
            Self::Continued
        } else {
            Self::Restated
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_store::ThreadNumber;

    #[test]
    fn only_what_changed_nothing_and_was_not_stopped_by_a_person_runs_again() {
        use EndReason::{Left, Lost, Stopped, Superseded, Time};
        use RunStatus::{Cancelled, Failed, Finished, Interrupted};
        let rows = [
            (Failed, None, false, Repeated::Anew),
            (Failed, Some(Lost), false, Repeated::Anew),
            (Cancelled, Some(Left), false, Repeated::Anew),
            (Cancelled, Some(Stopped), false, Repeated::Restated),
            (Cancelled, Some(Superseded), false, Repeated::Restated),
            (Cancelled, Some(Time), false, Repeated::Restated),
            (Cancelled, None, false, Repeated::Restated),
            (Interrupted, None, true, Repeated::Restated),
            (Finished, None, true, Repeated::Anew),
            (Finished, None, false, Repeated::Restated),
        ];
        for (status, end_reason, delivered, expected) in rows {
            let run = RunRecord::new(RunNumber(1), ThreadNumber(1), "r".into(), "a".to_owned());
            let run = RunRecord { status, end_reason, delivered, ..run };
            assert_eq!(Repeated::of(&run, true), expected, "{run:?}");
            assert_eq!(
                Repeated::of(&run, false),
                Repeated::Restated,
                "a later run moved the thread"
            );
            let is_broken = expected == Repeated::Anew && status != Finished;
            let run = RunRecord { has_unsafe_calls: true, ..run };
            let expected = if is_broken { Repeated::Continued } else { Repeated::Restated };
            assert_eq!(Repeated::of(&run, true), expected, "{run:?}");
        }
    }

    #[test]
    fn a_request_is_answered_from_the_attempt_that_continues_it_and_not_from_one_with_other_messages()
     {
        let attempt = |number, continues| {
            let run =
                RunRecord::new(RunNumber(number), ThreadNumber(1), "r".into(), "a".to_owned());
            RunRecord { continues, ..run }
        };
        let attempts =
            || vec![attempt(1, false), attempt(4, true), attempt(6, true), attempt(7, false)];
        let newest =
            |first| newest_continuing(attempts(), RunNumber(first)).map(|run| run.number.0);
        assert_eq!([1, 4, 6, 7, 9].map(newest), [Some(6), Some(6), Some(6), Some(7), None]);
    }
}
