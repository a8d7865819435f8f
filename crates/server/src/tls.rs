//! Certificates.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificate of its own, in the data folder.
pub const CERTIFICATE: &str = "tls-cert.pem";
const KEY: &str = "tls-key.pem";

/// Reads a certificate and its key.
pub fn from_files(cert: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let wrong = |path: &Path, why: String| io::Error::other(format!("{}: {why}", path.display()));
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, "it holds no certificate as PEM".into()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| wrong(cert, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Makes a certificate of its own unless there is one. Returns its files.
pub fn self_signed(folder: &Path, listen: IpAddr) -> io::Result<(PathBuf, PathBuf)> {
    let (cert, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    if cert.exists() && key.exists() {
        return Ok((cert, key));
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend((!listen.is_unspecified() && !listen.is_loopback()).then(|| listen.to_string()));
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    // The key first: a certificate alone is made anew. A temporary file is its owner's alone.
    for (path, text) in [(&key, made.signing_key.serialize_pem()), (&cert, made.cert.pem())] {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&cert, fs::Permissions::from_mode(0o644))?;
    }
    Ok((cert, key))
}
