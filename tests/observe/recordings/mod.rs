//! Recordings, with the real command: what is written, what is replayed, and what a test of
//! them finds.

mod desk;
mod exchanges;
mod exported;
mod files;
mod replayed;
mod tested;
mod written;

use crate::{provider, running as support, server};
