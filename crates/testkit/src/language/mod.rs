//! Thrift peers in other languages: the programs of `tests/peers/programs`, whose README says what they do. They are
//! built below the cargo target folder, at the first use and again when their sources change.

pub(crate) mod build;
mod programs;

use crate::finagle::CLIENT_LIMIT;
use crate::proc::{Proc, START_LIMIT};
use serde_json::Value;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What a program is written in, and with which library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// Apache Thrift for Python.
    Python,
    /// thriftpy2.
    Thriftpy2,
    /// Apache Thrift for Go.
    Go,
    /// Apache Thrift for Java.
    Java,
    /// Apache Thrift for Node.
    Node,
    /// Apache Thrift for C++.
    Cpp,
}

/// All of them.
pub const ALL: [Name; 6] = [Name::Python, Name::Thriftpy2, Name::Go, Name::Java, Name::Node, Name::Cpp];

/// How messages stand on a connection, and in which protocol they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// `framed`, `buffered` or `header`.
    pub transport: &'static str,
    /// `binary` or `compact`.
    pub protocol: &'static str,
}

/// Framed binary: what every peer speaks.
pub const FRAMED: Form = Form { transport: "framed", protocol: "binary" };
/// Framed compact.
pub const FRAMED_COMPACT: Form = Form { transport: "framed", protocol: "compact" };
/// All forms.
pub const FORMS: [Form; 6] = [
    FRAMED,
    FRAMED_COMPACT,
    Form { transport: "buffered", protocol: "binary" },
    Form { transport: "buffered", protocol: "compact" },
    Form { transport: "header", protocol: "binary" },
    Form { transport: "header", protocol: "compact" },
];

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport, self.protocol)
    }
}

/// A program, built.
#[derive(Clone, Debug)]
pub struct Language {
    /// Which.
    pub name: Name,
    command: Vec<PathBuf>,
}

impl Language {
    /// Builds the program if need be; `target` is where.
    ///
    /// # Panics
    /// With the output of what failed.
    pub fn build(name: Name, repository: &Path, target: &Path) -> Self {
        Self { name, command: programs::build(name, repository, target) }
    }

    /// Whether its library has the form.
    pub fn speaks(name: Name, form: Form) -> bool {
        form.transport != "header" || !matches!(name, Name::Java | Name::Thriftpy2)
    }

    fn start(&self, what: &str, form: Form, args: &[&str]) -> Proc {
        let (program, before) = self.command.split_first().expect("a command has a program");
        let form = [what, "--transport", form.transport, "--protocol", form.protocol];
        let before = before.iter().map(|p| p.as_os_str());
        let args = before.chain(form.iter().chain(args).map(AsRef::as_ref));
        Proc::start(&format!("{:?} {what}", self.name), program, args, &[])
    }

    /// Starts the server, on a free port unless `args` has a `--port`, and waits until it listens.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn server(&self, form: Form, args: &[&str]) -> Server {
        let proc = self.start("serve", form, args);
        let addr = proc.wait_line("READY", START_LIMIT, |l| l.strip_prefix("READY ")?.parse().ok());
        Server { proc, addr }
    }

    /// Makes every call of the service `echo` or `peer` at `address`, to the client's end.
    ///
    /// # Panics
    /// If the client does not end.
    pub fn call(&self, form: Form, address: SocketAddr, service: &str) -> Report {
        let address = address.to_string();
        let client = self.start("call", form, &["--address", &address, "--service", service]);
        let status = client.wait(CLIENT_LIMIT);
        let lines = client.out.all();
        let ok = lines.iter().filter(|l| l.starts_with("ok ")).count();
        let mut failures: Vec<String> =
            lines.into_iter().filter_map(|l| Some(l.strip_prefix("FAILED ")?.to_owned())).collect();
        if failures.is_empty() && !status.success() {
            failures.push(format!("ended with {status} after {ok} calls\n{}", client.report()));
        }
        Report { ok, failures }
    }
}

/// What a client says of its calls.
#[derive(Clone, Debug)]
pub struct Report {
    /// Calls that ended as they should.
    pub ok: usize,
    /// What the others ended with.
    pub failures: Vec<String>,
}

/// A running server.
pub struct Server {
    /// The process.
    pub proc: Proc,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Server {
    /// The arguments of the calls that are logged with `event` so far; Go's server logs, with `--log`.
    pub fn args_of(&self, event: &str) -> Vec<String> {
        let events = self.proc.out.all().into_iter().filter_map(|l| serde_json::from_str::<Value>(&l).ok());
        events.filter(|e| e["event"] == event).filter_map(|e| Some(e["arg"].as_str()?.to_owned())).collect()
    }
}
