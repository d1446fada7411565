//! Files of a namespace: its devices in `/sys/class/net`, its settings in `/proc/sys/net`.

use super::namespace::inside_with_sysfs;
use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// What `file` says inside the namespace, without the newline.
pub(crate) fn read(namespace: &Path, file: &Path) -> Result<String, Error> {
    inside_with_sysfs(namespace, || {
        fs::read_to_string(file)
            .map(|text| text.trim_end().to_owned())
            .map_err(|error| Error::io(format!("read({})", file.display()), &error, ""))
    })
}

/// A file of a device.
pub(crate) fn file_of(device: &str, file: &str) -> PathBuf {
    Path::new("/sys/class/net").join(device).join(file)
}

/// The name of the device with this number inside the namespace; `None` where there is none.
pub(crate) fn name_of(namespace: &Path, device: u32) -> Result<Option<String>, Error> {
    inside_with_sysfs(namespace, || {
        let is_it = |name: &String| {
            fs::read_to_string(file_of(name, "ifindex")).is_ok_and(|text| text.trim().parse() == Ok(device))
        };
        Ok(crate::machine::names_in("/sys/class/net").into_iter().find(is_it))
    })
}

/// Writes into `file` inside the namespace.
pub(crate) fn write(namespace: &Path, file: &Path, value: &[u8]) -> Result<(), Error> {
    inside_with_sysfs(namespace, || {
        fs::write(file, value).map_err(|error| {
            let value = String::from_utf8_lossy(value);
            Error::io(format!("write({}, {value:?})", file.display()), &error, "run as root")
        })
    })
}
