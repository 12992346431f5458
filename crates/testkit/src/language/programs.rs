//! How each program is built and started.

use super::Name;
use super::build::Build;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

/// Two peers are one program in Python, and must not build it at the same time.
static PYTHON: Mutex<()> = Mutex::new(());

/// Builds a program; the command that runs it.
///
/// # Panics
/// With the output of what failed.
pub fn build(name: Name, repository: &Path, target: &Path) -> Vec<PathBuf> {
    let build = |name| Build::new(name, repository, target);
    match name {
        Name::Python | Name::Thriftpy2 => {
            let _alone = PYTHON.lock();
            python(&build("python"), if name == Name::Python { "apache" } else { "dynamic" })
        }
        Name::Go => go(&build("go")),
        Name::Java => java(&build("java")),
        Name::Node => node(&build("node")),
        Name::Cpp => cpp(&build("cpp")),
    }
}

/// One virtual environment for both libraries.
fn python(build: &Build, library: &str) -> Vec<PathBuf> {
    build.thrift(".", "py").step("python3", &["-m", "venv", "--clear", "venv"]).step(
        "venv/bin/python",
        &["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", "requirements.txt"],
    );
    let mut command = build.end(&["venv/bin/python", "peer.py"]);
    command.push(library.into());
    command
}

fn go(build: &Build) -> Vec<PathBuf> {
    build.thrift(".", "go");
    // Command line clients that the generator adds, each a program of its own.
    for service in ["echo", "peer", "beyond"] {
        build.step("rm", &["-rf", &format!("echo/{service}-remote")]);
    }
    build.step("go", &["build", "-buildvcs=false", "-o", "peer", "."]).end(&["peer"])
}

fn java(build: &Build) -> Vec<PathBuf> {
    // Sorted containers: equal values then have equal bytes.
    build
        .thrift(".", "java:sorted_containers,generated_annotations=suppress")
        .step(
            "mvn",
            &[
                "-q",
                "-B",
                "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies",
                "-DoutputDirectory=lib",
            ],
        )
        .step("sh", &["-c", "javac -nowarn -d classes -cp 'lib/*' *.java echo/*.java"]);
    let [classes, libraries] = &build.end(&["classes", "lib/*"])[..] else {
        unreachable!("two were asked for")
    };
    let path = format!("{}:{}", classes.display(), libraries.display());
    // Runs are short: what the second compiler would give is not worth the CPU it takes.
    ["java", "-XX:TieredStopAtLevel=1", "-cp", &path, "Main"].map(PathBuf::from).to_vec()
}

fn node(build: &Build) -> Vec<PathBuf> {
    build.thrift("echo", "js:node,es6").step("npm", &["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    // The library uses what Node would rather see replaced, and says so on stderr.
    let script = build.end(&["peer.js"]);
    ["node", "--no-deprecation"].into_iter().map(PathBuf::from).chain(script).collect()
}

fn cpp(build: &Build) -> Vec<PathBuf> {
    build
        .thrift("echo", "cpp:no_skeleton")
        .step("sh", &["-c", "g++ -std=c++17 -O0 -o peer *.cpp echo/*.cpp -lthriftz -lthrift"])
        .end(&["peer"])
}
