//! Finagle's own server sets: the program of `tests/peers/programs/serversets`, which announces and resolves.

use crate::language::build::Build;
use crate::proc::{LIMIT, Proc, START_LIMIT};
use std::net::SocketAddr;
use std::path::Path;

/// The program, built.
pub struct Serversets {
    classes: String,
}

impl Serversets {
    /// Builds it if need be; `target` is where.
    ///
    /// # Panics
    /// With the output of what failed.
    pub fn build(repository: &Path, target: &Path) -> Self {
        let build = Build::new("serversets", repository, target);
        let copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies";
        build.step("mvn", &["-q", "-B", copy, "-DoutputDirectory=lib"]);
        build.step("sh", &["-c", "javac -nowarn -d classes -cp 'lib/*' *.java"]);
        let paths = build.end(&["classes", "lib/*"]);
        let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        Self { classes: paths.join(":") }
    }

    fn start(&self, args: &[&str]) -> Proc {
        let java =
            ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &self.classes, "Serversets"];
        Proc::start(&format!("finagle {}", args.join(" ")), "java", java.iter().chain(args), &[])
    }

    /// Announces a port of 127.0.0.1 in the set at `node` until it is asked to end.
    ///
    /// # Panics
    /// If it does not say that it has.
    pub fn announce(&self, zookeeper: SocketAddr, node: &str, port: u16) -> Proc {
        let proc = self.start(&["announce", &format!("zk!{zookeeper}!{node}!0"), &port.to_string()]);
        proc.wait_line("READY", START_LIMIT, |line| (line == "READY").then_some(()));
        proc
    }

    /// Resolves the set at `node`, by the scheme `zk` or `zk2`.
    pub fn resolve(&self, scheme: &str, zookeeper: SocketAddr, node: &str) -> Resolving {
        Resolving(self.start(&["resolve", &format!("{scheme}!{zookeeper}!{node}")]))
    }
}

/// A name that is resolved.
pub struct Resolving(Proc);

impl Resolving {
    /// Waits until it says something with this word, counted from line `from` on.
    ///
    /// # Panics
    /// If it does not.
    pub fn says(&self, from: usize, word: &str) {
        self.0.wait_line_from(from, word, START_LIMIT.max(LIMIT), |line| line.contains(word).then_some(()));
    }

    /// How many lines it has said.
    pub fn mark(&self) -> usize {
        self.0.out.len()
    }
}
