//! Leaves the oldest turns out of a conversation.
//!
//! A call and its results stay together, as providers require. These stay in any case: instructions, the newest user
//! turn, and the newest exchange with tools.

use super::estimate;
use crate::{history, model::Turn};

/// The note for the model, before the first user turn that is left.
const NOTE: &str = "[Note of the server, not of the user: earlier parts of this conversation were left out \
                               here, because it is longer than your context window.]";

/// Leaves out turns with at least `excess` tokens, as far as there are turns that may be left out. Returns whether any
/// was left out.
pub(super) fn trim(turns: &mut Vec<Turn>, excess: u64) -> bool {
    let newest_user = turns.iter().rposition(|turn| matches!(turn, Turn::User(_)));
    let mut removed = vec![false; turns.len()];
    let mut tokens = 0;
    for group in groups(turns, newest_user) {
        if tokens >= excess {
            break;
        }
        for position in group.filter(|position| !matches!(turns[*position], Turn::Instructions(_)))
        {
            tokens += estimate::of_turn(&turns[position]);
            removed[position] = true;
        }
    }
    if !removed.contains(&true) {
        return false;
    }
    let mut removed = removed.into_iter();
    turns.retain(|_| !removed.next().unwrap_or(false));
    history::add_note(turns, NOTE);
    true
}

/// Returns the turns that may be left out, in the order in which they are: first whole exchanges before the newest user
/// turn, so that the conversation begins with a user's turn, then exchanges with tools after it.
fn groups(turns: &[Turn], newest_user: Option<usize>) -> Vec<std::ops::Range<usize>> {
    let split = newest_user.unwrap_or(0);
    let begins = |range: std::ops::Range<usize>, is_begin: fn(&Turn) -> bool| {
        let mut starts: Vec<usize> =
            range.clone().filter(|at| *at == range.start || is_begin(&turns[*at])).collect();
        starts.push(range.end);
        starts.windows(2).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>()
    };
    let mut groups = begins(0..split, |turn| matches!(turn, Turn::User(_)));
    let after = newest_user.map_or(0, |newest| newest + 1);
    let mut newest = begins(after..turns.len(), |turn| matches!(turn, Turn::Assistant(_)));
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

    fn user(text: &str) -> Turn {
        Turn::User(vec![ContentPart::text(text)])
    }

    fn says(text: &str) -> Turn {
        Turn::Assistant(vec![Block::Text(text.to_owned())])
    }

    fn call(id: &str) -> [Turn; 2] {
        let result = ToolResult {
            call_id: id.into(),
            name: "t".to_owned(),
            content: id.to_owned().into(),
            failed: false,
        };
        let blocks = vec![Block::Call(ToolCall::new(id, "t", "{}"))];
        [Turn::Assistant(blocks), Turn::ToolResults(vec![result])]
    }

    fn system() -> Turn {
        Turn::Instructions("be brief".to_owned())
    }

    fn conversation() -> Vec<Turn> {
        let mut turns = vec![system(), user("1")];
        turns.extend(call("a"));
        turns.extend([says("one"), user("2"), says("two"), user("3")]);
        turns.extend(call("b"));
        turns.extend(call("c"));
        turns
    }

    fn noted(text: &str) -> Turn {
        Turn::User(vec![ContentPart::text(NOTE), ContentPart::text(text)])
    }

    #[test]
    fn the_oldest_exchange_goes_first_and_as_a_whole() {
        let mut turns = conversation();
        assert!(trim(&mut turns, 1));
        let mut expected = vec![system(), noted("2"), says("two"), user("3")];
        expected.extend(call("b"));
        expected.extend(call("c"));
        assert_eq!(turns, expected);
    }

    #[test]
    fn the_instructions_the_newest_user_turn_and_the_newest_results_stay() {
        let mut turns = conversation();
        assert!(trim(&mut turns, u64::MAX));
        let mut expected = vec![system(), noted("3")];
        expected.extend(call("c"));
        assert_eq!(turns, expected);
        turns[1] = user("3");
        assert!(!trim(&mut turns, u64::MAX), "nothing more can go");
    }

    #[test]
    fn an_assistant_that_begins_is_left_out_and_a_conversation_without_users_gets_a_turn_for_the_note()
     {
        let mut turns = vec![says("hello"), user("1")];
        assert!(trim(&mut turns, 1));
        assert_eq!(turns, [noted("1")]);
        let mut turns = vec![says("a"), says("b")];
        assert!(trim(&mut turns, 1));
        assert_eq!(turns, [Turn::User(vec![ContentPart::text(NOTE)]), says("b")]);
        assert!(!trim(&mut Vec::new(), 1));
    }

    /// Every call has its result right after it, whatever is left out.
    #[test]
    fn calls_and_results_stay_together_for_every_excess() {
        for excess in 0..200 {
            let mut turns = conversation();
            trim(&mut turns, excess);
            for (position, turn) in turns.iter().enumerate() {
                let has_calls = matches!(turn, Turn::Assistant(blocks) if blocks.iter().any(|it| matches!(it, Block::Call(_))));
                let has_results = matches!(turns.get(position + 1), Some(Turn::ToolResults(_)));
                assert_eq!(has_calls, has_results, "{excess}");
            }
            assert!(matches!(turns[1], Turn::User(_)), "{excess}");
        }
    }
}
