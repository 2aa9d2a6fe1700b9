//! AG-UI's protobuf frames: the length as 4 big-endian bytes, then one event as protobuf.
//!
//! The fields are written by hand. Generated message types would need a copy of every text, and
//! their maps lose the order of an object's members, which the reference encoder keeps. The field
//! numbers come from the protocol's `.proto` files; `tests/js/protobuf.test.mjs` compares the bytes
//! of every event with the reference encoder's.

mod fields;
mod payload;
mod writer;

use self::{fields::fields, writer::Writer};
use super::{client_traits::ClientTraits, downgrade::Downgraded};
use crate::{Event, EventType, event::BaseEvent};

/// Writes events as protobuf frames.
#[derive(Debug, Default)]
pub struct Proto {
    pub(super) traits: ClientTraits,
}

impl Proto {
    /// Appends an event's frame.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let downgraded = self.traits.downgrade(event);
        let event = match &downgraded {
            Downgraded::Unchanged => event,
            Downgraded::Changed(event) => event,
            Downgraded::LeftOut => return,
        };
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut writer = Writer { out: std::mem::take(out) };
        encode(event, &mut writer);
        *out = writer.out;
        match u32::try_from(out.len() - start - 4) {
            Ok(length) => out[start..start + 4].copy_from_slice(&length.to_be_bytes()),
            Err(_) => {
                out.truncate(start);
                tracing::error!(
                    event = event.event_type().as_str(),
                    "left out an event that is too large for a protobuf frame"
                );
            }
        }
    }
}

fn encode(event: &Event, w: &mut Writer) {
    let event_type = event.event_type();
    w.message(event_type.proto_numbers().0, |w| {
        fields(event, w.message(1, |w| base_fields(event_type, event.base(), w)))
    });
}

fn base_fields<'w>(event_type: EventType, base: &BaseEvent, w: &'w mut Writer) -> &'w mut Writer {
    w.number(1, event_type.proto_numbers().1).optional_integer(2, base.timestamp());
    w.optional_value(3, base.raw_event()).object(4, base.metadata())
}

/// `tests/js/protobuf.test.mjs` compares with an encoder of AG-UI 1.0. These are the fields that 1.1 adds.
/// Source of the numbers: `spec/1.1/proto-freeze.txt` of AG-UI.
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(event: serde_json::Value) -> Vec<u8> {
        let mut frame = Vec::new();
        Proto::default().event(&serde_json::from_value(event).unwrap(), &mut frame);
        frame.split_off(4)
    }

    #[test]
    fn the_types_of_encrypted_values_have_the_numbers_of_the_specification() {
        let sealed = json!({
            "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "x",
            "encryptedValueType": "a.b",
        });
        let body = b"\x0a\x02\x08\x1e\x1a\x07message\x22\x01m\x2a\x01x\x32\x03a.b";
        assert_eq!(frame(sealed), [&[0xfa, 0x01, body.len() as u8], &body[..]].concat());

        let call = json!({
            "id": "c", "type": "function", "function": { "name": "f", "arguments": "" }, "encryptedValue": "y",
            "encryptedValueType": "c.d",
        });
        let message = json!({
            "id": "m", "role": "assistant", "toolCalls": [call], "encryptedValue": "x", "encryptedValueType": "a.b",
        });
        let frame = frame(json!({ "type": "MESSAGES_SNAPSHOT", "messages": [message] }));
        let has = |bytes: &[u8]| frame.windows(bytes.len()).any(|window| window == bytes);
        assert!(has(b"\x2a\x01y\x32\x03c.d") && has(b"\x5a\x01x\x72\x03a.b"), "{frame:?}");
    }

    #[test]
    fn leftover_members_of_patch_operations_are_sent() {
        let remove = json!({ "op": "remove", "path": "/a", "value": "x", "from": "/b", "acme": 1 });
        let frame = frame(json!({ "type": "STATE_DELTA", "delta": [remove] }));
        let has = |bytes: &[u8]| frame.windows(bytes.len()).any(|window| window == bytes);
        assert!(has(b"\x08\x01\x12\x02/a\x1a\x02/b\x22\x03\x1a\x01x"), "{frame:?}");
    }
}
