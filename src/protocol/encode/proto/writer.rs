//! Writes protobuf fields, and `google.protobuf.Value` and `Struct`.

use serde_json::Value;

use crate::protocol::JsonObject;

/// `number` and `text` write fields of implicit presence, which are left out if they are zero or empty.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    pub(super) fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, VARINT);
            self.varint(value);
        }
    }

    pub(super) fn optional_integer(&mut self, field: u32, value: Option<i64>) {
        if let Some(value) = value {
            self.key(field, VARINT);
            self.varint(value as u64);
        }
    }

    pub(super) fn optional_flag(&mut self, field: u32, value: Option<bool>) {
        if let Some(value) = value {
            self.key(field, VARINT);
            self.varint(u64::from(value));
        }
    }

    pub(super) fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.repeated_text(field, text);
        }
    }

    pub(super) fn optional_text(&mut self, field: u32, text: Option<&str>) {
        if let Some(text) = text {
            self.repeated_text(field, text);
        }
    }

    /// Writes a text even if it is empty, such as one of a list.
    pub(super) fn repeated_text(&mut self, field: u32, text: &str) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Reserves one byte for the length, which is known only at the end; a message of 128 bytes or more is then moved.
    pub(super) fn message(&mut self, field: u32, body: impl FnOnce(&mut Writer<'_>)) {
        self.key(field, LENGTH_DELIMITED);
        let start = self.out.len();
        self.out.push(0);
        body(&mut Writer { out: self.out });
        let mut length = self.out.len() - start - 1;
        if length < 0x80 {
            self.out[start] = length as u8;
            return;
        }
        let (mut bytes, mut count) = ([0; 10], 0);
        while length >= 0x80 {
            bytes[count] = length as u8 | 0x80;
            length >>= 7;
            count += 1;
        }
        bytes[count] = length as u8;
        self.out.splice(start..=start, bytes[..=count].iter().copied());
    }

    pub(super) fn optional_value(&mut self, field: u32, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.message(field, |w| w.value(value));
        }
    }

    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => {
                self.key(1, VARINT);
                self.varint(0);
            }
            Value::Number(number) => {
                self.key(2, FIXED_64);
                self.out.extend_from_slice(&number.as_f64().unwrap_or(f64::NAN).to_le_bytes());
            }
            Value::String(text) => self.repeated_text(3, text),
            Value::Bool(flag) => self.optional_flag(4, Some(*flag)),
            Value::Object(object) => self.message(5, |w| w.object(object)),
            Value::Array(items) => {
                self.message(6, |w| items.iter().for_each(|item| w.message(1, |w| w.value(item))));
            }
        }
    }

    pub(super) fn object(&mut self, object: &JsonObject) {
        for (name, value) in object {
            self.message(1, |w| {
                w.text(1, name);
                w.message(2, |w| w.value(value));
            });
        }
    }
}
