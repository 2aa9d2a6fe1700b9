//! The folder of the recordings: the names of its files, and the removal of the oldest ones.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use super::options::RecordOptions;
use agui_base::{
    private_file::{create_private_folder, private_file_options},
    text::hex,
};

/// The number of an identifier's characters in a name.
const MAX_ID_CHARS: usize = 32;
/// The ending of whole recordings.
const WHOLE: &str = "jsonl";
/// The ending of recordings whose run has not ended.
const PARTIAL: &str = "jsonl.part";
/// The length of the time at the beginning of a name, such as `20261123T110358.123Z`.
const TIME_CHARS: usize = 20;

/// Returns the name of a new recording, without its ending. Names are in the order of the runs' starts; `number` counts
/// the recordings of this process, for runs that start in the same millisecond.
///
/// Identifiers come from clients, so a name has only their letters, digits, `-` and `_`. A digest
/// distinguishes names that would be equal otherwise.
pub(super) fn file_name(started_at: i64, thread: &str, run: &str, number: u64) -> String {
    name_with_digest(started_at, thread, run, number, std::process::id())
}

/// Returns the name of a file with the recording of a stored run. `number` is the run's number in
/// the store.
pub fn name_of_stored_run(started_at: i64, thread: &str, run: &str, number: i64) -> String {
    let name = name_with_digest(started_at, thread, run, number.unsigned_abs() % 1_000_000, number);
    format!("{name}.{WHOLE}")
}

fn name_with_digest(
    started_at: i64,
    thread: &str,
    run: &str,
    number: u64,
    digested: impl fmt::Display,
) -> String {
    let time = jiff::Timestamp::from_millisecond(started_at).unwrap_or_default();
    let time = format!("{time:.3}").replace(['-', ':'], "");
    let digest = hex(&Sha256::digest(format!("{thread}\n{run}\n{digested}"))[..6]);
    format!("{time}-{number:06}-{}-{}-{digest}", plain(thread), plain(run))
}

