//! When a source is believed. Times are measured from the last word of the source.

use std::time::Duration;

/// Names of a subject that never had an answer are failed if there is none within this time.
pub const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// And if there is none within this time, the question is put again.
pub const LAST_ANSWER: Duration = Duration::from_secs(30);

/// After this silence a source is asked whether it is there, before a name that it never reported is called unknown.
pub const TRUST_SILENCE: Duration = Duration::from_secs(3);

/// After this silence it is asked whether it is there in any case.
pub const SELF_CHECK: Duration = Duration::from_secs(10);

/// Time for an answer to that.
pub const CHECK_WITHIN: Duration = Duration::from_secs(3);

/// Checks of one namer at the same time; others wait.
pub const MAX_CHECKS: usize = 16;

/// Everything is asked for anew after this time at the latest, whatever was heard in between.
pub const RESYNC: Duration = Duration::from_secs(300);

/// A subject of which nobody holds a name is followed for this long: the next call may want it again.
pub const LINGER: Duration = Duration::from_secs(30);

/// Subjects of one namer that nobody holds and that are followed all the same: strangers may invent them.
pub const MAX_LINGERING: usize = 1_000;

/// First pause after a failure; it doubles with each further one.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause: an outage that ends is noticed within this time.
pub const LAST_PAUSE: Duration = Duration::from_secs(4);

/// Subjects, and paths, of one namer that are followed at the same time.
pub const MAX_FOLLOWED: usize = 100_000;

/// Names of one subject that are known; for more there is no room.
pub const MAX_NAMES: usize = 100_000;

/// Members of one name; more are left out.
pub const MAX_MEMBERS: usize = 10_000;

/// What can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// A name that had members before an outage and has none after it keeps them for this time.
    pub empty_grace: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self { empty_grace: Duration::from_secs(30) }
    }
}
