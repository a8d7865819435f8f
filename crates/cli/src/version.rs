//! What `ucl --version` says beyond the number: how it was built, and which vector instructions
//! this machine gives it.

use std::sync::LazyLock;

/// The long version: number, build, features, kernels.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let profile = if cfg!(debug_assertions) { "checked" } else { "release" };
        format!(
            "{}\nbuild:    {profile}, {}-{}\nfeatures: {FEATURES}\nkernels:  {}\npaper:    {PAPER}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
            kernels()
        )
    });
    &TEXT
}

/// Paper that the program implements.
const PAPER: &str = "Learning-based Sketches for Frequency Estimation in Data Streams without Ground Truth,
          by X. Yuan, Y. Qiao, M. Li, Z. Wei, C. Feng, Z. Wang and W. Chen";

/// Formats and decoders of this build.
const FEATURES: &str = if cfg!(feature = "parquet") {
    "gzip, zstd, xz, bzip2, pcap, pcapng, learned decoder, parquet"
} else {
    "gzip, zstd, xz, bzip2, pcap, pcapng, learned decoder, parquet (output only)"
};

/// The widest kernels that the network's training dispatches to on this machine, and what they were
/// chosen by.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn kernels() -> String {
    macro_rules! found {
        ($($feature:tt)*) => {
            [$(($feature, std::is_x86_feature_detected!($feature))),*]
        };
    }
    let features = found!("sse4.2" "avx2" "fma" "avx512f" "avx512bw" "avx512dq" "avx512vl");
    let names: Vec<&str> = features.iter().filter(|(_, found)| *found).map(|(name, _)| *name).collect();
    let has = |wanted: &[&str]| wanted.iter().all(|name| names.contains(name));
    let chosen = if has(&["avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"]) {
        "AVX-512"
    } else if has(&["avx2", "fma"]) {
        "AVX2"
    } else {
        "plain"
    };
    format!("{chosen} (this CPU has {})", if names.is_empty() { "none of them".to_owned() } else { names.join(", ") })
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn kernels() -> String {
    format!("{} baseline", std::env::consts::ARCH)
}
