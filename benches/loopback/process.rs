//! A process that is measured from outside, and ends with us.

use std::fs;
use std::io::{self, BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Clock ticks of `/proc/PID/stat`: the same on every Linux that is in use.
const TICK: Duration = Duration::from_millis(10);
/// The place of `utime` in `/proc/PID/stat`, counted from behind the program's name; `stime` follows.
const UTIME: usize = 11;

/// A server that has told where it listens. Dropping it kills it; the kernel does, should we be killed.
pub struct Process {
    child: Child,
    /// Kept open, so that the process can go on printing.
    _lines: Lines<BufReader<ChildStdout>>,
    addr: SocketAddr,
}

impl Process {
    /// Starts `program` and waits for its line `listening … ADDR`.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it listens.
    pub fn start(program: &str, args: &[&str]) -> io::Result<Self> {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", program])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let Some(out) = child.stdout.take() else { return Err(io::Error::other("stdout is piped")) };
        let mut lines = BufReader::new(out).lines();
        for line in lines.by_ref() {
            if let Some(rest) = line?.strip_prefix("listening ") {
                let addr = rest.rsplit(' ').next().unwrap_or_default().parse().map_err(io::Error::other)?;
                return Ok(Self { child, _lines: lines, addr });
            }
        }
        let status = child.wait()?;
        Err(io::Error::other(format!("{program} {args:?} does not listen: {status}")))
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The processor time that it has used: user and system, all threads that live.
    ///
    /// # Errors
    /// When it has ended.
    pub fn cpu(&self) -> io::Result<Duration> {
        self.cpu_in_ns().or_else(|_| self.cpu_in_ticks())
    }

    /// The scheduler's own account, of which the ticks of `stat` are made. Not every kernel shows it.
    fn cpu_in_ns(&self) -> io::Result<Duration> {
        let mut sum = 0;
        for task in fs::read_dir(self.proc("task"))? {
            let account = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += word(account.split(' ').next())?;
        }
        Ok(Duration::from_nanos(sum))
    }

    fn cpu_in_ticks(&self) -> io::Result<Duration> {
        let stat = fs::read_to_string(self.proc("stat"))?;
        let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(UTIME);
        let ticks = word(words.next())? + word(words.next())?;
        Ok(TICK * u32::try_from(ticks).map_err(io::Error::other)?)
    }

    /// Resident memory in KiB: now, and the most there has been.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resident(&self) -> io::Result<(u64, u64)> {
        let status = fs::read_to_string(self.proc("status"))?;
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            word(line.and_then(|line| line.split_whitespace().next()))
        };
        Ok((of("VmRSS:")?, of("VmHWM:")?))
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.child.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error would mean that it is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn word(text: Option<&str>) -> io::Result<u64> {
    text.unwrap_or_default().parse().map_err(io::Error::other)
}
