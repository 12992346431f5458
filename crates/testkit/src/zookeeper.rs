//! ZooKeeper, one server, and what is done to it. Its nodes are written by whoever has a client.

use crate::backend::ClosedPort;
use crate::proc::Proc;
use crate::until;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::timeout;

/// Where Debian puts the server, with all that it needs.
const CLASSES: &str = "/etc/zookeeper/conf_example:/usr/share/java/zookeeper.jar";

/// How long it may take to answer a command.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A server on a port of its own; it keeps it when it is started again. Sessions of one second are allowed.
pub struct ZooKeeper {
    proc: Proc,
    folder: TempDir,
    addr: SocketAddr,
}

impl ZooKeeper {
    /// Starts it on a free port of 127.0.0.1 and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub async fn start() -> Self {
        let addr = ClosedPort::new().addr();
        let folder = tempfile::tempdir().expect("a folder");
        let server = Self { proc: run(folder.path(), addr), folder, addr };
        server.ready().await;
        server
    }

    /// Where it is asked.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What a configuration says of it: `zkAddrs: [...]`.
    pub fn addrs(&self) -> String {
        format!("zkAddrs: [{{host: {}, port: {}}}]", self.addr.ip(), self.addr.port())
    }

    /// Ends it at once, in the midst of whatever it does.
    pub fn kill(&self) {
        self.proc.kill();
    }

    /// Starts it again with all that it had, sessions included.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn restart(&mut self) {
        self.proc = run(self.folder.path(), self.addr);
        self.ready().await;
    }

    /// Starts it again as if it had never held anything.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn restart_empty(&mut self) {
        self.folder = tempfile::tempdir().expect("a folder");
        self.restart().await;
    }

    /// Stops it where it is: its connections stay, and nothing is answered, as if every packet were lost.
    pub fn freeze(&self) {
        self.proc.freeze();
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.proc.thaw();
    }

    /// What it says to one of its commands of four letters. Nothing, if it says nothing at once: while it starts, it takes
    /// connections and forgets them.
    pub async fn says(&self, command: &str) -> Option<String> {
        let asked = async {
            // From another address: a connection to a port where nobody listens yet may meet itself.
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from(([127, 0, 0, 2], 0)))?;
            let mut stream = socket.connect(self.addr).await?;
            stream.write_all(command.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        timeout(ANSWER_WITHIN, asked).await.ok()?.ok()
    }

    async fn ready(&self) {
        until("ZooKeeper", || async { self.says("srvr").await.filter(|said| said.contains("Mode:")) }).await;
    }
}

fn run(folder: &Path, addr: SocketAddr) -> Proc {
    let file = folder.join("zoo.cfg");
    let lines = [
        "tickTime=500".to_owned(),
        format!("dataDir={}", folder.join("data").display()),
        format!("clientPort={}", addr.port()),
        format!("clientPortAddress={}", addr.ip()),
        "admin.enableServer=false".to_owned(),
        "4lw.commands.whitelist=srvr,cons,wchc,mntr".to_owned(),
        "minSessionTimeout=1000".to_owned(),
        "maxSessionTimeout=60000".to_owned(),
        "maxClientCnxns=0".to_owned(),
    ];
    std::fs::write(&file, lines.join("\n")).expect("a file");
    let file = file.to_string_lossy().into_owned();
    let main = "org.apache.zookeeper.server.ZooKeeperServerMain";
    let args = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", CLASSES, main, &file];
    Proc::start("zookeeper", "java", args, &[])
}
