//! What a person at a terminal sees.
#![cfg(unix)]

mod common;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use common::Folder;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Everything that a command writes to a terminal.
fn on_a_terminal(folder: &Folder, args: &str, columns: u16) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 25, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let screen = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
    let mut command = folder.command(args);
    command.env("TERM", "xterm").stdout(screen.try_clone().unwrap()).stderr(screen);
    let mut child = command.spawn().unwrap();
    // The terminal ends when nobody has it open any more.
    drop(command);
    let mut terminal = File::from(terminal);
    let mut written = Vec::new();
    // That end is an error on Linux.
    let _ = terminal.read_to_end(&mut written);
    assert!(child.wait().unwrap().success());
    String::from_utf8(written).unwrap()
}

/// The lines that are left to see: what was written since a line was last cleared.
fn seen(written: &str) -> Vec<&str> {
    written.lines().map(|line| line.rsplit("\x1b[2K").next().unwrap()).collect()
}

#[test]
fn the_bar_is_gone_before_the_answer() {
    let folder = Folder::with("words", "tea\nmilk\ntea\n".repeat(100));
    for args in ["count words --seed 1", "count words --seed 1 --all", "count words --seed 1 --json"] {
        let written = on_a_terminal(&folder, args, 120);
        assert!(written.contains("decoding"), "the bar was drawn: {written:?}");
        let seen = seen(&written);
        assert!(seen.iter().any(|line| line.contains("tea")), "{args}: {seen:?}");
        assert!(!seen.iter().any(|line| line.contains("decoding")), "{args}: {seen:?}");
    }
}

/// Keys are cut with an ellipsis so that the table fits; elsewhere they are whole.
#[test]
fn tables_fit_the_terminal() {
    let key = "https://example.org/a/very/long/path/that/goes/on/and/on/index.html";
    let folder = Folder::with("words", format!("{key}\ntea\n"));
    for columns in [60, 80] {
        let written = on_a_terminal(&folder, "count words --seed 1 --query tea", columns);
        let table: Vec<&str> = seen(&written).into_iter().filter(|line| line.contains("https://")).collect();
        assert_eq!(table.len(), 1);
        assert!(table[0].chars().count() <= columns.into() && table[0].contains('…'), "{table:?}");
    }
    assert!(on_a_terminal(&folder, "count words --seed 1", 200).contains(key));
    assert!(folder.run("count words --seed 1").fine().contains(key));
}

#[test]
fn csv_is_escaped_on_a_terminal_only() {
    let folder = Folder::with("words", "\x1b[31mred\n");
    let written = on_a_terminal(&folder, "count words --seed 1 --all", 120);
    assert!(written.contains("hex:1b5b33316d726564,1,") && !written.contains("\x1b[31m"), "{written:?}");
    assert!(folder.run("count words --seed 1 --all").fine().contains("\x1b[31mred,1,"));
}
