//! Enums whose values have names: in JSON, metrics and logs.

/// Declares an enum, with the name of each value beside it.
macro_rules! named_enum {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $type {
            $($(#[$doc])* $value,)*
        }

        impl $type {
            #[allow(dead_code, reason = "not all enums have a list")]
            pub(crate) const ALL: &[Self] = &[$(Self::$value,)*];

            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }
    };
}
pub(crate) use named_enum;
