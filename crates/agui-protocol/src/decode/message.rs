//! Messages, by role.

use serde::de::{MapAccess, SeqAccess};

use super::{
    diagnostics::Ignored,
    object::{Members, WireObject},
    path::JsonPath,
    tagged::Tagged,
    value::{FromJson, from_name, read_items},
};
use crate::{Message, Messages, Role};

impl<'de> FromJson<'de> for Messages {
    const EXPECTED: &'static str = "an array";
    fn from_list<A: SeqAccess<'de>>(
        path: JsonPath<'_>,
        items: A,
    ) -> Result<Option<Self>, A::Error> {
        // Avoids moving a long history as its list grows. Messages are rarely shorter than 200 bytes; the maximum bounds
        // the memory that a body without messages can claim.
        let mut list = Vec::with_capacity((path.diagnostics.body_len / 200).min(2048));
        read_items(path, items, |message: Option<Message>| list.extend(message))?;
        Ok(Some(list.into()))
    }
}

impl Tagged for Message {
    const TAG: &'static str = "role";
    const IGNORED: fn(&mut Ignored) -> &mut usize = |ignored| &mut ignored.messages;
    type Kind = Role;

    fn kind(tag: &str) -> Option<Role> {
        from_name(tag)
    }

    fn read<'de, A: MapAccess<'de>>(
        role: Role,
        members: Members<'_, 'de, A>,
    ) -> Result<Option<Self>, A::Error> {
        Ok(Some(match role {
            Role::Developer => Self::Developer(WireObject::read(members)?),
            Role::System => Self::System(WireObject::read(members)?),
            Role::Assistant => Self::Assistant(WireObject::read(members)?),
            Role::User => Self::User(WireObject::read(members)?),
            Role::Tool => Self::Tool(WireObject::read(members)?),
            Role::Activity => Self::Activity(WireObject::read(members)?),
            Role::Reasoning => Self::Reasoning(WireObject::read(members)?),
        }))
    }
}
