//! What a client cannot read of a stream.

/// What a client cannot read of the current version. The default is a client that reads all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientTraits {
    /// The version that the stream declares.
    pub version: StreamVersion,
    /// It ends a run at an event that begins or ends a subagent.
    pub lacks_subagents: bool,
    /// The form in which it reads reasoning.
    pub reasoning: ReasoningEvents,
    /// It ends a run at an activity.
    pub lacks_activities: bool,
    /// It ends a run at a user's message that is not one text.
    pub lacks_media: bool,
}

/// A form of reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReasoningEvents {
    /// Messages.
    #[default]
    Messages,
    /// The events of thinking that AG-UI had before. They are no messages.
    Thinking,
    /// The client ends a run at both.
    LeftOut,
}

/// The version of AG-UI in which events are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamVersion {
    /// Before 1.0.
    Legacy,
    /// 1.0.
    V1_0,
    /// 1.1.
    #[default]
    Current,
}

impl ClientTraits {
    /// Returns the traits of a client that declares this version. Without a declaration: of one
    /// that reads the current version.
    pub fn for_declared(version: Option<&str>) -> Self {
        let version = match version {
            Some("1.0") => StreamVersion::V1_0,
            _ => StreamVersion::Current,
        };
        Self { version, ..Self::default() }
    }
}
