//! `sensitivity`: one setting of the network at a time, on Kosarak with 64KB (paper: figures
//! `bucket_ae`, `hd_ae`, `bucket_usage`, `hd_usage`; ranges of table `model_parameters`).

use ucl_sketch::learned::Config;

use super::common::{Case, mean, spread, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Line, Panel, Point};
use crate::reproduce::{Dataset, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "sensitivity",
    title: "The network's settings",
    labels: &["bucket_ae", "hd_ae", "bucket_usage", "hd_usage", "model_parameters"],
    about: "`ucl-learned` on Kosarak with 64KB; one setting is varied over the paper's range, the others stay at the paper's values (bucket 512, \
            hidden 128, lambda 0.1, window 128, interval 1000, batch 32). The paper's largest bucket, \"2056\", is taken to be 2048.",
    jobs,
    present,
};

/// Setting, its unit, the full range, the quick one.
const SETTINGS: [(&str, &str, &[f64], &[f64]); 6] = [
    ("bucket length", "keys", &[128.0, 256.0, 512.0, 1024.0, 2048.0], &[128.0, 512.0, 2048.0]),
    ("hidden dimension", "units", &[32.0, 64.0, 128.0, 256.0, 512.0], &[32.0, 128.0, 512.0]),
    ("lambda", "", &[0.05, 0.1, 0.2, 0.5, 1.0], &[0.05, 0.1, 1.0]),
    ("window", "snapshots", &[32.0, 64.0, 128.0, 256.0, 512.0], &[32.0, 128.0, 256.0]),
    ("interval", "items", &[500.0, 1000.0, 2000.0], &[500.0, 1000.0, 2000.0]),
    ("batch", "snapshots", &[8.0, 16.0, 32.0, 64.0, 128.0], &[8.0, 32.0, 128.0]),
];

fn jobs(scope: &Scope) -> Vec<Job> {
    let mut jobs = Vec::new();
    let settings = scope.extent.choose(&SETTINGS[..], &SETTINGS[..], &SETTINGS[..1]);
    for (setting, _, full, quick) in settings {
        for &value in scope.extent.choose(*full, *quick, &quick[..2]) {
            for &seed in &scope.seeds {
                let mut case = Case::new(Dataset::Kosarak, "ucl-learned", 64 << 10, seed, scope);
                case.more.extend([("setting", (*setting).to_owned()), ("value", value.to_string())]);
                let mut config = Config::default();
                match *setting {
                    "bucket length" => config.bucket_length = value as usize,
                    "hidden dimension" => config.hidden = value as usize,
                    "lambda" => config.lambda = value as f32,
                    "batch" => config.batch = value as usize,
                    "window" => case.options.window = Some(value as usize),
                    _ => case.options.interval = Some(Some(value as u64)),
                }
                case.options.learned = Some(config);
                // Seconds an epoch are part of the result.
                jobs.push(case.job().alone());
            }
        }
    }
    jobs
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let outcomes: Vec<Outcome> = outcomes.iter().cloned().map(with_epoch_time).collect();
    let figures = [
        ("are", "ARE (share of the true count)"),
        ("entropy_error", "entropy error (bits)"),
        ("parameter_mb", "parameters (MB)"),
        ("epoch_ms", "time an epoch (ms)"),
    ];
    let mut shown = Presentation::default();
    let header = ["setting", "value", "AAE", "ARE", "entropy error", "parameters (MB)", "time an epoch (ms)", "epochs"];
    let mut table = Table::new("settings", "One setting at a time", header);
    for setting in values(&outcomes, "setting") {
        let here: Vec<Outcome> =
            outcomes.iter().filter(|outcome| outcome.label("setting") == setting).cloned().collect();
        let all = values(&here, "value");
        for value in &all {
            let of = |figure| mean(&here, &[("value", value)], figure).into();
            let mut row = vec![setting.into(), (*value).into(), of("aae"), of("are")];
            row.extend(["entropy_error", "parameter_mb", "epoch_ms", "train_epochs"].map(of));
            table.push(row);
        }
        let unit = SETTINGS.iter().find(|(name, ..)| *name == setting).map_or("", |(_, unit, ..)| unit);
        let label = if unit.is_empty() { setting.to_owned() } else { format!("{setting} ({unit})") };
        let x = |value: &str| value.parse().unwrap_or(0.0);
        let panel = |(figure, title): (&str, &str)| {
            let points = all
                .iter()
                .filter_map(|value| Some(Point { x: x(value), y: spread(&here, &[("value", value)], figure)? }));
            let ticks = all.iter().map(|value| (x(value), (*value).to_owned()));
            let line = Line::new("ucl-learned", points);
            Panel::lines(title, Axis::log(label.clone()).with_ticks(ticks), Axis::linear(""), vec![line])
        };
        let figure = Figure {
            title: format!("{setting}: kosarak, 64KB"),
            note: String::new(),
            panels: figures.map(panel).into(),
            columns: 4,
        };
        let caption = format!("ARE, entropy error, parameters and time an epoch by {setting}.");
        shown.figures.push((setting.replace(' ', "-"), caption, figure));
    }
    shown.tables.push(table);
    shown.remarks.push(
        "The paper reports 0.75-1.25MB of parameters and 0.2 s an epoch on a GPU; parameters here are 4 bytes each. Its pictures show ARE nearly level in both \
         settings and entropy errors that fall with the bucket length; it prints no numbers."
            .to_owned(),
    );
    shown
}

fn with_epoch_time(mut outcome: Outcome) -> Outcome {
    if let (Some(seconds), Some(epochs)) = (outcome.figure("train_seconds"), outcome.figure("train_epochs")) {
        outcome.finding.note("epoch_ms", 1e3 * seconds / epochs.max(1.0));
    }
    if let Some(parameters) = outcome.figure("parameters") {
        outcome.finding.note("parameter_mb", parameters * 4.0 / f64::from(1 << 20));
    }
    outcome
}
