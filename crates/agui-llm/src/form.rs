//! The form in which a request to a provider is written. Refusals make it poorer.
//!
//! The encoders of all APIs read a form. For chat completions it is a patch of the server's profile, so `profile` in a
//! configuration can make nearly all of it permanent.

use std::borrow::Cow;

use serde_json::Value;

use crate::known_models::{
    MessagesServer, Profile, ReasoningMember, StructuredOutputs, SystemMessages, TokenLimit,
};
use agui_protocol::JsonObject;

/// The objects of a request with some of its parameters.
pub(crate) const GROUPS: &[&str] = &["generationConfig", "output_config", "reasoning", "text"];

/// The form of a request. The default has everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RequestForm {
    /// The names of the parameters that are left out.
    pub(crate) left_out: Vec<&'static str>,
    pub(crate) token_limit: Option<TokenLimit>,
    pub(crate) system: SystemForm,
    /// True: instructions have the role `system` and not `developer`.
    pub(crate) system_role: bool,
    /// True: messages of users and of the model alternate.
    pub(crate) alternates: bool,
    /// True: an empty text stands in place of `null` as the content of a message.
    pub(crate) empty_content: bool,
    /// True: no user's message follows results of tools.
    pub(crate) no_user_after_results: bool,
    pub(crate) reasoning: ReasoningForm,
    pub(crate) media: MediaForm,
    /// The tokens of the oldest steps that are left out.
    pub(crate) trimmed: u64,
}

/// The places of instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum SystemForm {
    /// Where the server takes them.
    #[default]
    Usual,
    /// All in one text before the conversation.
    Joined,
    /// In the first user's message.
    InUser,
}

/// The reasoning of earlier answers that a request has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum ReasoningForm {
    /// What the server takes.
    #[default]
    Usual,
    /// All of it, also where a server's profile has no member for it, and a substitute where there is none.
    Added,
    LeftOut,
}

/// The media that a request has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MediaForm {
    #[default]
    All,
    /// Those after the last answer.
    New,
    None,
}

impl RequestForm {
    /// Returns whether a parameter is sent.
    pub(crate) fn has(&self, parameter: &str) -> bool {
        !self.left_out.contains(&parameter)
    }

    /// Returns whether earlier reasoning is sent.
    pub(crate) fn has_reasoning(&self) -> bool {
        self.reasoning != ReasoningForm::LeftOut
    }

    /// Leaves out the parameters of a request and of its groups that are not sent.
    pub(crate) fn drop_parameters(&self, body: &mut JsonObject) {
        if self.left_out.is_empty() {
            return;
        }
        for group in GROUPS {
            if let Some(Value::Object(members)) = body.get_mut(*group) {
                members.retain(|name, _| self.has(name));
            }
        }
        body.retain(|name, value| {
            let is_empty_group = GROUPS.contains(&name.as_str())
                && value.as_object().is_some_and(JsonObject::is_empty);
            self.has(name) && !is_empty_group
        });
    }

    /// Returns the profile of a server with chat completions in this form.
    pub(crate) fn profile<'p>(&self, profile: &'p Profile) -> Cow<'p, Profile> {
        let unchanged =
            Self { left_out: Vec::new(), media: MediaForm::All, trimmed: 0, ..self.clone() };
        if unchanged == Self::default() && self.left_out.is_empty() {
            return Cow::Borrowed(profile);
        }
        let mut patched = profile.clone();
        if let Some(limit) = self.token_limit {
            patched.token_limit = limit;
        }
        match self.system {
            SystemForm::Usual => {}
            SystemForm::Joined => patched.system_messages = SystemMessages::Joined,
            SystemForm::InUser => patched.system_messages = SystemMessages::None,
        }
        patched.developer_role &= !self.system_role;
        patched.alternate_roles |= self.alternates;
        patched.null_content &= !self.empty_content;
        patched.user_after_results &= !self.no_user_after_results;
        patched.stream_options &= self.has("stream_options");
        patched.strict &= self.has("strict");
        match self.reasoning {
            ReasoningForm::Usual => {}
            ReasoningForm::Added => {
                patched.reasoning_member = ReasoningMember::ReasoningContent;
                patched.adds_reasoning = true;
            }
            ReasoningForm::LeftOut => patched.reasoning_member = ReasoningMember::None,
        }
        if !self.has("response_format") {
            patched.structured_outputs = StructuredOutputs::None;
        }
        Cow::Owned(patched)
    }

    /// Returns a server with the Messages API in this form.
    pub(crate) fn messages_server<'s>(
        &self,
        server: &'s MessagesServer,
    ) -> Cow<'s, MessagesServer> {
        match self.reasoning {
            ReasoningForm::Added => {
                let mut patched = server.clone();
                patched.unsigned_thinking = true;
                Cow::Owned(patched)
            }
            ReasoningForm::Usual | ReasoningForm::LeftOut => Cow::Borrowed(server),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_left_out_of_a_request_and_of_its_groups() {
        let form = RequestForm { left_out: vec!["seed", "effort"], ..RequestForm::default() };
        let mut body = json!({"model": "m", "seed": 1, "messages": [{"seed": 1}],
            "generationConfig": {"seed": 1, "topK": 2}, "output_config": {"effort": "low"}});
        form.drop_parameters(body.as_object_mut().unwrap());
        let expected =
            json!({"model": "m", "messages": [{"seed": 1}], "generationConfig": {"topK": 2}});
        assert_eq!(body, expected);
    }
}
