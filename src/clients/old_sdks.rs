//! AG-UI's own SDKs from before 1.0, and what is built on them.

use crate::http::{
    accepted,
    client::{Client, ClientSigns},
    client_options::SdkVersion,
};
use agui_protocol::encode::{ClientTraits, ReasoningEvents, SSE_MEDIA_TYPE, StreamVersion};

pub(super) struct OldSdk {
    /// The oldest version that is served.
    pub(super) oldest: SdkVersion,
}

impl Client for OldSdk {
    /// Requests written by hand declare no version either, and should get all of AG-UI. But the SDKs
    /// always send `forwardedProps`, even if empty, and accept the stream's type, or this and JSON
    /// (Dart, Kotlin).
    fn recognises(&self, signs: &ClientSigns<'_>) -> bool {
        let mut types = accepted(signs.headers).flat_map(|value| value.split(',')).map(str::trim);
        signs.protocol_version.is_none()
            && signs.has_forwarded_props
            && accepted(signs.headers).any(|value| value.contains(SSE_MEDIA_TYPE))
            && types.all(|accepted| [SSE_MEDIA_TYPE, "application/json"].contains(&accepted))
    }

    /// They end a run at what they do not know.
    fn traits(&self, _: &ClientSigns<'_>) -> ClientTraits {
        let reasoning = match self.oldest {
            oldest if oldest < SdkVersion::WITH_THINKING => ReasoningEvents::LeftOut,
            oldest if oldest < SdkVersion::WITH_REASONING => ReasoningEvents::Thinking,
            _ => ReasoningEvents::Messages,
        };
        ClientTraits {
            version: StreamVersion::Legacy,
            lacks_subagents: false,
            reasoning,
            lacks_activities: self.oldest < SdkVersion::WITH_ACTIVITIES,
            lacks_media: self.oldest < SdkVersion::WITH_MEDIA,
        }
    }
}
