//! `ucl methods`: lists the methods that can be measured.

use std::fmt::Write;

use ucl_lab::MethodRegistry;

use crate::show;

/// List the methods that `ucl eval` can compare, with their references.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object per method.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let registry = MethodRegistry::standard();
    let longest = registry.methods().iter().map(|method| method.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for method in registry.methods() {
        let name = method.name;
        let about = method.about;
        let reference = method.reference;
        if args.json {
            let object = serde_json::json!({
                "name": name, "about": about, "reference": reference, "baseline": method.baseline, "variant": method.variant,
            });
            writeln!(text, "{object}")?;
        } else {
            writeln!(text, "{name:longest$}  {about} ({reference})")?;
        }
    }
    show::print(text)
}
