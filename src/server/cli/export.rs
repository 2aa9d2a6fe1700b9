//! `agui-server export`: writes the detached runs that a server has stored as recordings.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::Path,
};

use reqwest::{
    Response, StatusCode,
    header::{CONTENT_DISPOSITION, HeaderValue},
};
use serde::Deserialize;

use super::{
    arguments::{ExportArguments, TargetOptions},
    output::{print_line, print_warning},
    server_client::{next_piece, require_success},
    target::{RunTarget, UrlMeaning},
};
use agui_base::private_file::private_file_options;

#[derive(Deserialize)]
struct ExportedThread {
    /// The newest run first.
    runs: Vec<ExportedRun>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportedRun {
    run_id: String,
    detached: bool,
    status: String,
}

/// Writes one run, or all detached runs of a thread that have ended and whose logs are stored.
pub(super) async fn export_runs(arguments: ExportArguments) -> Result<(), Box<dyn Error>> {
    let options = TargetOptions { key_env: arguments.key_env, ..TargetOptions::default() };
    let server =
        RunTarget::open("--from", Some(&arguments.from), UrlMeaning::Server, &options).await?;
    let out = arguments.out.as_deref();
    if let Some(run) = &arguments.run {
        let response =
            server.get(&["threads", &arguments.thread, "runs", run, "recording"]).await?;
        return write(require_success(response).await?, out).await;
    }
    let runs = detached_runs(&server, &arguments.thread).await?;
    if runs.len() > 1 && !out.is_some_and(is_folder) {
        let problem = format!(
            "the thread has {} detached runs: name one, or name a folder with --out",
            runs.len()
        );
        return Err(problem.into());
    }
    let mut written = 0;
    for run in &runs {
        let response =
            server.get(&["threads", &arguments.thread, "runs", run, "recording"]).await?;
        if response.status() == StatusCode::GONE {
            print_warning(&format!("the log of run {run:?} was removed"));
            continue;
        }
        write(require_success(response).await?, out).await?;
        written += 1;
    }
    if written == 0 {
        return Err("the thread has no detached run that has ended and whose log is stored".into());
    }
    Ok(())
}

/// Returns the detached runs of a thread that have ended, the oldest first.
async fn detached_runs(server: &RunTarget, thread: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let thread: ExportedThread = server.read(&["threads", thread], &[]).await?;
    let ended = thread.runs.into_iter().rev().filter(|run| run.detached && run.status != "running");
    Ok(ended.map(|run| run.run_id).collect())
}

fn is_folder(out: &Path) -> bool {
    out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/')
}

/// Writes a recording to a file, to a folder under its usual name, or to the standard output.
async fn write(response: Response, out: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let Some(out) = out else { return copy(response, &mut io::stdout().lock()).await };
    let path = if is_folder(out) {
        fs::create_dir_all(out)
            .map_err(|error| format!("cannot create {}: {error}", out.display()))?;
        &out.join(file_name(response.headers().get(CONTENT_DISPOSITION))?)
    } else {
        out
    };
    // A file with the final name is always whole.
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let cannot_write = |error| format!("cannot write {}: {error}", path.display());
    let mut file =
        private_file_options().write(true).truncate(true).open(&partial).map_err(cannot_write)?;
    if let Err(error) = copy(response, &mut file).await {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    fs::rename(&partial, path).map_err(cannot_write)?;
    print_line(&path.display().to_string());
    Ok(())
}

async fn copy(mut response: Response, output: &mut impl Write) -> Result<(), Box<dyn Error>> {
    while let Some(piece) = next_piece(&mut response).await? {
        output.write_all(&piece).map_err(|error| format!("cannot write the recording: {error}"))?;
    }
    Ok(output.flush()?)
}

/// Returns the name that a server gives a recording. Names that could lead out of the folder are refused.
fn file_name(disposition: Option<&HeaderValue>) -> Result<String, Box<dyn Error>> {
    let disposition = disposition.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = disposition
        .split("filename=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.chars().all(is_plain) && name.ends_with(".jsonl") && !name.starts_with('.') {
        Ok(name.to_owned())
    } else {
        Err(format!("the server gives the recording an invalid name: {name:?}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let name = |disposition: &'static str| {
            file_name(Some(&HeaderValue::from_static(disposition))).ok()
        };
        assert_eq!(name("attachment; filename=\"a-1_b.jsonl\"").as_deref(), Some("a-1_b.jsonl"));
        for name in [
            name("attachment; filename=\"../a.jsonl\""),
            name("attachment; filename=\"/tmp/a.jsonl\""),
            name("attachment; filename=\"a\\\\b.jsonl\""),
            name("attachment; filename=\".jsonl\""),
            name("attachment; filename=\".bashrc\""),
            name("attachment"),
            file_name(None).ok(),
        ] {
            assert_eq!(name, None);
        }
    }
}
