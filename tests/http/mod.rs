//! The server over real sockets, with well-behaved and hostile clients.

mod addresses;
mod caching;
mod cors;
mod errors;
mod files;
mod foreign_pages;
mod index;
mod limits;
mod openapi;
mod playground;
mod shared_files;
mod stream;
