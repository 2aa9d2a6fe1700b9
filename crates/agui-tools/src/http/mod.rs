//! Tools that call a web service, as the configuration declares them.
//!
//! A call is one request. Arguments are inserted into the places of the URL; the others go into the body as JSON, or
//! into the query if the method has no body. A list in the query is repeated (`tag=a&tag=b`); a missing argument
//! leaves its whole pair out.
//!
//! **Only the configured host.** Arguments cannot change the configured scheme, host and port,
//! redirects are
//! not followed, and proxies from the environment are not used. Secrets in headers reach neither a log nor a model:
//! they are removed from responses that repeat them.

mod options;
mod response;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
mod url_template;

pub use self::{
    options::{HttpMethod, HttpToolOptions},
    tool::HttpTool,
};
