//! Rules for a vendor's models, by their names.

use serde::{Deserialize, Deserializer, de, de::DeserializeOwned};
use serde_json::Value;

use agui_protocol::JsonObject;

/// A version such as 5.4.
pub(super) type ModelVersion = (u32, u32);

/// The parts of a model's name that rules ask about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ModelName {
    pub(super) family: String,
    /// Absent in names such as `codex-mini-latest`.
    pub(super) version: Option<ModelVersion>,
    /// The other parts of the name.
    pub(super) words: Vec<String>,
}

/// The rules for the models of one vendor, the more general ones first.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct RuleTable(Vec<ModelRule>);

/// Members of the rules for the models that fit all conditions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ModelRule {
    names: Vec<String>,
    /// The name of the model whose rules apply to `names`, too.
    like: Option<String>,
    families: Vec<String>,
    words: Vec<String>,
    #[serde(deserialize_with = "version")]
    from: Option<ModelVersion>,
    #[serde(deserialize_with = "version")]
    before: Option<ModelVersion>,
    set: JsonObject,
}

impl RuleTable {
    pub(super) fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    pub(super) fn has_family(&self, family: &str) -> bool {
        self.0.iter().any(|rule| rule.families.iter().any(|of_rule| of_rule == family))
    }

    /// Returns the rules for a model, or `None` if its name is not one of the vendor's, and no rule has it. `parse` reads
    /// the vendor's names.
    pub(super) fn rules<T: DeserializeOwned>(
        &self,
        model: &str,
        parse: fn(&str, &Self) -> Option<ModelName>,
    ) -> Option<T> {
        let named = || self.0.iter().filter(|rule| rule.has_name(model));
        let like = named().filter_map(|rule| rule.like.as_deref()).next_back();
        let name = parse(like.unwrap_or(model), self);
        if name.is_none() && named().next().is_none() {
            return None;
        }
        let mut members = JsonObject::new();
        for rule in self.0.iter().filter(|rule| rule.fits(model, name.as_ref())) {
            members.extend(rule.set.clone());
        }
        // The members of each rule were checked when the table was read.
        serde_json::from_value(Value::Object(members)).ok()
    }

    /// Checks that the members of each rule are those of `T`. `vendor` is the name of the table.
    pub(super) fn check<T: DeserializeOwned>(&self, vendor: &str) -> Result<(), String> {
        for (index, rule) in self.0.iter().enumerate() {
            serde_json::from_value::<T>(Value::Object(rule.set.clone()))
                .map_err(|error| format!("[[{vendor}]] number {}: {error}", index + 1))?;
        }
        Ok(())
    }
}

impl ModelRule {
    fn has_name(&self, model: &str) -> bool {
        self.names.iter().any(|name| has_name(model, name))
    }

    fn fits(&self, model: &str, name: Option<&ModelName>) -> bool {
        if !self.names.is_empty() && !self.has_name(model) {
            return false;
        }
        let has_conditions = !self.families.is_empty() || !self.words.is_empty();
        let has_versions = self.from.is_some() || self.before.is_some();
        let Some(name) = name else { return !has_conditions && !has_versions };
        let is_in_range = name.version.map_or(!has_versions, |version| {
            self.from.is_none_or(|from| version >= from)
                && self.before.is_none_or(|before| version < before)
        });
        is_in_range
            && (self.families.is_empty() || self.families.contains(&name.family))
            && (self.words.is_empty() || self.words.iter().any(|word| name.words.contains(word)))
    }
}

/// Returns whether a model has a name, or one that begins with it up to a `-`, or up to an `@`, as Vertex AI writes versions. A
/// name that ends with `-` is a beginning.
pub(super) fn begins_with_name(model: &str, name: &str) -> bool {
    let rest = model.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@']) || name.ends_with('-'))
}

/// Platforms put a vendor or a region before a model's name, as in `us.anthropic.claude-opus-4-6` and `openai/gpt-5`.
fn has_name(model: &str, name: &str) -> bool {
    let after_prefix = model.match_indices(['/', '.']).map(|(at, _)| &model[at + 1..]);
    std::iter::once(model).chain(after_prefix).any(|model| begins_with_name(model, name))
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelVersion>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let version = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    version.map(Some).ok_or_else(|| {
        de::Error::custom(format!("invalid version \"{text}\": expected one such as \"5.4\""))
    })
}
