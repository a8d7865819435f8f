//! `ucl generate-docs`: the command line reference and the man pages, from the definitions of the
//! commands themselves.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Command, CommandFactory};

/// Write the command line reference (cli.md) and, with --man, the man pages.
#[derive(clap::Args)]
pub struct Args {
    /// Folder for cli.md.
    dir: PathBuf,

    /// Folder for the man pages.
    #[arg(long, value_name = "DIR")]
    man: Option<PathBuf>,

    /// Write nothing; fail if a file is not up to date.
    #[arg(long)]
    check: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut files = vec![(args.dir.join("cli.md"), markdown().into_bytes())];
    if let Some(dir) = &args.man {
        files.extend(man_pages(dir)?);
    }
    for (path, content) in files {
        if args.check {
            check(&path, &content)?;
        } else {
            let dir = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

fn check(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let shown = path.display();
    match std::fs::read(path) {
        Ok(found) if found == content => Ok(()),
        Ok(_) => anyhow::bail!("{shown} is stale: write it again with `ucl generate-docs`"),
        Err(error) => anyhow::bail!("cannot read {shown}: {error}"),
    }
}

/// The commands that people see, `ucl` itself first.
fn commands() -> Vec<Command> {
    // Wrapping and colours must not depend on the terminal.
    let mut root = crate::Cli::command().term_width(100).disable_help_subcommand(true);
    root.build();
    let visible: Vec<Command> = root.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    std::iter::once(root).chain(visible).collect()
}

fn markdown() -> String {
    let mut page = "# Command line reference\n\n\
                    <!-- Written by `ucl generate-docs docs`; edit the definitions in crates/cli instead. -->\n"
        .to_owned();
    for mut command in commands() {
        let name = command.get_bin_name().unwrap_or("ucl").to_owned();
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    }
    page
}

fn man_pages(dir: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let page = |command: Command| {
        let name = command.get_bin_name().unwrap_or("ucl").replace(' ', "-");
        let mut text = Vec::new();
        // The long version differs from machine to machine.
        let command = command.long_version(env!("CARGO_PKG_VERSION")).display_name(name.clone());
        clap_mangen::Man::new(command).render(&mut text)?;
        Ok((dir.join(format!("{name}.1")), text))
    };
    commands().into_iter().map(page).collect()
}
