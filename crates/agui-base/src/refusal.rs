//! The codes of refused requests. Each variant of an error declares its code, its HTTP status and
//! the steps of a request that it refuses. [`refusals`](crate::refusals) generates what responses,
//! `/openapi.json` and tests need.

#[doc(hidden)]
pub use http::StatusCode;

/// The code of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    pub status: StatusCode,
    /// The code, as clients see it.
    pub name: &'static str,
    pub groups: &'static [RefusalGroup],
}

/// A step of a request that can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalGroup {
    /// The middleware of all routes.
    Every,
    /// The middleware of servers without authentication.
    WithoutAuthentication,
    Authentication,
    /// A request with a body to a route that needs a credential.
    MediaType,
    Url,
    Parameter,
    /// Reading a body and its JSON.
    Body,
    /// Messages of a thread as a response.
    ResponseMemory,
    Agent,
    Store,
    /// The limits of runs, which copies of threads have as well.
    Limits,
    /// The start of a run.
    Start,
    Thread,
    Run,
    Message,
    /// Following a detached run.
    Follow,
    Running,
    Edit,
    /// A thread that begins as a copy.
    Copy,
    File,
    FileDeletion,
    /// Reading a part of a file, or by a signed URL.
    FileRange,
    /// A file to store.
    Upload,
    Loopback,
    Shutdown,
    /// One more stream without an end.
    Streams,
    Socket,
    /// One more follower of a run.
    Followers,
    /// A request in an envelope to no route.
    Envelope,
    /// A chat completion.
    Completion,
}

/// An error whose variants refuse requests. [`refusals`](crate::refusals) implements it.
pub trait RefusalCodes {
    /// Returns the code of the refusal, with its status.
    fn refusal_code(&self) -> ErrorCode;

    /// Returns the codes of all variants.
    fn refusal_codes() -> Vec<ErrorCode>;
}

/// Declares an error. Each variant has `#[error(…)]` for its text, and then `#[refusal(STATUS, "code", Group, …)]`, or
/// `#[refusal(Type)]` if it has the codes of the error in it.
#[doc(hidden)]
#[macro_export]
macro_rules! refusals {
    (
        $(#[$outer:meta])*
        $vis:vis enum $name:ident {$(
            $(#[doc = $doc:literal])*
            #[error($($text:tt)*)]
            #[refusal($($code:tt)*)]
            $variant:ident $(($($tuple:tt)*))? $({$($fields:tt)*})?
        ),* $(,)?}
    ) => {
        $(#[$outer])*
        $vis enum $name {$(
            $(#[doc = $doc])*
            #[error($($text)*)]
            $variant $(($($tuple)*))? $({$($fields)*})?,
        )*}

        impl $crate::refusal::RefusalCodes for $name {
            fn refusal_code(&self) -> $crate::refusal::ErrorCode {
                match self {$(
                    $crate::refusals!(@pattern inner $variant $($code)*) =>
                        $crate::refusals!(@code inner $($code)*),
                )*}
            }

            fn refusal_codes() -> Vec<$crate::refusal::ErrorCode> {
                let codes: [Vec<_>; _] = [$($crate::refusals!(@codes $($code)*)),*];
                codes.concat()
            }
        }
    };
    (@pattern $inner:ident $variant:ident $type:ident) => { Self::$variant($inner) };
    (@pattern $inner:ident $variant:ident $($code:tt)*) => { Self::$variant { .. } };
    (@code $inner:ident $type:ident) => { $crate::refusal::RefusalCodes::refusal_code($inner) };
    (@code $inner:ident $status:ident, $code:literal, $($group:ident),+) => {
        $crate::refusal::ErrorCode {
            status: $crate::refusal::StatusCode::$status,
            name: $code,
            groups: &[$($crate::refusal::RefusalGroup::$group),+],
        }
    };
    (@codes $type:ident) => { <$type as $crate::refusal::RefusalCodes>::refusal_codes() };
    (@codes $($code:tt)*) => { vec![$crate::refusals!(@code inner $($code)*)] };
}
