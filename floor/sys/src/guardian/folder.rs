//! Folders for temporary files that are removed however their process ends.

use super::mark::{Mark, Owner};
use super::program;
use crate::Error;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A folder that only this user can enter, removed when dropped, and by the guardian of this program where it is killed.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// A folder for temporary files whose process is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOverFolder {
    /// Where it is.
    pub path: PathBuf,
    /// The process that made it.
    pub run: u32,
}

/// How long a folder may go on to fill while it is removed.
const BUSY: Duration = Duration::from_secs(1);

impl Folder {
    /// A folder in `$TMPDIR`, or in `/tmp`.
    ///
    /// # Errors
    /// Where it cannot be made, or the guardian cannot note it (then it is not made).
    pub fn create() -> Result<Folder, Error> {
        Folder::create_in(&std::env::temp_dir(), "TMPDIR")
    }

    /// A folder for a socket: in `$XDG_RUNTIME_DIR` where that is a folder, else as [`Folder::create`].
    ///
    /// # Errors
    /// As [`Folder::create`].
    pub fn for_socket() -> Result<Folder, Error> {
        match runtime() {
            Some(parent) => Folder::create_in(&parent, "XDG_RUNTIME_DIR"),
            None => Folder::create(),
        }
    }

    fn create_in(parent: &Path, variable: &str) -> Result<Folder, Error> {
        let path = parent.join(Mark::fresh()?.to_string());
        program::note_folder(&path)?;
        // It fails where such a name is there: it cannot have been prepared by others.
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            let remedy = format!("set {variable} to a folder that you may write");
            Error::io(format!("mkdir({})", path.display()), &error, remedy)
        })?;
        Ok(Folder(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the guardian, or told by `doctor`.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn runtime() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir())
}

/// The folders for temporary files, in `$XDG_RUNTIME_DIR`, `$TMPDIR` and `/tmp`, of processes that are gone.
#[must_use]
pub fn left_over_folders() -> Vec<LeftOverFolder> {
    let mut places: Vec<PathBuf> = runtime().into_iter().collect();
    places.extend([std::env::temp_dir(), PathBuf::from("/tmp")]);
    places.sort();
    places.dedup();
    left_over_folders_in(&places)
}

fn left_over_folders_in(places: &[PathBuf]) -> Vec<LeftOverFolder> {
    let mut found = Vec::new();
    for entry in places.iter().flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten()) {
        let mark = entry.file_name().to_str().and_then(Mark::parse);
        if let Some(mark) = mark.filter(|mark| mark.owner() == Owner::Gone)
            && is_ours(&entry.path())
        {
            found.push(LeftOverFolder { path: entry.path(), run: mark.process() });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Removes them; those that could be removed, and the reasons for the others.
#[must_use]
pub fn remove_left_over_folders() -> (Vec<LeftOverFolder>, Vec<String>) {
    let (mut removed, mut refused) = (Vec::new(), Vec::new());
    for folder in left_over_folders() {
        match remove(&folder.path) {
            Ok(_) => removed.push(folder),
            Err(why) => refused.push(why),
        }
    }
    (removed, refused)
}

/// A directory and no link to one, that this user has made.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|facts| facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw())
}

/// Removes a folder whose name is a mark; whether it was there.
pub(super) fn remove(path: &Path) -> Result<bool, String> {
    let is_marked = path.file_name().and_then(|name| Mark::parse(name.to_str()?)).is_some();
    if !path.exists() {
        return Ok(false);
    }
    if !is_marked || !is_ours(path) {
        return Err(format!("rmdir({}): it is not a folder of ours; remove it by hand", path.display()));
    }
    let end = Instant::now() + BUSY;
    loop {
        match fs::remove_dir_all(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            // Another program still writes into it.
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(format!("rmdir({}): {error}", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_value() {
        let folder = Folder::create().unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("a"), "").unwrap();
        assert!(is_ours(&path) && fs::metadata(&path).unwrap().mode() & 0o777 == 0o700);
        assert!(left_over_folders().iter().all(|one| one.path != path), "its process lives");
        drop(folder);
        assert!(!path.exists());
        assert_eq!(remove(&path), Ok(false));
    }

    #[test]
    fn only_folders_of_ours_whose_process_is_gone_are_left_over() {
        let place = tempfile::tempdir().unwrap();
        let own = Mark::fresh().unwrap().to_string();
        let mut words: Vec<&str> = own.split('-').collect();
        words[4] = "1";
        let gone = words.join("-");
        words[2] = "1";
        let elsewhere = words.join("-");
        for name in [own.as_str(), &gone, &elsewhere, "horolog-somebody"] {
            fs::create_dir_all(place.path().join(name).join("inner")).unwrap();
        }
        let link = place.path().join(gone.replace("-1-", "-2-"));
        std::os::unix::fs::symlink(place.path().join("horolog-somebody"), &link).unwrap();
        let found = left_over_folders_in(&[place.path().to_owned()]);
        let path = place.path().join(&gone);
        assert_eq!(found, [LeftOverFolder { path: path.clone(), run: std::process::id() }]);
        assert_eq!(remove(&path), Ok(true));
        for kept in [place.path().join("horolog-somebody"), link] {
            assert!(remove(&kept).is_err() && kept.join("inner").exists(), "{}", kept.display());
        }
    }
}
