//! Events with data that the protocol does not describe.

use serde_json::Value;

use super::base::event;

event! {
    /// A provider's event, unchanged.
    Raw {
        /// The provider's event, any JSON.
        event: Value,
    } optional {
        /// The provider.
        source: String,
    }
}

event! {
    /// An application's own event. Names should have the prefix of a vendor.
    Custom {
        /// The name.
        name: String,
        /// Any JSON, also `null`.
        value: Value,
    }
}
