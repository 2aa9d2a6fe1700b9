//! The values of labels. A label has a bounded number of values, so no client, model or tool server
//! can add values without limit.

use std::{borrow::Cow, collections::BTreeSet};

use parking_lot::RwLock;
use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};

use agui_base::RunErrorCode;

/// Labels with their names.
pub(super) type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
/// A counter for each combination of labels.
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;
/// A histogram for each combination of labels.
pub(super) type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The value for everything that has no value of its own.
pub const OTHER: &str = "other";
/// The number of different names of agents or tools, and of different pairs of a provider and a
/// model. Names come from the configuration or the application's code, so only a server that
/// computes names reaches this bound.
pub(super) const MAX_NAMES: usize = 200;

/// Returns the code if it is a code of this server, otherwise [`OTHER`].
pub(super) fn known_code(code: &str) -> &'static str {
    RunErrorCode::from_name(code).map_or(OTHER, RunErrorCode::as_str)
}

/// Names that are used as labels, of which the first [`MAX_NAMES`] are kept.
#[derive(Debug, Default)]
pub(super) struct BoundedNames(RwLock<BTreeSet<String>>);

impl BoundedNames {
    pub(super) fn bounded(&self, name: &str) -> String {
        let is_known = |names: &BTreeSet<String>| names.contains(name);
        if is_known(&self.0.read()) {
            return name.to_owned();
        }
        let mut names = self.0.write();
        if names.len() < MAX_NAMES || is_known(&names) {
            names.insert(name.to_owned());
            return name.to_owned();
        }
        OTHER.to_owned()
    }
}
