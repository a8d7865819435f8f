//! Tokens: who may send, ask and change, and for which streams.
//!
//! A token is `ucl_` and 256 random bits. The file holds its SHA-256 alone: as nobody can guess so
//! many bits, a slow hash would add nothing. The file is read again when it changes, so that a
//! token that is added or revoked by another process counts at once.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ucl_link::Name;

/// The file in the data folder.
const FILE: &str = "tokens.json";
const MARK: &str = "ucl_";
const VERSION: u32 = 1;

/// Permission that a token grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Sending epochs.
    Write,
    /// Asking.
    Read,
    /// Deleting streams, and changing how long they are kept.
    Admin,
}

impl Scope {
    /// All permissions.
    pub const ALL: [Self; 3] = [Self::Write, Self::Read, Self::Admin];

    /// Returns the name of the permission.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| format!("{text:?} is no scope: give write, read or admin"))
    }
}

/// Permissions of one token, and where they hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// A name for people; the start of the token's hash unless one was given.
    pub name: String,
    /// The tenant whose streams it is for.
    pub tenant: Name,
    /// Permissions of the token.
    pub scopes: BTreeSet<Scope>,
    /// Prefix of the names of streams that the token is for; empty for all.
    pub stream_prefix: String,
    /// Time when the token was added, in milliseconds since 1970.
    pub created_ms: i64,
    /// SHA-256 of the token, in hexadecimal.
    hash: String,
}

impl Grant {
    /// Returns true if the token allows this for a whole tenant, or one of its streams.
    pub fn allows(&self, scope: Scope, tenant: &Name, stream: Option<&Name>) -> bool {
        self.scopes.contains(&scope)
            && self.tenant == *tenant
            && stream.is_none_or(|stream| stream.as_str().starts_with(&self.stream_prefix))
    }
}

/// Permissions of a new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// A name for people.
    pub name: Option<String>,
    /// The tenant.
    pub tenant: Name,
    /// Permissions of the token.
    pub scopes: BTreeSet<Scope>,
    /// The start of the names of its streams.
    pub stream_prefix: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    tokens: Vec<Grant>,
}

/// The tokens in a data folder.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// When the file that was read was written, and its length.
    stamp: Option<(SystemTime, u64)>,
    grants: Vec<Arc<Grant>>,
}

impl Tokens {
    /// Opens the tokens of a data folder, which is created if it is not there.
    ///
    /// # Errors
    /// If the file cannot be read, or is none of tokens.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let tokens = Self { path: folder.join(FILE), known: RwLock::default() };
        tokens.refresh()?;
        Ok(tokens)
    }

    /// Returns all tokens, oldest first.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(&self) -> io::Result<Vec<Arc<Grant>>> {
        self.refresh()?;
        Ok(self.known.read().map_or_else(|poisoned| poisoned.into_inner().grants.clone(), |known| known.grants.clone()))
    }

    /// Returns what a token allows, if it is known. While the file cannot be read, what was read
    /// before counts.
    pub fn find(&self, token: &str) -> Option<Arc<Grant>> {
        if let Err(error) = self.refresh() {
            tracing::error!(%error, "the tokens cannot be read");
        }
        let hash = hash(token.strip_prefix(MARK)?);
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.grants.iter().find(|grant| grant.hash == hash).cloned()
    }

    /// Adds a token and returns it: the only time that it is seen.
    ///
    /// # Errors
    /// If the name is taken, or the file cannot be written.
    pub fn add(&self, new: NewToken, created_ms: i64) -> io::Result<String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let secret = hex(&random);
        let hash = hash(&secret);
        let NewToken { name, tenant, scopes, stream_prefix } = new;
        let name = name.unwrap_or_else(|| hash[..8].to_owned());
        self.change(|grants| {
            if grants.iter().any(|grant| grant.name == name) {
                return Err(io::Error::other(format!("there is a token named {name:?} already")));
            }
            grants.push(Grant { name, tenant, scopes, stream_prefix, created_ms, hash });
            Ok(())
        })?;
        Ok(format!("{MARK}{secret}"))
    }

    /// Removes a token by its name.
    ///
    /// # Errors
    /// If there is none of this name, or the file cannot be written.
    pub fn revoke(&self, name: &str) -> io::Result<()> {
        self.change(|grants| {
            let before = grants.len();
            grants.retain(|grant| grant.name != name);
            if grants.len() == before {
                return Err(io::Error::other(format!("there is no token named {name:?}")));
            }
            Ok(())
        })
    }

    /// Changes the file, one process at a time.
    fn change(&self, change: impl FnOnce(&mut Vec<Grant>) -> io::Result<()>) -> io::Result<()> {
        let lock =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.path.with_extension("lock"))?;
        wait_for(&lock)?;
        let mut tokens = read(&self.path)?;
        change(&mut tokens)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, &File { version: VERSION, tokens })?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        self.refresh()
    }

    fn refresh(&self) -> io::Result<()> {
        let stamp = match fs::metadata(&self.path) {
            Ok(metadata) => Some((metadata.modified()?, metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_known = |known: &Known| known.stamp == stamp;
        if self.known.read().is_ok_and(|known| is_known(&known)) {
            return Ok(());
        }
        let grants = read(&self.path)?.into_iter().map(Arc::new).collect();
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *known = Known { stamp, grants };
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Vec<Grant>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let wrong = |why: String| io::Error::other(format!("{}: {why}", path.display()));
    let file: File = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if file.version != VERSION {
        return Err(wrong(format!("version {} is not known", file.version)));
    }
    Ok(file.tokens)
}

/// Waits until no other process has the lock.
#[cfg(unix)]
fn wait_for(lock: &fs::File) -> io::Result<()> {
    Ok(rustix::fs::flock(lock, rustix::fs::FlockOperation::LockExclusive)?)
}

#[cfg(not(unix))]
fn wait_for(_: &fs::File) -> io::Result<()> {
    Ok(())
}

fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
