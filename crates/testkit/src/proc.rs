//! A child process: its output as it comes, signals to its own pid and no other, and an end with the test at the latest.
//!
//! A process that outlives its test does harm, and destructors do not run for what lies in a `static`, nor when the test
//! program is killed. So all children are started by one thread that lives as long as the program, through `setpriv
//! --pdeathsig KILL`, which makes the kernel kill them when that thread is gone.

use crate::lines::Lines;
use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;
use tokio::time::Instant;

/// How long a program may take to say that it is ready: a JVM on a machine that builds beside it takes many seconds.
pub const START_LIMIT: Duration = Duration::from_secs(180);
/// How long a program may take to end, or a log line to come.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A running or ended child; dropping it kills it.
pub struct Proc {
    name: String,
    pid: Pid,
    end: Arc<End>,
    /// Lines of its stdout.
    pub out: Arc<Lines>,
    /// Lines of its stderr.
    pub err: Arc<Lines>,
}

#[derive(Default)]
struct End {
    status: Mutex<Option<ExitStatus>>,
    changed: Condvar,
}

impl Proc {
    /// Starts `program` with `args` and, beyond ours, the variables of `env`. `name` stands in messages.
    pub fn start<A: AsRef<OsStr>>(
        name: &str,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
        env: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program.as_ref())
            .args(args)
            .envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command).unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        let out = Lines::of(child.stdout.take().expect("stdout is piped"));
        let err = Lines::of(child.stderr.take().expect("stderr is piped"));
        let pid = Pid::from_child(&child);
        let end = Arc::new(End::default());
        let seen = end.clone();
        std::thread::spawn(move || seen.watch(pid, child));
        Self { name: name.to_owned(), pid, end, out, err }
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for a line of its stdout that `look` makes something of.
    ///
    /// # Panics
    /// With the last lines of its output, if none comes within `limit`.
    pub fn wait_line<T>(&self, what: &str, limit: Duration, look: impl FnMut(&str) -> Option<T>) -> T {
        self.wait_line_from(0, what, limit, look)
    }

    /// As [`wait_line`](Self::wait_line), not looking at the first `from` lines.
    ///
    /// # Panics
    /// With the last lines of its output, if none comes within `limit`.
    pub fn wait_line_from<T>(
        &self,
        from: usize,
        what: &str,
        limit: Duration,
        look: impl FnMut(&str) -> Option<T>,
    ) -> T {
        match self.out.find(from, limit, look) {
            Ok(found) => found,
            Err(why) => panic!("{}: waited for {what}: {why}\n{}", self.name, self.report()),
        }
    }

    /// The last lines of both its streams.
    pub fn report(&self) -> String {
        format!("  {} stdout:\n{}  stderr:\n{}", self.name, self.out.tail(), self.err.tail())
    }

    /// Asks it to end: SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it at once: SIGKILL. Returns when it is dead and its sockets are closed.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.wait(LIMIT);
    }

    /// Stops it where it is: it keeps its sockets and answers nothing, as if every packet were lost.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // Under the lock the pid is still ours: it is given back only together with the status.
        let status = self.end.status.lock();
        if status.is_none()
            && let Err(e) = kill_process(self.pid, signal)
        {
            panic!("{}: {signal:?} failed: {e}", self.name);
        }
    }

    /// Waits for its end, and for all of its output.
    ///
    /// # Panics
    /// With the last lines of its output, if it does not end within `limit`.
    pub fn wait(&self, limit: Duration) -> ExitStatus {
        let end = Instant::now() + limit;
        let mut status = self.end.status.lock();
        while status.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} did not end within {limit:?}\n{}", self.name, self.report());
            self.end.changed.wait_for(&mut status, left);
        }
        assert!(self.out.ended(limit) && self.err.ended(limit), "{}: its output does not end", self.name);
        status.expect("it has ended")
    }

    /// Its resident memory in bytes: now, and the most it ever was.
    ///
    /// # Panics
    /// If it has ended.
    pub fn memory(&self) -> (u64, u64) {
        let file = format!("/proc/{}/status", self.pid.as_raw_nonzero());
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {file}: {e}", self.name));
        let field = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            number.unwrap_or_else(|| panic!("{}: no {key} in {text}", self.name)) * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        self.end.status.lock().is_some()
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.report());
        }
        let status = self.end.status.lock();
        if status.is_none() {
            // An error would mean that it is gone, which is what is wanted.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

impl End {
    /// Waits without reaping, so that the pid stays taken until the status is set under the lock.
    fn watch(&self, pid: Pid, mut child: Child) {
        while let Err(rustix::io::Errno::INTR) =
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {}
        let mut status = self.status.lock();
        *status = child.wait().ok();
        self.changed.notify_all();
    }
}

/// Starts a child from the thread that lives as long as this program.
fn spawn(command: Command) -> io::Result<Child> {
    type Job = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (jobs, waiting) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, answer) in waiting {
                // Whoever asked waits for the answer; if it is gone, the child is dropped with the answer.
                let _ = answer.send(command.spawn());
            }
        });
        jobs
    });
    let (answer, started) = mpsc::channel();
    starter.send((command, answer)).map_err(|_| io::Error::other("the starting thread is gone"))?;
    started.recv().map_err(|_| io::Error::other("the starting thread is gone"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_and_a_killed_child_has_ended() {
        let p = Proc::start("sh", "sh", ["-c", "echo READY $V; echo oh >&2; exec cat"], &[("V", "1")]);
        let line = p.wait_line("READY", LIMIT, |l| l.strip_prefix("READY ").map(str::to_owned));
        assert_eq!(line, "1");
        // cat ends at once, as stdin is empty; the pid is given back only with the status.
        assert!(p.wait(LIMIT).success());
        p.kill();
        assert_eq!(p.err.all(), ["oh"]);
    }

    #[test]
    fn sigterm_reaches_the_program_itself() {
        let p = Proc::start(
            "sh",
            "sh",
            ["-c", "trap 'echo bye; exit 7' TERM; echo READY; while :; do :; done"],
            &[],
        );
        p.wait_line("READY", LIMIT, |l| (l == "READY").then_some(()));
        p.terminate();
        assert_eq!(p.wait(LIMIT).code(), Some(7));
        assert_eq!(p.out.all(), ["READY", "bye"]);
    }

    #[test]
    #[should_panic(expected = "waited for READY: its output ended")]
    fn what_does_not_become_ready_fails_with_its_log() {
        let p = Proc::start("false", "false", [""; 0], &[]);
        p.wait_line("READY", LIMIT, |l| (l == "READY").then_some(()));
    }
}
