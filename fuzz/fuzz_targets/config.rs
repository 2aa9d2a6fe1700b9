//! Files and variables of the configuration: every error points into the file; reading twice gives the same. A line
//! `#env NAME=VALUE` of the input is an environment variable.
#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use agui_server::config::Sources;
use agui_server_fuzz::{amplified, bounded};
use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("agui-server-fuzz-{}.toml", std::process::id())));

fuzz_target!(|data: &[u8]| {
    let data = amplified(data);
    let Ok(text) = std::str::from_utf8(&data) else { return };
    fs::write(&*FILE, text).expect("the temporary folder is writable");
    let variable = |line: &str| line.strip_prefix("#env ")?.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let sources = Sources {
        file: Some(FILE.clone()),
        environment: text.lines().filter_map(variable).take(4).collect(),
        flags: Vec::new(),
    };
    // Each variable reads all sections again.
    let loaded = bounded(8 * (64 << 10) + 8 * text.len(), || sources.clone().load());
    match loaded {
        Ok(loaded) => {
            let again = sources.load().expect("the same sources");
            assert_eq!(format!("{loaded:?}"), format!("{again:?}"));
        }
        Err(error) => {
            let error = error.to_string();
            let path = FILE.display().to_string();
            if let Some(place) = error.lines().next().and_then(|line| line.strip_prefix(&format!("{path}:"))) {
                let number = place.split(':').next().and_then(|line| line.parse::<usize>().ok());
                let lines = text.matches('\n').count() + 1;
                assert!(number.is_none_or(|number| number <= lines), "line {number:?} of {lines}: {error}");
            }
        }
    }
});
