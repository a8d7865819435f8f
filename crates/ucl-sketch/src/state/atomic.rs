//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// Links that are followed one after the other, at most: as many as Linux does.
const MOST_LINKS: usize = 40;

/// Replaces `path` by a file of these bytes. Whenever the process is killed or the power fails,
/// `path` is the old file or the new one, whole: the bytes go into a temporary file beside it, are
/// forced to the disk, and only then take its name.
///
/// The temporary file has a random name, and is created only if nothing has that name: process
/// numbers are no good for it, as two containers on one volume both have a process 1. What a killed
/// process leaves behind stays, for nobody can know whether it is still being written.
///
/// A symbolic link is followed. What is not a regular file (a device, a pipe) is refused, for it
/// would be replaced.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow_links(path)?;
    let replaced = match fs::metadata(&target) {
        Ok(meta) if !meta.is_file() => return Err(io::Error::other("not a regular file")),
        Ok(meta) => Some(meta.permissions()),
        Err(_) => None,
    };
    if target.file_name().is_none() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = Builder::new();
    builder.prefix(".ucl-").suffix(".tmp");
    // Before the umask: whoever may read other new files may read this one.
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    // Removed again on every error.
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    // Whoever was let in stays let in, and nobody else is.
    if let Some(permissions) = replaced {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Follows the links of a path, also to a file that is not there yet.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
            return Ok(path);
        }
        // Relative to the folder that the link is in.
        let next = fs::read_link(&path)?;
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A new name is on the disk only when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
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
        // A name as long as names may be.
        for path in ["s.ucl", &"n".repeat(255)].map(|name| folder.path().join(name)) {
            for content in [b"old", b"new"] {
                write(&path, content).unwrap();
                assert_eq!(fs::read(&path).unwrap(), content);
            }
        }
        assert_eq!(names(folder.path()), ["n".repeat(255), "s.ucl".into()]);
    }

    #[test]
    fn failure_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(&folder.path().join("no-such-folder/s.ucl"), b"x").is_err());
        assert!(write(folder.path(), b"x").is_err(), "a folder is not replaced");
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    /// Also not one with a name that this process might have chosen, or chose before: it may be
    /// another container's.
    #[test]
    fn temporary_files_of_others_are_never_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.ucl");
        let process = std::process::id();
        let others: Vec<String> =
            (0..20).map(|save| format!(".s.ucl.{process}-{save}.ucl-tmp")).chain([".ucl-a1b2c3.tmp".into()]).collect();
        for name in &others {
            fs::write(folder.path().join(name), b"half a st").unwrap();
            let long_ago = std::time::SystemTime::UNIX_EPOCH;
            File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(long_ago).unwrap();
        }
        write(&path, b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        for name in &others {
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"half a st", "{name}");
        }
        assert_eq!(names(folder.path()).len(), others.len() + 1);
    }

    /// Whoever reads while others save sees one whole state or another.
    #[test]
    fn saving_at_once_never_leaves_half_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.ucl");
        let state = |saver: u8| vec![saver; 10_000 + usize::from(saver)];
        write(&path, &state(0)).unwrap();
        std::thread::scope(|scope| {
            for saver in 1..=4 {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| write(path, &state(saver)).unwrap()));
            }
            for _ in 0..100 {
                let found = fs::read(&path).unwrap();
                assert_eq!(found, state(found[0]));
            }
        });
        assert_eq!(names(folder.path()), ["s.ucl"]);
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

    /// A new file is as readable as any other new file: `tempfile` by itself would keep it from
    /// everybody else.
    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_usual_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (plain, saved) = (folder.path().join("plain"), folder.path().join("saved"));
        fs::write(&plain, b"x").unwrap();
        write(&saved, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&saved), mode(&plain));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_is_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("elsewhere")).unwrap();
        symlink("elsewhere/s.ucl", at("second")).unwrap();
        symlink("second", at("first")).unwrap();
        write(&at("first"), b"new").unwrap();
        assert_eq!(fs::read(at("elsewhere/s.ucl")).unwrap(), b"new");
        assert!(["first", "second"].iter().all(|link| fs::symlink_metadata(at(link)).unwrap().is_symlink()));

        symlink("no-such-folder/s.ucl", at("nowhere")).unwrap();
        assert!(write(&at("nowhere"), b"x").is_err());
        symlink("round", at("round")).unwrap();
        assert_eq!(write(&at("round"), b"x").unwrap_err().to_string(), "too many symbolic links");
        assert!(["nowhere", "round"].iter().all(|link| fs::symlink_metadata(at(link)).unwrap().is_symlink()));
    }
}
