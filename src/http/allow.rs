//! `[[allow]]`: which callers may use an agent.

use serde::Deserialize;
use serde_json::Value;

use agui_agent::Principal;

/// Callers that may use agents: a table `[[allow]]`. An agent that no table names is for every caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AllowRule {
    /// The names of the agents.
    pub agents: Vec<String>,
    /// The callers, as threads are stored under them: `key:NAME` for an API key, `jwt:ISSUER:SUBJECT` for a token.
    pub principals: Vec<String>,
    /// The claim by which other callers are allowed.
    pub claim: Option<String>,
    /// The values of the claim. A caller needs one of them; if the claim is a list, in one of its
    /// items.
    pub values: Vec<String>,
}

impl AllowRule {
    /// Returns whether the rule allows no caller, which must be a mistake.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.agents.is_empty()
            || self.claim.is_none() != self.values.is_empty()
            || (self.principals.is_empty() && self.claim.is_none())
    }

    fn admits(&self, caller: &Principal) -> bool {
        let is_value = |claim: &Value| {
            claim.as_str().is_some_and(|text| self.values.iter().any(|value| value == text))
        };
        let claim = self.claim.as_ref().and_then(|name| caller.claim(name));
        self.principals.iter().any(|id| id == caller.id())
            || claim.is_some_and(|claim| match claim {
                Value::Array(items) => items.iter().any(is_value),
                claim => is_value(claim),
            })
    }
}

/// Returns whether a caller may use an agent.
pub(crate) fn is_allowed(rules: &[AllowRule], agent: &str, caller: Option<&Principal>) -> bool {
    let mut of_agent =
        rules.iter().filter(|rule| rule.agents.iter().any(|name| name == agent)).peekable();
    of_agent.peek().is_none()
        || caller.is_some_and(|caller| of_agent.any(|rule| rule.admits(caller)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn an_agent_that_rules_name_is_for_the_callers_of_one_of_them() {
        let text = "[[allow]]\nagents = [\"a\", \"b\"]\nprincipals = [\"key:ann\"]\n\
                    [[allow]]\nagents = [\"b\"]\nclaim = \"groups\"\nvalues = [\"staff\", \"boss\"]";
        #[derive(Deserialize)]
        struct Rules {
            allow: Vec<AllowRule>,
        }
        let Rules { allow } = toml::from_str(text).unwrap();
        let of_groups = |groups: Value| {
            Principal::new("jwt", "ann")
                .with_claims(Map::from_iter([("groups".to_owned(), groups)]))
        };
        let callers = [
            (None, [false, false, true]),
            (Some(Principal::new("key", "ann")), [true, true, true]),
            (Some(Principal::new("key", "ann2")), [false, false, true]),
            (Some(of_groups(json!("staff"))), [false, true, true]),
            (Some(of_groups(json!(["guest", "boss"]))), [false, true, true]),
            (Some(of_groups(json!(["guest"]))), [false, false, true]),
            (Some(of_groups(json!({ "staff": true }))), [false, false, true]),
        ];
        for (caller, expected) in callers {
            let found = ["a", "b", "other"].map(|agent| is_allowed(&allow, agent, caller.as_ref()));
            assert_eq!(found, expected, "{caller:?}");
        }
        assert!(allow.iter().all(|rule| !rule.is_incomplete()));
        assert!(AllowRule { claim: None, ..allow[1].clone() }.is_incomplete());
    }
}
