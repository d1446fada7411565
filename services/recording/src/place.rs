//! The file that a recording is written to. What was there stays until the recording has begun, whatever ends the recorder before.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file that holds back what is written to it until the recording begins, where another one is there under its name. It is opened and
/// not replaced: its owner, its permissions and its other names stay.
#[derive(Debug)]
pub(crate) struct Place {
    file: File,
    held: Option<Vec<u8>>,
    /// The file, where it was not there before.
    made: Option<PathBuf>,
}

impl Place {
    /// Opens the file, which is made where there is none.
    pub(crate) fn open(path: &Path) -> io::Result<Place> {
        match File::options().write(true).open(path) {
            Ok(file) => {
                let held = file.metadata()?.is_file().then(Vec::new);
                Ok(Place { file, held, made: None })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = File::create(path)?;
                Ok(Place { file, held: None, made: Some(path.canonicalize()?) })
            }
            Err(error) => Err(error),
        }
    }

    /// A file that is there or not and written from now on.
    pub(crate) fn create(path: &Path) -> io::Result<Place> {
        let mut place = Place::open(path)?;
        place.begin()?;
        Ok(place)
    }

    /// The recording has begun: what was held back takes the place of what was there. Where it cannot be written, that stays.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.made = None;
        let Some(held) = self.held.take() else { return Ok(()) };
        self.file.write_all_at(&held, 0)?;
        self.file.set_len(held.len() as u64)?;
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(held.len() as u64)).map(drop)
    }
}

impl Drop for Place {
    /// Of a recording that never began nothing is left.
    fn drop(&mut self) {
        let Some(made) = &self.made else { return };
        let identity = |it: std::fs::Metadata| (it.dev(), it.ino());
        let ours = self.file.metadata().map(identity).ok();
        if ours.is_some() && ours == made.symlink_metadata().map(identity).ok() {
            let _ = std::fs::remove_file(made);
        }
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) => held.write(bytes),
            None => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_was_there_stays_until_the_recording_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("f"), folder.path().join("other"));
        for old in ["", "old", "older than what comes"] {
            fs::write(&path, old).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
            let _ = fs::remove_file(&other);
            fs::hard_link(&path, &other).expect("linked");
            let mut place = Place::open(&path).expect("opened");
            place.write_all(b"head").expect("held");
            place.flush().expect("flushed");
            assert_eq!(fs::read_to_string(&path).expect("there"), old);
            place.begin().expect("begun");
            assert_eq!(fs::read_to_string(&path).expect("there"), "head");
            place.write_all(b" and more").expect("written");
            drop(place);
            assert_eq!(fs::read_to_string(&other).expect("there"), "head and more");
            assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o640);
            drop(Place::open(&path).expect("opened"));
            assert_eq!(fs::read_to_string(&path).expect("there"), "head and more");
        }
    }

    #[test]
    fn only_what_was_made_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        drop(Place::open(&at("new")).expect("made"));
        assert!(!at("new").exists());
        symlink("target", at("link")).expect("linked");
        let mut place = Place::open(&at("link")).expect("made");
        place.write_all(b"head").expect("written");
        assert!(at("target").exists());
        drop(place);
        assert!(!at("target").exists() && at("link").is_symlink());
        symlink("/dev/null", at("device")).expect("linked");
        let mut device = Place::open(&at("device")).expect("opened");
        device.write_all(b"head").expect("written");
        drop(device);
        assert!(at("device").exists());
        // Another file in its place is not ours.
        let place = Place::open(&at("moved")).expect("made");
        fs::rename(at("moved"), at("elsewhere")).expect("moved");
        fs::write(at("moved"), "theirs").expect("written");
        drop(place);
        assert!(at("moved").exists() && at("elsewhere").exists());
        let mut place = Place::create(&at("kept")).expect("made");
        place.write_all(b"all").expect("written");
        drop(place);
        assert_eq!(fs::read_to_string(at("kept")).expect("there"), "all");
    }
}
