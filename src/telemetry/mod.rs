//! Observability: the logs of the process. The library starts nothing by itself; the command does.

pub mod logs;
