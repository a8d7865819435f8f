//! The data plane's reports as bytes: versioned, checksummed, entropy-coded.
