//! Writes protobuf fields, and `google.protobuf.Value` and `Struct`.

use serde_json::Value;

use crate::JsonObject;

/// `number` and `text` write fields of implicit presence, which are left out if they are zero or empty.
pub(super) struct Writer {
    pub(super) out: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

impl Writer {
    fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
        self
    }

    fn key(&mut self, field: u32, wire_type: u32) -> &mut Self {
        self.varint(u64::from(field << 3 | wire_type))
    }

    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        if value == 0 { self } else { self.key(field, VARINT).varint(value) }
    }

    pub(super) fn optional_integer(&mut self, field: u32, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.key(field, VARINT).varint(value as u64),
            None => self,
        }
    }

    pub(super) fn optional_flag(&mut self, field: u32, value: Option<bool>) -> &mut Self {
        self.optional_integer(field, value.map(i64::from))
    }

    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        if text.is_empty() { self } else { self.present_text(field, text) }
    }

    pub(super) fn optional_text(
        &mut self,
        field: u32,
        text: &Option<impl AsRef<str>>,
    ) -> &mut Self {
        self.texts(field, text.as_slice())
    }

    pub(super) fn texts(&mut self, field: u32, texts: &[impl AsRef<str>]) -> &mut Self {
        texts.iter().fold(self, |w, text| w.present_text(field, text.as_ref()))
    }

    /// Writes a text even if it is empty.
    pub(super) fn present_text(&mut self, field: u32, text: &str) -> &mut Self {
        self.key(field, LENGTH_DELIMITED).varint(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    /// Reserves one byte for the length, which is known only at the end; a message of 128 bytes or more is then moved.
    pub(super) fn message(
        &mut self,
        field: u32,
        body: impl FnOnce(&mut Self) -> &mut Self,
    ) -> &mut Self {
        self.key(field, LENGTH_DELIMITED);
        let start = self.out.len();
        self.out.push(0);
        body(self);
        let mut length = self.out.len() - start - 1;
        if length < 0x80 {
            self.out[start] = length as u8;
            return self;
        }
        let (mut bytes, mut count) = ([0; 10], 0);
        while length >= 0x80 {
            bytes[count] = length as u8 | 0x80;
            length >>= 7;
            count += 1;
        }
        bytes[count] = length as u8;
        self.out.splice(start..=start, bytes[..=count].iter().copied());
        self
    }

    /// Writes one message for each item.
    pub(super) fn messages<T>(
        &mut self,
        field: u32,
        items: impl IntoIterator<Item = T>,
        body: impl Fn(T, &mut Self) -> &mut Self,
    ) -> &mut Self {
        items.into_iter().fold(self, |w, item| w.message(field, |w| body(item, w)))
    }

    pub(super) fn optional_value(&mut self, field: u32, value: Option<&Value>) -> &mut Self {
        self.messages(field, value.filter(|value| !value.is_null()), |value, w| {
            w.fields_of_value(value)
        })
    }

    pub(super) fn value(&mut self, field: u32, value: &Value) -> &mut Self {
        self.message(field, |w| w.fields_of_value(value))
    }

    fn fields_of_value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.key(1, VARINT).varint(0),
            Value::Number(number) => {
                self.key(2, FIXED_64);
                self.out.extend_from_slice(&number.as_f64().unwrap_or(f64::NAN).to_le_bytes());
                self
            }
            Value::String(text) => self.present_text(3, text),
            Value::Bool(flag) => self.optional_flag(4, Some(*flag)),
            Value::Object(object) => self.object(5, Some(object)),
            Value::Array(items) => {
                self.message(6, |w| w.messages(1, items, |item, w| w.fields_of_value(item)))
            }
        }
    }

    pub(super) fn object(&mut self, field: u32, object: Option<&JsonObject>) -> &mut Self {
        self.messages(field, object, |object, w| {
            w.messages(1, object, |(name, value), w| w.text(1, name).value(2, value))
        })
    }
}
