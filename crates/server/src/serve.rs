//! The service itself: connections, and how it starts and stops.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use ucl_collector::CollectorError;
use ucl_link::Clock;

use crate::config::{Config, Tls};
use crate::core::Core;
use crate::cores::Cores;
use crate::http::{App, router};
use crate::patient::Patient;
use crate::tokens::{NewToken, Scope, Tokens};

/// Time limit of the head of a request, and of an idle connection.
const HEAD: Duration = Duration::from_secs(60);
/// Bytes of a request's head, at most: anybody may send one.
const LARGEST_HEAD: usize = 64 << 10;
/// Time limit of the TLS handshake.
#[cfg(feature = "tls")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time limit of requests under way once the service stops.
const DRAIN: Duration = Duration::from_secs(10);

/// Error of a service that does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is in use, or not of this machine.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The folder cannot be used.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    /// The certificate cannot be used.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The tokens cannot be read.
    #[error("the tokens: {0}")]
    Tokens(io::Error),
    /// The broker's address or the partitions cannot be used.
    #[error("NATS: {0}")]
    Nats(String),
    /// The system gives no thread.
    #[error(transparent)]
    Runtime(#[from] io::Error),
}

/// Asks a service to stop, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<watch::Sender<bool>>);

impl Stopper {
    /// Requests under way are answered, and no more are taken.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A service that listens.
pub struct Server {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    collecting: Collecting,
    stopper: Stopper,
    first_token: Option<String>,
    encryption: Encryption,
}

/// Encryption of connections, ready for use.
#[derive(Clone, Default)]
struct Encryption {
    #[cfg(feature = "tls")]
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    /// The certificate that clients have to be told to trust.
    own_certificate: Option<PathBuf>,
}

impl Encryption {
    #[cfg(feature = "tls")]
    fn new(config: &Config) -> io::Result<Self> {
        Ok(match &config.tls {
            Tls::Off => Self::default(),
            Tls::Files { cert, key } => {
                Self { acceptor: Some(crate::tls::from_files(cert, key)?), own_certificate: None }
            }
            Tls::SelfSigned => {
                let (cert, key) = crate::tls::self_signed(&config.data, config.listen.ip())?;
                Self { acceptor: Some(crate::tls::from_files(&cert, &key)?), own_certificate: Some(cert) }
            }
        })
    }

    #[cfg(not(feature = "tls"))]
    fn new(config: &Config) -> io::Result<Self> {
        let refused = || io::Error::other("this program was built without TLS");
        if config.tls == Tls::Off { Ok(Self::default()) } else { Err(refused()) }
    }

    fn is_on(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.acceptor.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }
}

impl Server {
    /// Opens the data folder and starts to listen. Connections are answered by [`Server::run`].
    ///
    /// # Errors
    /// If the address or the folder cannot be used.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let tokens = Tokens::open(&config.data).map_err(StartError::Tokens)?;
        let encryption = Encryption::new(&config).map_err(StartError::Tls)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().enable_time().build()?;
        let listen = config.listen;
        let bound = runtime.block_on(TcpListener::bind(listen));
        let (listener, address) = bound
            .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
            .map_err(|error| StartError::Listen(listen, error))?;
        let (cores, collecting) = Collecting::start(&runtime, &config)?;
        let first_token = first_token(&tokens).map_err(StartError::Tokens)?;
        let app = Arc::new(App::new(cores, tokens, config));
        let stopper = Stopper(Arc::new(watch::Sender::new(false)));
        Ok(Self { runtime, listener, address, app, collecting, stopper, first_token, encryption })
    }

    /// Returns the address that the service listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a client takes it.
    pub fn url(&self) -> String {
        let scheme = if self.encryption.is_on() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate that clients have to be told to trust, if the service made its own.
    pub fn own_certificate(&self) -> Option<&Path> {
        self.encryption.own_certificate.as_deref()
    }

    /// A token that allows everything for the default tenant, if there was none before.
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// Asks it to stop.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Answers until it is stopped; then writes everything down.
    pub fn run(self) {
        let Self { runtime, listener, app, collecting, stopper, encryption, .. } = self;
        let stop = stopper.0.subscribe();
        runtime.block_on(accept(listener, app, encryption, stop));
        collecting.stop(&runtime);
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

/// What takes epochs.
enum Collecting {
    /// The thread of a collector that takes them over HTTP.
    Http(Core, JoinHandle<()>),
    /// Readers of partitions.
    #[cfg(feature = "nats")]
    Nats(crate::nats::Readers),
}

impl Collecting {
    #[cfg_attr(not(feature = "nats"), expect(unused_variables, reason = "readers are its tasks"))]
    fn start(runtime: &tokio::runtime::Runtime, config: &Config) -> Result<(Cores, Self), StartError> {
        let cores = Cores::new(config.nats.as_ref().map(|nats| nats.partitions));
        #[cfg(feature = "nats")]
        if let Some(nats) = &config.nats {
            let readers = crate::nats::Readers::start(runtime, nats, config, &cores)?;
            return Ok((cores, Self::Nats(readers)));
        }
        #[cfg(not(feature = "nats"))]
        if config.nats.is_some() {
            return Err(StartError::Nats("this program was built without it".into()));
        }
        let (core, thread) = Core::start(config.data.join("collector"), config.collector(), cores.metrics())?;
        cores.insert(0, core.clone());
        Ok((cores, Self::Http(core, thread)))
    }

    /// Writes everything down, and ends.
    #[cfg_attr(not(feature = "nats"), expect(unused_variables, reason = "readers are its tasks"))]
    fn stop(self, runtime: &tokio::runtime::Runtime) {
        match self {
            Self::Http(core, thread) => {
                core.stop();
                if thread.join().is_err() {
                    tracing::error!("the collector's thread panicked");
                }
            }
            #[cfg(feature = "nats")]
            Self::Nats(readers) => runtime.block_on(readers.stop()),
        }
    }
}

fn first_token(tokens: &Tokens) -> io::Result<Option<String>> {
    if !tokens.list()?.is_empty() {
        return Ok(None);
    }
    let new = NewToken {
        name: Some("first".into()),
        tenant: crate::DEFAULT_TENANT.parse().map_err(io::Error::other)?,
        scopes: BTreeSet::from(Scope::ALL),
        stream_prefix: String::new(),
    };
    tokens.add(new, Clock::wall_ms()).map(Some)
}

async fn accept(listener: TcpListener, app: Arc<App>, encryption: Encryption, mut stop: watch::Receiver<bool>) {
    let connections = Arc::new(Semaphore::new(app.config.connections));
    let graceful = GracefulShutdown::new();
    let service = router(app);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&connections).acquire_owned() => permit,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, mostly: others have to end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (service, encryption, watcher) = (service.clone(), encryption.clone(), graceful.watcher());
        tokio::spawn(async move {
            // What went wrong with a connection is the peer's affair.
            let _ = converse(stream, service, encryption, watcher).await;
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests under way were given up");
    }
}

async fn converse(stream: TcpStream, service: Router, encryption: Encryption, watcher: Watcher) -> io::Result<()> {
    #[cfg(feature = "tls")]
    if let Some(acceptor) = encryption.acceptor {
        let stream = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await??;
        return watcher.watch(connection(stream, service)).await.map_err(io::Error::other);
    }
    #[cfg(not(feature = "tls"))]
    let Encryption { .. } = encryption;
    watcher.watch(connection(stream, service)).await.map_err(io::Error::other)
}

fn connection<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    service: Router,
) -> http1::Connection<TokioIo<Patient<S>>, TowerToHyperService<Router>> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), TowerToHyperService::new(service))
}
