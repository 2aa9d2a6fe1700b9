//! The macro that defines a struct of the protocol, its constructor, and its decoder.

/// Defines a struct from its members. A `lenient` member is required when sent, and has a default
/// when received. An `open` member is any JSON, and absent if `null`. An `optional` member is left
/// out of JSON when absent. A `defaulted` member has attributes of its own. `new` takes the
/// required and the lenient members. A struct with `own_new` writes its constructor on top of the
/// private `bare`. A struct `without_new` has no constructor. A `decoded` struct is a part of the
/// input: [`decode`](crate::decode) reads its members.
macro_rules! wire_struct {
    (@define [$($constructor:tt)*] $decoder:tt $(#[$meta:meta])* $name:ident {
        $($(#[$required_meta:meta])* $required:ident: $required_type:ty,)*
    } $(lenient {
        $($(#[$lenient_meta:meta])* $lenient:ident: $lenient_type:ty,)*
    })? $(open {
        $($(#[$open_meta:meta])* $open:ident,)*
    })? $(optional {
        $($(#[$optional_meta:meta])* $optional:ident: $optional_type:ty,)*
    })? $(defaulted {
        $($(#[$defaulted_meta:meta])* $defaulted:ident: $defaulted_type:ty,)*
    })?) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        $(#[$meta])*
        pub struct $name {
            $($(#[$required_meta])* pub $required: $required_type,)*
            $($(
                $(#[$lenient_meta])*
                #[serde(default)]
                #[schema(required)]
                pub $lenient: $lenient_type,
            )*)?
            $($(
                $(#[$open_meta])*
                #[serde(default, skip_serializing_if = "crate::is_absent")]
                pub $open: Option<serde_json::Value>,
            )*)?
            $($(
                $(#[$optional_meta])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $optional: Option<$optional_type>,
            )*)?
            $($($(#[$defaulted_meta])* pub $defaulted: $defaulted_type,)*)?
        }

        $crate::wire_struct::wire_struct!(
            @construct [$($constructor)*] $name [$($required: $required_type,)* $($($lenient: $lenient_type,)*)?]
            [$($($open,)*)? $($($optional,)*)? $($($defaulted,)*)?]
        );
        $crate::wire_struct::wire_struct!(@decode $decoder $name {
            $(required $required,)* $($(defaulted $lenient,)*)? $($(optional $open,)*)? $($(optional $optional,)*)? $($(defaulted $defaulted,)*)?
        });
    };
    (@construct [] $($members:tt)*) => {};
    (@construct [$($constructor:tt)*] $name:ident [$($required:ident: $type:ty,)*] [$($other:ident,)*]) => {
        impl $name {
            $($constructor)*($($required: impl Into<$type>),*) -> Self {
                Self { $($required: $required.into(),)* $($other: Default::default(),)* }
            }
        }
    };
    (@decode [] $($members:tt)*) => {};
    (@decode [decoded] $name:ident { $($members:tt)* }) => {
        impl $crate::decode::object::WireObject for $name {
            fn read<'de, A: serde::de::MapAccess<'de>>(
                members: $crate::decode::object::Members<'_, 'de, A>,
            ) -> Result<Self, A::Error> {
                Ok($crate::decode::object::read_object!(members => $name { $($members)* }))
            }
        }
    };
    (@constructor $decoder:tt without_new $($definition:tt)*) => {
        $crate::wire_struct::wire_struct!(@define [] $decoder $($definition)*);
    };
    (@constructor $decoder:tt own_new $($definition:tt)*) => {
        $crate::wire_struct::wire_struct!(@define [fn bare] $decoder $($definition)*);
    };
    (@constructor $decoder:tt $($definition:tt)*) => {
        $crate::wire_struct::wire_struct!(@define [
            /// Creates the value with its required members alone.
            pub fn new
        ] $decoder $($definition)*);
    };
    (decoded $($definition:tt)*) => {
        $crate::wire_struct::wire_struct!(@constructor [decoded] $($definition)*);
    };
    ($($definition:tt)*) => { $crate::wire_struct::wire_struct!(@constructor [] $($definition)*); };
}
pub(super) use wire_struct;
