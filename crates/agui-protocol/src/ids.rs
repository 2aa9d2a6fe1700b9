//! The protocol's identifiers, one type each, so that the compiler tells them apart. Any text is valid, also the empty
//! one. Cloning does not allocate.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident $(, random $prefix:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the text, which clones share.
            pub fn shared(&self) -> &Arc<str> {
                &self.0
            }

            /// Returns whether two identifiers are equal. Faster than `==` if one usually is a clone of the other.
            pub fn is(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || self == other
            }

            $(
                #[doc = concat!("Returns a new identifier: `", $prefix, "_` and 32 random hexadecimal digits.")]
                pub fn random() -> Self {
                    let mut text = [0; $prefix.len() + 33];
                    text[..$prefix.len()].copy_from_slice($prefix.as_bytes());
                    text[$prefix.len()] = b'_';
                    uuid::Uuid::new_v4().simple().encode_lower(&mut text[$prefix.len() + 1..]);
                    Self(String::from_utf8_lossy(&text).into())
                }
            )?
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        /// Quoted and escaped, so that an identifier from a client cannot break a log line.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

identifier! {
    /// Identifies a conversation. Chosen by the application, stable across runs.
    ThreadId
}
identifier! {
    /// Identifies one run of a thread.
    RunId, random "run"
}
identifier! {
    /// Identifies a message. Unique within its thread, also across runs.
    MessageId
}
identifier! {
    /// Identifies a tool call. Its result and its interrupts refer to it.
    ToolCallId, random "call"
}
identifier! {
    /// Identifies one invocation of a subagent. Never reused within a run.
    SubagentRunId, random "sub"
}
identifier! {
    /// Identifies an interrupt. A resume entry refers to it.
    InterruptId, random "int"
}

impl MessageId {
    /// Returns a new identifier: a UUID, because some clients, such as the Rust crate `ag-ui-client`, read no other.
    pub fn random() -> Self {
        Self::from(&*uuid::Uuid::new_v4().hyphenated().encode_lower(&mut [0; 36]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_have_their_prefix_and_differ() {
        let (a, b) = (ToolCallId::random(), ToolCallId::random());
        assert!(a.starts_with("call_") && a.len() == 37, "{a}");
        assert_ne!(a, b);
    }

    #[test]
    fn random_ids_of_messages_are_uuids() {
        let (a, b) = (MessageId::random(), MessageId::random());
        assert!(uuid::Uuid::parse_str(&a).is_ok() && a.len() == 36, "{a}");
        assert_ne!(a, b);
    }

    #[test]
    fn debug_output_escapes_control_characters() {
        assert_eq!(format!("{:?}", ThreadId::from("a\nb\u{1b}[31m")), r#""a\nb\u{1b}[31m""#);
    }
}
