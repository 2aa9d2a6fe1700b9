//! `/playground`: a page that chats with the server's agents and shows their events.
//!
//! The page is built from `web/` into `dist/`, and its files are a part of the program. They need no key and contain no
//! data: the page uses the routes that all clients use, and asks for a key if those need one.

mod assets;
mod options;
mod routes;

pub use options::PlaygroundOptions;
pub(crate) use routes::{PATH, route_set};
