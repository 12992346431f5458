//! The flags of `run`, and the small file that they stand for. There is no second way to a plan: flags become the text
//! that `--print-config` prints, and that text is read like any file.

use crate::config::{self, Plan};
use clap::Args;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Settings without a file.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Without a file")]
pub(super) struct Flags {
    /// Take calls here, as in 127.0.0.1:4114; port 0 takes a free one
    #[arg(long, value_name = "ADDR", requires = "table")]
    pub listen: Option<SocketAddr>,
    /// Which names lead where, as in '/svc => /$/inet/127.0.0.1/9000'
    #[arg(long, value_name = "TEXT", requires = "listen")]
    pub dtab: Option<String>,
    /// Look services up in this folder: each file is a service and holds `host port` lines. Names: /#/io.l5d.fs/FILE
    #[arg(long, value_name = "DIR", requires = "listen")]
    pub fs: Option<PathBuf>,
    /// What the services speak
    #[arg(long, value_name = "PROTOCOL", default_value = "thriftmux", value_parser = ["thriftmux", "framed", "ttwitter", "buffered", "header"])]
    pub upstream: String,
    /// Show the admin pages here; `none` switches them off
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9990")]
    pub admin: Admin,
    /// Keep what discovery said in this folder, for the next start; `none` keeps nothing. With a file, instead of its `stateDir`
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Send spans to this Zipkin, as in http://127.0.0.1:9411
    #[arg(long, value_name = "URL", requires = "listen")]
    pub zipkin: Option<String>,
}

/// A table that is followed.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Store {
    /// Follow the table of this store, as in http://127.0.0.1:4180; give it again for each further address of the store
    #[arg(long, value_name = "URL")]
    pub store: Vec<String>,
    /// The table's name in the store [default: default]
    #[arg(long, value_name = "NAME", requires = "store")]
    pub namespace: Option<String>,
}

/// An address, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admin(pub Option<SocketAddr>);

impl FromStr for Admin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => text
                .parse()
                .map(|address| Self(Some(address)))
                .map_err(|_| "write IP:PORT, or none".to_string()),
        }
    }
}

/// The flag that a line of the file comes from.
fn flag_of(text: &str, line: usize) -> &'static str {
    let above = text.lines().take(line).collect::<Vec<_>>();
    let key = above.iter().rev().find_map(|line| {
        let (key, _) = line.split_once(':')?;
        FLAGS.iter().find(|(known, _)| *known == key)
    });
    key.map_or("<flags>", |(_, flag)| flag)
}

/// The keys of the file, and the flags that they come from.
const FLAGS: [(&str, &str); 8] = [
    ("stateDir", "--state"),
    ("admin", "--admin"),
    ("telemetry", "--zipkin"),
    ("namers", "--fs"),
    ("store", "--store"),
    ("dtab", "--dtab"),
    ("listeners", "--listen"),
    ("clients", "--upstream"),
];

/// A text in double quotes; what JSON quotes, YAML reads.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Flags {
    /// What the flags stand for, and the file that says so.
    ///
    /// # Errors
    /// A report that names the flag to blame.
    pub fn plan(&self, store: &Store) -> Result<(Plan, String), String> {
        let text = self.file(store);
        let report = match config::parse("<flags>", &text) {
            Ok(plan) => return Ok((plan, text)),
            Err(report) => report,
        };
        let flag = flag_of(&text, report.line());
        let named = config::parse(&format!("{flag}, written as a file"), &text);
        let mut said = named.map_or_else(|report| report.to_string(), |_| report.to_string());
        if self.fs.is_none() && said.contains("there are no namers") {
            said.push_str("\nOn the command line, `--fs DIR` is the namer /#/io.l5d.fs.\n");
        }
        Err(said)
    }

    /// The file.
    pub fn file(&self, store: &Store) -> String {
        let mut file = String::from("# Start with: muxgate run FILE\n");
        self.write(store, &mut file).map_or_else(|_| String::new(), |()| file)
    }

    fn write(&self, store: &Store, out: &mut String) -> std::fmt::Result {
        match self.admin.0 {
            None => writeln!(out, "\n# No admin pages.\nadmin: none")?,
            Some(address) => {
                writeln!(out, "\n# Pages for people and /metrics.")?;
                writeln!(
                    out,
                    "admin:\n  ip: {}\n  port: {}",
                    quoted(&address.ip().to_string()),
                    address.port()
                )?;
            }
        }
        if let Some(url) = &self.zipkin {
            writeln!(out, "\n# Spans are sent here.")?;
            writeln!(out, "telemetry:\n- kind: io.l5d.zipkin\n  url: {}\n  sampleRate: 1.0", quoted(url))?;
        }
        if let Some(folder) = &self.state {
            writeln!(out, "\n# What discovery said is kept here, for the next start.")?;
            writeln!(out, "stateDir: {}", quoted(&folder.display().to_string()))?;
        }
        if let Some(folder) = &self.fs {
            writeln!(out, "\n# Each file in this folder is a service and holds `host port` lines.")?;
            writeln!(
                out,
                "namers:\n- kind: io.l5d.fs\n  rootDir: {}",
                quoted(&folder.display().to_string())
            )?;
        }
        if !store.store.is_empty() {
            let addresses: Vec<_> = store.store.iter().map(|address| quoted(address)).collect();
            writeln!(out, "\n# The table is followed here.")?;
            writeln!(out, "store:\n  addresses: [{}]", addresses.join(", "))?;
            if let Some(namespace) = &store.namespace {
                writeln!(out, "  namespace: {}", quoted(namespace))?;
            }
        }
        if self.dtab.is_some() || store.store.is_empty() {
            self.write_dtab(out)?;
        }
        if let Some(address) = self.listen {
            writeln!(
                out,
                "\n# Calls come in here: framed and buffered Thrift, THeader, TTwitter and ThriftMux, binary or compact."
            )?;
            writeln!(
                out,
                "listeners:\n- ip: {}\n  port: {}",
                quoted(&address.ip().to_string()),
                address.port()
            )?;
        }
        writeln!(out, "\n# What the services speak.\nclients:\n- prefix: /\n  protocol: {}", self.upstream)
    }

    fn write_dtab(&self, out: &mut String) -> std::fmt::Result {
        let text = self.dtab.as_deref().unwrap_or_default();
        writeln!(out, "\n# Which names lead where; later entries win.")?;
        // A block shows a table best, but cannot hold control characters, nor blanks at the start of its first line.
        if text.trim().is_empty() || text.chars().any(|c| c.is_control() && c != '\n') {
            return writeln!(out, "dtab: {}", quoted(text));
        }
        writeln!(out, "dtab: |")?;
        text.trim().lines().try_for_each(|line| writeln!(out, "  {}", line.trim()))
    }
}
