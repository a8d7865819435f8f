//! Memory of this process, as the system counts it.

/// Returns the most memory that this process has had in RAM so far, in bytes (the peak of its
/// resident set). `None` where the system does not tell: Linux does.
pub fn peak_resident_bytes() -> Option<usize> {
    field(&status()?, "VmHWM:")
}

/// Returns the memory that this process has in RAM now, in bytes. `None` where the system does not
/// tell: Linux does.
pub fn resident_bytes() -> Option<usize> {
    field(&status()?, "VmRSS:")
}

fn status() -> Option<String> {
    std::fs::read_to_string("/proc/self/status").ok()
}

fn field(status: &str, name: &str) -> Option<usize> {
    let size = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: usize = size.trim().strip_suffix(" kB")?.trim_end().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let status = "Name:\tucl\nVmPeak:\t  9000 kB\nVmHWM:\t   5120 kB\nVmRSS:\t 4000 kB\n";
        assert_eq!(field(status, "VmHWM:"), Some(5_242_880));
        assert_eq!(field(status, "VmRSS:"), Some(4_096_000));
        assert_eq!(field("Name:\tucl\n", "VmHWM:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_grows_with_what_is_used() {
        let before = peak_resident_bytes().unwrap();
        let used = std::hint::black_box(vec![1u8; 2 * before]);
        assert!(peak_resident_bytes().unwrap() >= used.len());
        assert!(resident_bytes().unwrap() >= used.len());
    }
}
