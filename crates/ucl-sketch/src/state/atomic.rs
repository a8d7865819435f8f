//! Files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a temporary file's name ends in.
const SUFFIX: &str = ".ucl-tmp";
/// A temporary file this old belongs to a process that was killed: no save takes so long.
const STALE: Duration = Duration::from_secs(3600);

/// Replaces `path` by a file of these bytes. Whenever the process is killed or the power fails, `path` is the old file or the
/// new one, whole: the bytes go into a temporary file beside it, are forced to the disk, and only then take its name.
///
/// A symbolic link is followed. What is not a regular file (a device, a pipe) is refused, for it would be replaced.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Err(io::Error::other("not a regular file")),
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let Some(name) = target.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = folder.join(temporary_name(name));
    let written = write_new(&temporary, bytes, &target).and_then(|()| fs::rename(&temporary, &target));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(folder)?;
    remove_stale(folder, name);
    Ok(())
}

/// Different for every save of every process, so that two that save at once do not write into one file.
fn temporary_name(name: &std::ffi::OsStr) -> OsString {
    static SAVES: AtomicU64 = AtomicU64::new(0);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{}{SUFFIX}", std::process::id(), SAVES.fetch_add(1, Ordering::Relaxed)));
    temporary
}

fn write_new(path: &Path, bytes: &[u8], replaced: &Path) -> io::Result<()> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match create() {
        // Process numbers come again: this one's former bearer was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()?
        }
        other => other?,
    };
    file.write_all(bytes)?;
    // Whoever was let in stays let in, and nobody else is.
    if let Ok(meta) = fs::metadata(replaced) {
        file.set_permissions(meta.permissions())?;
    }
    file.sync_all()
}

/// A new name is on the disk only when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes what killed processes left of this file. Only tidiness: nothing ever reads it.
fn remove_stale(folder: &Path, name: &std::ffi::OsStr) {
    let Some(prefix) = name.to_str().map(|name| format!(".{name}.")) else { return };
    let stale = |path: &PathBuf| {
        let ours = path.file_name().and_then(|name| name.to_str());
        let ours = ours.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(SUFFIX));
        let age = || fs::metadata(path).and_then(|meta| meta.modified()).ok()?.elapsed().ok();
        ours && age().is_some_and(|age| age > STALE)
    };
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    for path in files.filter(stale) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.ucl");
        for content in [b"old", b"new"] {
            write(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        assert_eq!(names(folder.path()), ["s.ucl"]);
    }

    #[test]
    fn failure_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(&folder.path().join("no-such-folder/s.ucl"), b"x").is_err());
        assert!(write(folder.path(), b"x").is_err(), "a folder is not replaced");
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    /// Leftovers of killed processes are in nobody's way, even one with the very name that is next; old ones go.
    #[test]
    fn leftovers_are_ignored_and_in_time_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.ucl");
        write(&path, b"first").unwrap();
        let (young, old) = (".s.ucl.1-0.ucl-tmp", ".s.ucl.2-0.ucl-tmp");
        for name in [young, old, ".t.ucl.2-0.ucl-tmp"] {
            fs::write(folder.path().join(name), b"half a st").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * STALE;
        for name in [old, ".t.ucl.2-0.ucl-tmp"] {
            File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(long_ago).unwrap();
        }
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), [young, ".t.ucl.2-0.ucl-tmp", "s.ucl"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, b"old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(write(Path::new("/dev/null"), b"x").is_err());
    }
}
