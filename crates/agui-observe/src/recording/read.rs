//! Reads recordings.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use super::{Line, Recording, RecordingHead, VERSION};

/// The largest recording that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// A recording that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The folder has no recordings.
    #[error("{} has no recordings (*.jsonl)", .0.display())]
    Empty(PathBuf),
    /// A line is not a part of a recording.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// Reads all recordings of a folder, in the order of their names.
///
/// # Errors
/// A file cannot be read, or there is none.
pub fn read_folder(folder: &Path) -> Result<Vec<Recording>, RecordingError> {
    let io_error = |error| RecordingError::Io { path: folder.to_owned(), error };
    let entries = folder.read_dir().map_err(io_error)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(io_error)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    if paths.is_empty() {
        return Err(RecordingError::Empty(folder.to_owned()));
    }
    paths.sort();
    paths.iter().map(|path| Recording::read(path)).collect()
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is not a part of a recording.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let io_error = |error| RecordingError::Io { path: path.to_owned(), error };
        let at_line = |line: usize, problem: String| RecordingError::Line {
            path: path.to_owned(),
            line,
            problem,
        };
        let file = File::open(path).map_err(io_error)?;
        if file.metadata().map_err(io_error)?.len() > MAX_FILE_BYTES {
            let problem = format!("the file has more than {MAX_FILE_BYTES} bytes");
            return Err(io_error(io::Error::new(io::ErrorKind::FileTooLarge, problem)));
        }
        let mut lines = (1..).zip(BufReader::new(file.take(MAX_FILE_BYTES)).lines());
        let Some((_, first)) = lines.next() else {
            return Err(at_line(1, "the file is empty".to_owned()));
        };
        let head: RecordingHead = serde_json::from_str(&first.map_err(io_error)?)
            .map_err(|error| at_line(1, format!("expected the head of a recording: {error}")))?;
        if head.recording != VERSION {
            let problem = format!(
                "the format has version {}; this program reads version {VERSION}",
                head.recording
            );
            return Err(at_line(1, problem));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut recording =
            Self { name, head, events: Vec::new(), exchanges: Vec::new(), end: None };
        for (number, line) in lines {
            let line = line.map_err(io_error)?;
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(&line) {
                Ok(Line::Event(event)) => recording.events.push(event),
                Ok(Line::Exchange { exchange }) => recording.exchanges.push(exchange),
                Ok(Line::End { end }) => recording.end = Some(end),
                Err(_) => {
                    let problem = "expected an object with `ms` and an `event` of AG-UI, an `exchange` or an `end`";
                    return Err(at_line(number, problem.to_owned()));
                }
            }
        }
        Ok(recording)
    }
}
