//! What is measured and how: systems, metrics, experiments, plots.
