//! How TanStack AI's client is recognised.

use super::encoder::TanStackEncoder;
use crate::http::client::{Client, ClientSigns};
use agui_protocol::encode::{ClientTraits, Encoder};

pub(crate) struct TanStack;

impl Client for TanStack {
    /// It repeats the run's id in a header, and declares no version.
    fn recognises(&self, signs: &ClientSigns<'_>) -> bool {
        let run_id = signs.headers.get("x-run-id");
        signs.protocol_version.is_none()
            && run_id.is_some_and(|id| signs.run_id.is_some_and(|run| id == run.as_str()))
    }

    fn encoder(&self, _: &ClientSigns<'_>, traits: ClientTraits) -> Encoder {
        Encoder::Dialect(Box::new(TanStackEncoder::new(traits)))
    }
}