fn plain(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    id.chars().take(MAX_ID_CHARS).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Returns whether a file without its ending has the form of [`file_name`]. Other files of the folder are left alone.
fn is_own_name(name: &str) -> bool {
    let Some((time, rest)) = name.split_at_checked(TIME_CHARS) else { return false };
    let has_digit = |at: usize| time.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    (0..8).chain(9..15).chain(16..19).all(has_digit)
        && time.as_bytes().get(8) == Some(&b'T')
        && time.ends_with('Z')
        && rest.starts_with('-')
}

/// The recordings of a folder, with their sizes.
pub(super) struct RecordingFolder {
    pub(super) path: PathBuf,
    options: RecordOptions,
    files: BTreeMap<Arc<str>, RecordingFile>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct RecordingFile {
    bytes: u64,
    /// True if something did not fit.
    is_cut: bool,
}

impl RecordingFolder {
    /// Creates the folder unless it exists, and reads which recordings it has.
    pub(super) fn open(path: &Path, options: RecordOptions) -> io::Result<Self> {
        create_private_folder(path)?;
        let mut folder = Self { path: path.to_owned(), options, files: BTreeMap::new(), bytes: 0 };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let Ok(file_name) = entry.file_name().into_string() else { continue };
            let Some((name, ending)) = file_name.split_once(".jsonl") else { continue };
            if is_own_name(name) && ["", ".part"].contains(&ending) {
                let bytes = entry.metadata()?.len();
                folder.bytes += bytes;
                folder.files.insert(name.into(), RecordingFile { bytes, is_cut: false });
            }
        }
        // Fails now if files cannot be written.
        let probe = path.join(format!(".agui-server-{}", std::process::id()));
        private_file(&probe)?;
        fs::remove_file(probe)?;
        folder.remove_surplus(None);
        Ok(folder)
    }

    /// Begins a recording.
    pub(super) fn create(&mut self, name: &Arc<str>, head: &[u8]) -> io::Result<()> {
        if head.len() as u64 > self.options.max_file_bytes {
            tracing::warn!(
                bytes = head.len(),
                "a run is not recorded: its request is larger than a recording may be"
            );
            return Ok(());
        }
        private_file(&self.partial(name))?.write_all(head)?;
        self.files.insert(name.clone(), RecordingFile::default());
        self.grow(name, head.len());
        self.remove_surplus(Some(name));
        Ok(())
    }

    /// Appends lines, unless the recording would become too large. Does nothing if the recording was removed.
    pub(super) fn append(&mut self, name: &Arc<str>, lines: &[u8]) -> io::Result<()> {
        let Some(file) = self.files.get_mut(name) else { return Ok(()) };
        if file.is_cut || file.bytes + lines.len() as u64 > self.options.max_file_bytes {
            file.is_cut = true;
            return Ok(());
        }
        OpenOptions::new().append(true).open(self.partial(name))?.write_all(lines)?;
        self.grow(name, lines.len());
        self.remove_surplus(Some(name));
        Ok(())
    }

    /// Returns whether something of a recording did not fit.
    pub(super) fn is_cut(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|file| file.is_cut)
    }

    /// Appends the last line, and gives the recording its final name. Returns whether the recording exists.
    pub(super) fn finish(&mut self, name: &Arc<str>, end: &[u8]) -> io::Result<bool> {
        if !self.files.contains_key(name) {
            return Ok(false);
        }
        OpenOptions::new().append(true).open(self.partial(name))?.write_all(end)?;
        fs::rename(self.partial(name), self.whole(name))?;
        self.grow(name, end.len());
        self.remove_surplus(Some(name));
        Ok(true)
    }

    /// Removes a recording.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(file) = self.files.remove(name) {
            self.bytes = self.bytes.saturating_sub(file.bytes);
        }
        // Only one of the two exists. A file that cannot be removed does not count any more.
        let _ = fs::remove_file(self.partial(name));
        let _ = fs::remove_file(self.whole(name));
    }

    fn grow(&mut self, name: &str, bytes: usize) {
        if let Some(file) = self.files.get_mut(name) {
            file.bytes += bytes as u64;
            self.bytes += bytes as u64;
        }
    }

    /// Removes the oldest recordings beyond the limits, but not `current`.
    fn remove_surplus(&mut self, current: Option<&Arc<str>>) {
        while self.files.len() > self.options.max_files
            || self.bytes > self.options.max_folder_bytes
        {
            let Some(oldest) = self.files.keys().find(|name| Some(*name) != current).cloned()
            else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn partial(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.{PARTIAL}"))
    }

    fn whole(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.{WHOLE}"))
    }
}

/// Fails if the file exists.
fn private_file(path: &Path) -> io::Result<File> {
    private_file_options().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_has_nothing_of_an_identifier_that_a_file_system_could_read() {
        let name = file_name(1_795_431_838_123, "../../etc/passwd\0", "run\n.jsonl", 7);
        assert!(
            name.starts_with("20261123T110358.123Z-000007-______etc_passwd_-run__jsonl-"),
            "{name}"
        );
        assert!(is_own_name(&name));
        let long = file_name(0, &"é".repeat(2000), &"x".repeat(2000), 0);
        assert!(long.len() < 120 && is_own_name(&long), "{long}");
        assert_ne!(file_name(0, "a", "b", 1), file_name(0, "a", "b", 2));
        for other in
            ["", "notes", "20261123T110358.123Z", "20261123-110358.123Z-a", "ünïcödeünïcödeünïcöde"]
        {
            assert!(!is_own_name(other), "{other}");
        }
    }

    #[test]
    fn the_oldest_recordings_are_removed_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.jsonl"), "x".repeat(1000)).unwrap();
        let options =
            RecordOptions { max_files: 2, max_folder_bytes: 100, ..RecordOptions::default() };
        let mut recordings = RecordingFolder::open(folder.path(), options.clone()).unwrap();
        let all: Vec<Arc<str>> = (0..4).map(|at| file_name(at, "t", "r", 0).into()).collect();
        for name in &all[..3] {
            recordings.create(name, b"head\n").unwrap();
            recordings.finish(name, b"end\n").unwrap();
        }
        let left = |kept: &[&Arc<str>]| {
            let kept = kept.iter().map(|name| format!("{name}.jsonl"));
            kept.chain(["mine.jsonl".to_owned()]).collect::<Vec<_>>()
        };
        assert_eq!(names(folder.path()), left(&[&all[1], &all[2]]));
        // The same limits hold for what an earlier server has left.
        let mut recordings = RecordingFolder::open(folder.path(), options).unwrap();
        recordings.create(&all[3], &[b'x'; 95]).unwrap();
        recordings.finish(&all[3], b"end\n").unwrap();
        assert_eq!(names(folder.path()), left(&[&all[3]]));
        // One that was removed during its run is not created again.
        recordings.append(&all[0], b"more\n").unwrap();
        recordings.finish(&all[0], b"end\n").unwrap();
        assert_eq!(names(folder.path()), left(&[&all[3]]));
    }
}
