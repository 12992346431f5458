//! What can be set.

use std::fmt;
use std::path::PathBuf;

/// Settings of the file namer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// `rootDir`: the folder in which each file is a service.
    pub root: PathBuf,
}

impl Params {
    /// A root that is no folder is hardly meant.
    pub fn doubt(&self) -> Option<String> {
        let wrong = self.root.exists() && !self.root.is_dir();
        wrong.then(|| format!("{} is not a folder: no name is found in it", self.root.display()))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = match (self.root.is_dir(), self.root.exists()) {
            (true, _) => "",
            (false, true) => " (which is not a folder)",
            (false, false) => " (not there yet)",
        };
        write!(f, "files in {}{missing}", self.root.display())
    }
}
