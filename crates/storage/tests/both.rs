//! The folder, the simulated disk and memory do the same, as long as nothing goes wrong.

use ucl_storage::{Folder, Memory, SimDisk, Storage};

fn program(storage: &mut impl Storage) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    storage.append("log-1", b"abc")?;
    storage.append("log-2", b"xyz")?;
    storage.append("log-1", b"def")?;
    storage.sync("log-1")?;
    storage.truncate("log-1", 4)?;
    storage.append("log-1", b"!")?;
    storage.replace("state", b"old")?;
    storage.replace("state", b"new")?;
    storage.append("gone", b"?")?;
    storage.remove("gone")?;
    assert!(storage.remove("never there").is_err(), "a space");
    storage.remove("never-there")?;
    let mut files = Vec::new();
    for name in storage.list()? {
        let bytes = storage.read(&name)?.expect("a file that is listed");
        files.push((name, bytes));
    }
    assert_eq!(storage.read("gone")?, None);
    assert_eq!(storage.read_at("log-1", 1, 3)?, b"bcd");
    assert!(storage.read_at("log-1", 3, 3).is_err() && storage.read_at("gone", 0, 0).is_err());
    Ok(files)
}

#[test]
fn a_folder_does_what_the_simulation_does() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(place.path().join("a/b")).unwrap();
    let mut disk = SimDisk::new(1);
    let real = program(&mut folder).unwrap();
    assert_eq!(real, program(&mut disk).unwrap());
    assert_eq!(real, program(&mut Memory::new()).unwrap());
    let text: Vec<(&str, &[u8])> = real.iter().map(|(name, bytes)| (&name[..], &bytes[..])).collect();
    assert_eq!(text, [("log-1", &b"abcd!"[..]), ("log-2", b"xyz"), ("state", b"new")]);
    drop(folder);
    assert_eq!(Folder::open(place.path().join("a/b")).unwrap().list().unwrap().len(), 3);
}

#[test]
fn names_stay_in_the_folder() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(place.path()).unwrap();
    for name in ["../x", "", ".lock", "a/b", "a\0b", "ü", &"n".repeat(300)] {
        assert!(folder.replace(name, b"").is_err(), "{name:?}");
        assert!(folder.append(name, b"").is_err(), "{name:?}");
        assert!(folder.read(name).is_err(), "{name:?}");
        assert!(folder.remove(name).is_err(), "{name:?}");
    }
}

/// What a process that was killed while it replaced a file leaves behind.
#[test]
fn half_written_files_are_cleared_away() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(".new-abc"), b"half").unwrap();
    let folder = Folder::open(place.path()).unwrap();
    assert_eq!(folder.list().unwrap(), Vec::<String>::new());
    assert!(!place.path().join(".new-abc").exists());
}

#[test]
fn what_was_synced_survives_every_crash() {
    for seed in 0..300 {
        let mut disk = SimDisk::new(seed);
        disk.append("log", b"synced").unwrap();
        disk.sync("log").unwrap();
        disk.replace("state", b"old").unwrap();
        disk.crash_after(seed % 5);
        let mut steps = 0;
        let mut run = || -> std::io::Result<()> {
            disk.append("log", b"loose")?;
            steps = 1;
            disk.append("log", b"more")?;
            steps = 2;
            disk.replace("state", b"new")?;
            steps = 3;
            disk.sync("log")?;
            steps = 4;
            disk.remove("state")
        };
        assert!(run().is_err());
        assert!(disk.is_crashed() && disk.list().is_err());
        disk.reboot();
        let log = disk.read("log").unwrap().unwrap();
        assert!(log.starts_with(b"synced"));
        if steps == 4 {
            assert_eq!(log, b"syncedloosemore");
        }
        match disk.read("state").unwrap().as_deref() {
            Some(b"old") => assert!(steps <= 2),
            Some(b"new") => assert!(steps >= 2),
            None => assert_eq!(steps, 4),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_full_disk_takes_a_part_of_an_append_and_nothing_of_a_replacement() {
    let mut disk = SimDisk::new(1);
    disk.set_room(Some(5));
    disk.append("log", b"abc").unwrap();
    assert_eq!(disk.append("log", b"def").unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(disk.read("log").unwrap().unwrap(), b"abcde");
    assert_eq!(disk.replace("state", b"new").unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(disk.read("state").unwrap(), None);
    disk.truncate("log", 2).unwrap();
    disk.replace("state", b"new").unwrap();
}
