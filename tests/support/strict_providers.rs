//! The rules of `strict.rs` for tests in other languages: reads requests from the standard input, a
//! JSON object `{path, headers, body}` a line, and writes a line for each: the reason for which the
//! provider would refuse it, or `null`. With the argument `plain`, it checks like a server without
//! other paths and strict tools.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

pub mod strict;

use std::io;

use serde_json::{Value, json};

pub mod provider {
    pub struct Recorded {
        pub path: String,
        pub headers: http::HeaderMap,
        pub body: serde_json::Value,
    }
}

fn main() {
    let is_plain = std::env::args().nth(1).is_some_and(|argument| argument == "plain");
    let check = if is_plain { strict::refusal } else { strict::refusal_of_known_paths };
    for line in io::stdin().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let headers = request["headers"].as_object().unwrap().iter();
        let recorded = provider::Recorded {
            path: request["path"].as_str().unwrap().to_owned(),
            headers: headers
                .map(|(name, value)| {
                    (name.parse().unwrap(), value.as_str().unwrap().parse().unwrap())
                })
                .collect(),
            body: request["body"].clone(),
        };
        println!("{}", json!(check(&recorded)));
    }
}
