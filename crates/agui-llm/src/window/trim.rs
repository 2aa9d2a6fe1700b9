//! Leaves the oldest steps out of a conversation.
//!
//! A call and its results stay together, as providers require. These stay in any case: instructions, the newest user
//! step, and the newest exchange with tools.

use super::estimate;
use crate::{history, model::ModelStep};

/// The note for the model, before the first user step that is left.
const NOTE: &str = "[Note of the server, not of the user: earlier parts of this conversation were left out \
                               here, because it is longer than your context window.]";

/// Returns the tokens of the steps that may be left out.
pub(crate) fn removable(steps: &[ModelStep]) -> u64 {
    let newest_user = steps.iter().rposition(|step| matches!(step, ModelStep::User(_)));
    let removable = groups(steps, newest_user).into_iter().flatten();
    let removable =
        removable.filter(|position| !matches!(steps[*position], ModelStep::Instructions(_)));
    removable.map(|position| estimate::step_tokens(&steps[position])).sum()
}

/// Leaves out steps with at least `excess` tokens, as far as there are steps that may be left out. Returns whether any
/// was left out.
pub(crate) fn trim(steps: &mut Vec<ModelStep>, excess: u64) -> bool {
    let newest_user = steps.iter().rposition(|step| matches!(step, ModelStep::User(_)));
    let mut removed = vec![false; steps.len()];
    let mut tokens = 0;
    for group in groups(steps, newest_user) {
        if tokens >= excess {
            break;
        }
        for position in
            group.filter(|position| !matches!(steps[*position], ModelStep::Instructions(_)))
        {
            tokens += estimate::step_tokens(&steps[position]);
            removed[position] = true;
        }
    }
    if !removed.contains(&true) {
        return false;
    }
    let mut removed = removed.into_iter();
    steps.retain(|_| !removed.next().unwrap_or(false));
    history::add_note(steps, NOTE);
    true
}

/// Returns the steps that may be left out, in the order in which they are: first whole exchanges before the newest user
/// step, so that the conversation begins with a user's step, then exchanges with tools after it.
fn groups(steps: &[ModelStep], newest_user: Option<usize>) -> Vec<std::ops::Range<usize>> {
    let split = newest_user.unwrap_or(0);
    let begins = |range: std::ops::Range<usize>, is_begin: fn(&ModelStep) -> bool| {
        let mut starts: Vec<usize> =
            range.clone().filter(|at| *at == range.start || is_begin(&steps[*at])).collect();
        starts.push(range.end);
        starts.windows(2).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>()
    };
    let mut groups = begins(0..split, |step| matches!(step, ModelStep::User(_)));
    let after = newest_user.map_or(0, |newest| newest + 1);
    let mut newest = begins(after..steps.len(), |step| matches!(step, ModelStep::Assistant(_)));
    newest.pop();
    groups.extend(newest);
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Block, ToolResult};
    use agui_protocol::{ContentPart, ToolCall};

    fn user(text: &str) -> ModelStep {
        ModelStep::User(vec![ContentPart::text(text)])
    }

    fn says(text: &str) -> ModelStep {
        ModelStep::Assistant(vec![Block::Text(text.to_owned())])
    }

    fn call(id: &str) -> [ModelStep; 2] {
        let result = ToolResult {
            call_id: id.into(),
            name: "t".to_owned(),
            content: id.to_owned().into(),
            failed: false,
        };
        let blocks = vec![Block::Call(ToolCall::new(id, "t", "{}"))];
        [ModelStep::Assistant(blocks), ModelStep::ToolResults(vec![result])]
    }

    fn system() -> ModelStep {
        ModelStep::Instructions("be brief".to_owned())
    }

    fn conversation() -> Vec<ModelStep> {
        let mut steps = vec![system(), user("1")];
        steps.extend(call("a"));
        steps.extend([says("one"), user("2"), says("two"), user("3")]);
        steps.extend(call("b"));
        steps.extend(call("c"));
        steps
    }

    fn noted(text: &str) -> ModelStep {
        ModelStep::User(vec![ContentPart::text(NOTE), ContentPart::text(text)])
    }

    #[test]
    fn the_oldest_exchange_goes_first_and_as_a_whole() {
        let mut steps = conversation();
        assert!(trim(&mut steps, 1));
        let mut expected = vec![system(), noted("2"), says("two"), user("3")];
        expected.extend(call("b"));
        expected.extend(call("c"));
        assert_eq!(steps, expected);
    }

    #[test]
    fn the_instructions_the_newest_user_step_and_the_newest_results_stay() {
        let mut steps = conversation();
        assert!(trim(&mut steps, u64::MAX));
        let mut expected = vec![system(), noted("3")];
        expected.extend(call("c"));
        assert_eq!(steps, expected);
        steps[1] = user("3");
        assert!(!trim(&mut steps, u64::MAX), "nothing more can go");
    }

    #[test]
    fn an_assistant_that_begins_is_left_out_and_a_conversation_without_users_gets_a_step_for_the_note()
     {
        let mut steps = vec![says("hello"), user("1")];
        assert!(trim(&mut steps, 1));
        assert_eq!(steps, [noted("1")]);
        let mut steps = vec![says("a"), says("b")];
        assert!(trim(&mut steps, 1));
        assert_eq!(steps, [ModelStep::User(vec![ContentPart::text(NOTE)]), says("b")]);
        assert!(!trim(&mut Vec::new(), 1));
    }

    /// Every call has its result right after it, whatever is left out.
    #[test]
    fn calls_and_results_stay_together_for_every_excess() {
        for excess in 0..200 {
            let mut steps = conversation();
            trim(&mut steps, excess);
            for (position, step) in steps.iter().enumerate() {
                let has_calls = matches!(step, ModelStep::Assistant(blocks) if blocks.iter().any(|it| matches!(it, Block::Call(_))));
                let has_results =
                    matches!(steps.get(position + 1), Some(ModelStep::ToolResults(_)));
                assert_eq!(has_calls, has_results, "{excess}");
            }
            assert!(matches!(steps[1], ModelStep::User(_)), "{excess}");
        }
    }
}
