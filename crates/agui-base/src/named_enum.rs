//! Enums whose values have names: in JSON, metrics and logs.

/// Declares an enum, with the name of each value beside it.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $value,)*
        }

        impl $type {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            /// Returns the name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }
    };
}
