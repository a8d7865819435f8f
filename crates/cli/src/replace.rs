//! Output files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// More links than this from one to the next are a circle.
const MOST_LINKS: usize = 40;

/// Writes a file by `fill`. If that fails or the process is killed, an old file stays as it was:
/// the new one is written beside it, and takes its name and permissions when it is complete. A
/// symbolic link is followed. What is not a regular file (a pipe, a device) is written directly.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    if !is_replaced(path) {
        let mut out = BufWriter::new(File::create(path)?);
        fill(&mut out)?;
        return Ok(out.flush()?);
    }
    let target = linked(path)?;
    let mut out = BufWriter::new(temporary(&target)?);
    fill(&mut out)?;
    let file = out.into_inner()?;
    if let Ok(old) = fs::metadata(&target) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Fails if [`write()`] could not even begin. Changes nothing.
pub fn check(path: &Path) -> io::Result<()> {
    if !is_replaced(path) {
        // To open a pipe would wait for its reader, and end what it reads.
        return Ok(());
    }
    let target = linked(path)?;
    if target.exists() {
        File::options().append(true).open(&target)?;
    }
    temporary(&target).map(drop)
}

/// Fails if a file cannot be written there because there is no such folder, or because it is one.
pub fn check_folder(path: &Path) -> anyhow::Result<()> {
    let target = linked(path).unwrap_or_else(|_| path.to_owned());
    let problem = if path.is_dir() {
        "it is a folder"
    } else if !folder(&target).is_dir() {
        "there is no such folder"
    } else {
        return Ok(());
    };
    anyhow::bail!("cannot write {}: {problem}", path.display())
}

/// Fails if a state could not be saved there, and before anything is counted. Changes nothing.
pub fn check_state(path: &Path) -> anyhow::Result<()> {
    check_folder(path)?;
    if !is_replaced(path) {
        anyhow::bail!("cannot write {}: it is not a regular file", path.display());
    }
    let begun = linked(path).and_then(|target| temporary(&target));
    begun.map(drop).map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
}

/// Returns true if a new file takes the place of this one: it is a regular file, or not there yet.
fn is_replaced(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |meta| meta.is_file())
}

/// Follows symbolic links, also to a file that is not there.
fn linked(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = folder(&target).join(link),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file beside the target, with the permissions of any new file. It is removed if it does not
/// take the target's name.
fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".ucl-tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // The name that was tried is no help to anybody.
    builder.tempfile_in(folder(target)).map_err(|error| error.kind().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn half_a_file_never_takes_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let half = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            anyhow::bail!("no room")
        };
        assert!(write(&path, half).is_err());
        assert_eq!(names(folder.path()), Vec::<String>::new());
        write(&path, |out| Ok(out.write_all(b"old")?)).unwrap();
        check(&path).unwrap();
        assert!(write(&path, half).is_err());
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["out.csv".to_owned()]));
        check(&folder.path().join("other.csv")).unwrap();
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        fs::write(at("plain"), "x").unwrap();
        symlink("target", at("link")).unwrap();
        // First the link leads nowhere, then to a file.
        for content in ["old", "new"] {
            write(&at("link"), |out| Ok(out.write_all(content.as_bytes())?)).unwrap();
            assert_eq!(fs::read_to_string(at("target")).unwrap(), content);
        }
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(mode("target"), mode("plain"), "as any new file");
        fs::set_permissions(at("target"), fs::Permissions::from_mode(0o640)).unwrap();
        write(&at("link"), |_| Ok(())).unwrap();
        assert_eq!(mode("target"), 0o640);
        symlink("circle", at("circle")).unwrap();
        assert!(write(&at("circle"), |_| Ok(())).is_err());
    }
}
