//! Checks a script after it is read: the rules between its actions and lines. An error names its
//! place in the text, and playing a checked script cannot fail.

use std::collections::HashSet;

use toml::Spanned;

use super::{
    ScriptError,
    format::{Action, ActionKind, ScriptLine, When},
    questions::{Questions, ScriptQuestion},
};
use agui_protocol::PatchOperation;

/// The names of placeholders. `args.NAME` and `reply.NAME` have a meaning, too.
const PLACEHOLDERS: [&str; 8] =
    ["text", "result", "error", "result.count", "result.list", "reply", "results", "args"];

/// Returns the lines, with flattened steps, and the kinds of the questions that they ask.
pub(super) fn check(
    mut lines: Vec<Spanned<ScriptLine>>,
) -> Result<(Vec<ScriptLine>, Questions), ScriptError> {
    for line in &mut lines {
        let span = line.span();
        let line = line.get_mut();
        check_conditions(&line.when)
            .map_err(|message| ScriptError { message, span: Some(span) })?;
        flatten_steps(line)?;
        check_actions(line)?;
    }
    if lines.is_empty() {
        return Err(ScriptError {
            message: "a script needs at least one [[answer]]".to_owned(),
            span: None,
        });
    }
    let lines: Vec<ScriptLine> = lines.into_iter().map(Spanned::into_inner).collect();
    let questions = questions(&lines);
    Ok((lines, questions))
}

/// Returns the kinds of the questions by name. The first of several with one name counts.
fn questions(lines: &[ScriptLine]) -> Questions {
    let mut kinds = Questions::new();
    for action in lines.iter().flat_map(|line| &line.play) {
        let ActionKind::Interrupts { interrupts } = &action.get_ref().0 else { continue };
        for question in interrupts {
            kinds.entry(question.name().to_owned()).or_insert_with(|| question.kind());
        }
    }
    kinds
}

fn check_conditions(when: &When) -> Result<(), String> {
    let has_replies = !when.replies.is_empty();
    let message = if when.tool.is_none() && (when.result.is_some() || when.failed.is_some()) {
        "`result` and `failed` are about a tool's result and need `tool`"
    } else if !has_replies && (when.approved.is_some() || !when.reply.is_empty()) {
        "`approved` and `reply` are about what is answered and need `replies`"
    } else if has_replies && when.tool.is_some() {
        "`tool` and `replies` are about different runs"
    } else {
        return Ok(());
    };
    Err(message.to_owned())
}

/// Puts the actions of each step between its start and its end.
fn flatten_steps(line: &mut ScriptLine) -> Result<(), ScriptError> {
    fn flatten(
        action: Action,
        open: &mut Vec<String>,
        flat: &mut Vec<Action>,
    ) -> Result<(), String> {
        let ActionKind::Step { step, play } = action.0 else {
            flat.push(action);
            return Ok(());
        };
        if open.contains(&step) {
            return Err(format!("the step {step:?} is already open here"));
        }
        open.push(step.clone());
        flat.push(Action(ActionKind::Step { step: step.clone(), play: Vec::new() }));
        play.into_iter().try_for_each(|action| flatten(action, open, flat))?;
        flat.push(Action(ActionKind::StepEnd(step)));
        open.pop();
        Ok(())
    }

    for action in std::mem::take(&mut line.play) {
        let (span, mut flat) = (action.span(), Vec::new());
        flatten(action.into_inner(), &mut Vec::new(), &mut flat)
            .map_err(|message| ScriptError { message, span: Some(span.clone()) })?;
        line.play.extend(flat.into_iter().map(|action| Spanned::new(span.clone(), action)));
    }
    Ok(())
}

fn check_actions(line: &ScriptLine) -> Result<(), ScriptError> {
    let expressions =
        [&line.when.user, &line.when.result].into_iter().flatten().chain(line.when.reply.values());
    let groups: HashSet<&str> =
        expressions.flat_map(|expression| expression.0.capture_names().flatten()).collect();
    let mut before = Before::default();
    for (index, action) in line.play.iter().enumerate() {
        let is_last = index + 1 == line.play.len() && !line.goes_on;
        let unknown =
            action.get_ref().templates().into_iter().flat_map(|template| template.placeholders());
        let unknown = unknown.into_iter().find(|name| !is_known(name) && !groups.contains(name));
        match unknown {
            Some(name) => Err(format!("the placeholder {{{name}}} is unknown here")),
            None => before.check(&action.get_ref().0, is_last),
        }
        .map_err(|message| ScriptError { message, span: Some(action.span()) })?;
    }
    Ok(())
}

fn is_known(name: &str) -> bool {
    PLACEHOLDERS.contains(&name)
        || ["args.", "reply."]
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|member| !member.is_empty()))
}

/// The relevant content of a line before one of its actions.
#[derive(Default)]
struct Before<'a> {
    has_message: bool,
    /// The types of the activities that have content, so that a patch can change it.
    activities: HashSet<&'a str>,
    /// The tools of the calls that have no result.
    open_calls: Vec<&'a str>,
}

impl<'a> Before<'a> {
    fn check(&mut self, action: &'a ActionKind, is_last: bool) -> Result<(), String> {
        match action {
            ActionKind::Text { .. } | ActionKind::Count { .. } => self.has_message = true,
            ActionKind::Calls { within: true, .. } if !self.has_message => {
                return Err("`within` needs a message before the call".to_owned());
            }
            ActionKind::Calls { calls, .. } => {
                self.open_calls.extend(
                    calls.iter().filter(|call| call.result.is_none()).map(|call| &*call.call),
                );
            }
            ActionKind::Activity { activity, content: Some(_), patch } if patch.is_empty() => {
                self.activities.insert(activity);
            }
            ActionKind::Activity { content: None, patch, .. }
                if !patch.iter().all(PatchOperation::keeps_object) =>
            {
                return Err(
                    "the content of an activity stays a table: the patch puts something else there"
                        .to_owned(),
                );
            }
            ActionKind::Activity { activity, content: None, .. }
                if !self.activities.contains(&**activity) =>
            {
                return Err(format!("the activity {activity:?} has no `content` yet to patch"));
            }
            ActionKind::Activity { content: Some(_), .. } => {
                return Err("`activity` needs either `content` or `patch`".to_owned());
            }
            ActionKind::Interrupts { .. } if !is_last => {
                return Err("`interrupts` end the run: they stand last, outside of steps, without `goes_on`".to_owned());
            }
            ActionKind::Interrupts { interrupts } => return self.check_questions(interrupts),
            _ => {}
        }
        Ok(())
    }

    fn check_questions(&mut self, questions: &[ScriptQuestion]) -> Result<(), String> {
        if questions.is_empty() {
            return Err("`interrupts` needs at least one".to_owned());
        }
        for question in questions {
            match (&question.call, &question.name) {
                (Some(tool), None) => {
                    let Some(position) = self.open_calls.iter().position(|open| open == tool)
                    else {
                        return Err(format!(
                            "this answer has no call of {tool:?} before this that waits for a reply"
                        ));
                    };
                    self.open_calls.remove(position);
                }
                (None, Some(name)) if name.is_empty() || name == "*" => {
                    return Err(format!("{name:?} cannot be the name of an interrupt"));
                }
                (None, Some(_)) => {}
                _ => return Err("an interrupt needs either `call` or `name`".to_owned()),
            }
        }
        Ok(())
    }
}
