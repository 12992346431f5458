//! A folder in which a program is built: its sources, the IDL, and what is made of them.

use crate::proc::Proc;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one step may take: the first of all fetches the language's libraries.
const STEP_LIMIT: Duration = Duration::from_secs(600);
/// Holds all sources of what was built; written at the end.
const STAMP: &str = "built-from";

/// The folder of one program.
pub struct Build {
    /// Where it is.
    pub folder: PathBuf,
    name: &'static str,
    sources: String,
    done: bool,
}

impl Build {
    /// Copies the sources of `tests/peers/programs/NAME` and the IDL to the folder, unless they are what was built there
    /// before.
    ///
    /// # Panics
    /// If files cannot be read or written.
    pub fn new(name: &'static str, repository: &Path, target: &Path) -> Self {
        let folder = target.join("peers").join(name);
        let mut files = vec![repository.join("idl/echo.thrift")];
        let listed = fs::read_dir(repository.join("tests/peers/programs").join(name));
        let mut sources: Vec<PathBuf> =
            listed.expect("a program has a folder").map(|f| f.expect("it can be listed").path()).collect();
        sources.retain(|path| path.is_file());
        sources.sort();
        files.append(&mut sources);
        let text = |file: &PathBuf| fs::read_to_string(file).expect("sources are text");
        let sources = files.iter().map(text).collect::<Vec<_>>().concat();
        let done = fs::read_to_string(folder.join(STAMP)).is_ok_and(|was| was == sources);
        if !done {
            // What was fetched before stays: libraries are pinned by what is copied here.
            fs::create_dir_all(&folder).expect("the target folder can be written to");
            for file in &files {
                let name = file.file_name().expect("a file has a name");
                fs::copy(file, folder.join(name)).expect("the target folder can be written to");
            }
        }
        Self { folder, name, sources, done }
    }

    /// Runs a program in the folder, if there is something to build.
    ///
    /// # Panics
    /// With its output, if it fails.
    pub fn step(&self, program: &str, args: &[&str]) -> &Self {
        if !self.done {
            let folder = self.folder.to_string_lossy();
            let args = ["-C", &folder, program].into_iter().chain(args.iter().copied());
            let what = format!("building the {} peer: {program}", self.name);
            // The child's folder is its own, and what builds is found by its name.
            let proc = Proc::start(&what, "env", args, &[("GOWORK", "off")]);
            let status = proc.wait(STEP_LIMIT);
            assert!(status.success(), "{what}: {status}\n{}", proc.report());
        }
        self
    }

    /// Generates code with the Thrift compiler.
    ///
    /// # Panics
    /// With its output, if it fails.
    pub fn thrift(&self, out: &str, generator: &str) -> &Self {
        if !self.done {
            fs::create_dir_all(self.folder.join(out)).expect("the target folder can be written to");
        }
        self.step("thrift", &["-out", out, "--gen", generator, "echo.thrift"])
    }

    /// Ends the build; the paths of what is in the folder.
    ///
    /// # Panics
    /// If the target folder cannot be written to.
    pub fn end(&self, files: &[&str]) -> Vec<PathBuf> {
        fs::write(self.folder.join(STAMP), &self.sources).expect("the target folder can be written to");
        files.iter().map(|file| self.folder.join(file)).collect()
    }
}
