//! The files that say who is asked about names, and which names need not be asked about: read again when they change.

use super::Params;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};
use parking_lot::Mutex;
use std::fs::{File, metadata};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The system's servers and search domains.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// A change of the files is seen after this time at the latest.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Most addresses that one name has in the hosts file.
const MAX_WRITTEN: usize = 1000;

/// What is asked now.
pub(super) struct Settings {
    pub resolver: Arc<TokioResolver>,
    hosts: Hosts,
    search: Vec<Name>,
    /// Names with at least so many dots are asked for as they stand first.
    ndots: usize,
}

pub(super) struct Files {
    servers: Vec<SocketAddr>,
    timeout: Duration,
    hosts: PathBuf,
    read: Mutex<Option<Read>>,
}

struct Read {
    settings: Result<Arc<Settings>, String>,
    stamps: [Stamp; 2],
    looked: Instant,
}

/// Time, size and place of a file; none, if it cannot be looked at.
type Stamp = Option<(i64, i64, u64, u64)>;

impl Files {
    pub(super) fn new(params: &Params, hosts: &Path) -> Self {
        let Params { servers, timeout } = params.clone();
        Self { servers, timeout, hosts: hosts.into(), read: Mutex::new(None) }
    }

    /// What the files say now.
    pub(super) fn now(&self) -> Result<Arc<Settings>, String> {
        let mut read = self.read.lock();
        if let Some(read) = &mut *read {
            if read.looked.elapsed() < LOOK_AGAIN {
                return read.settings.clone();
            }
            read.looked = Instant::now();
            if read.stamps == self.stamps() {
                return read.settings.clone();
            }
        }
        // First the stamps: what changes while the files are read is read again next time.
        let stamps = self.stamps();
        let settings = self.build().map(Arc::new);
        *read = Some(Read { settings: settings.clone(), stamps, looked: Instant::now() });
        settings
    }

    fn stamps(&self) -> [Stamp; 2] {
        let stamp = |file: &Path| {
            let found = metadata(file).ok()?;
            Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
        };
        [stamp(&self.hosts), self.servers.is_empty().then(|| stamp(Path::new(RESOLV_CONF))).flatten()]
    }

    fn build(&self) -> Result<Settings, String> {
        let (config, mut options) = if self.servers.is_empty() {
            read_system_conf().map_err(|error| format!("DNS cannot be asked: {RESOLV_CONF}: {error}"))?
        } else {
            (
                ResolverConfig::from_name_servers(self.servers.iter().map(server).collect()),
                ResolverOpts::default(),
            )
        };
        let (domain, search, servers) = config.into_parts();
        let ndots = options.ndots;
        // Two tries in the time of a question. Search domains and the hosts file are ours to look at.
        options.attempts = 1;
        options.timeout = self.timeout / 2;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        let config = ResolverConfig::from_name_servers(servers);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        let resolver = builder.build().map_err(|error| format!("DNS cannot be asked: {error}"))?;
        let search = if search.is_empty() { domain.into_iter().collect() } else { search };
        Ok(Settings { resolver: Arc::new(resolver), hosts: self.hosts_file(), search, ndots })
    }

    /// A hosts file that is not there or cannot be read says nothing.
    fn hosts_file(&self) -> Hosts {
        let mut hosts = Hosts::default();
        if let Ok(file) = File::open(&self.hosts)
            && let Err(error) = hosts.read_hosts_conf(file)
        {
            tracing::warn!(file = %self.hosts.display(), %error, "the hosts file is read up to here");
        }
        hosts
    }
}

fn server(address: &SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

impl Settings {
    /// The addresses that the hosts file gives a host.
    pub(super) fn hosts(&self, name: &Name) -> Vec<IpAddr> {
        let kinds = [RecordType::A, RecordType::AAAA];
        let found = kinds.map(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)));
        let answers = found.iter().flatten().flat_map(|found| found.answers());
        answers.filter_map(|answer| answer.data.ip_addr()).take(MAX_WRITTEN).collect()
    }

    /// The names that are asked for instead of this one, in order: with the search domains, unless it ends with a dot.
    pub(super) fn candidates(&self, name: &Name) -> Vec<Name> {
        let mut whole = name.clone();
        whole.set_fqdn(true);
        if name.is_fqdn() {
            return vec![whole];
        }
        let mut all: Vec<_> =
            self.search.iter().filter_map(|domain| name.clone().append_domain(domain).ok()).collect();
        let dots = usize::from(name.num_labels()).saturating_sub(1);
        let at = if dots >= self.ndots { 0 } else { all.len() };
        all.insert(at, whole);
        all
    }
}
