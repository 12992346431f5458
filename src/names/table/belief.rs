//! What of all that stores say is believed. No socket, no clock of its own.
//!
//! ```text
//!   told ──▶ newer, or nothing held ───────────────────────▶ believed
//!     ├────▶ gone, without an outage before it ────────────▶ believed
//!     └────▶ older; or gone, as the first word of a store ─▶ doubted ── 30 s ──▶ believed
//! ```

use super::version::Version;
use muxgate_wire::name::Dtab;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a table that has turned older, or is gone after an outage, is doubted: a store that was brought back empty, or
/// from a backup, or that lags behind the others, must not take the traffic away at once.
pub const GRACE: Duration = Duration::from_secs(30);

/// What a store says of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// This is it.
    Table {
        /// Its version.
        version: Version,
        /// Its entries.
        dtab: Dtab,
        /// The same, as it was written.
        text: Arc<str>,
    },
    /// There is none, which is as good as an empty one.
    Absent,
}

impl Told {
    /// The version, if there is a table.
    pub fn version(&self) -> Option<&Version> {
        match self {
            Self::Table { version, .. } => Some(version),
            Self::Absent => None,
        }
    }

    /// The entries.
    pub fn dtab(&self) -> Dtab {
        match self {
            Self::Table { dtab, .. } => dtab.clone(),
            Self::Absent => Dtab::empty(),
        }
    }
}

/// What is to be done about something that was told.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what is held already.
    Same,
    /// It is held from now on.
    New,
    /// It is not believed yet; the text says why. Told for the first time only.
    Doubted(&'static str),
    /// It is still not believed.
    StillDoubted,
}

/// What is held, and what is not believed yet.
#[derive(Debug, Default)]
pub struct Belief {
    held: Option<Told>,
    /// The greatest version that was believed.
    floor: Option<u64>,
    /// Whether this store has confirmed, or brought, what is held since it was connected to.
    confirmed: bool,
    doubt: Option<Doubt>,
}

#[derive(Debug)]
struct Doubt {
    since: Instant,
    told: Option<Told>,
}

impl Belief {
    /// Begins with what was kept from before.
    pub fn new(kept: Option<Told>) -> Self {
        let floor = kept.as_ref().and_then(Told::version).and_then(Version::order);
        Self { held: kept, floor, ..Self::default() }
    }

    /// What is held.
    pub fn held(&self) -> Option<&Told> {
        self.held.as_ref()
    }

    /// A store is connected to anew: what it says first comes after an outage.
    pub fn connected(&mut self) {
        self.confirmed = false;
        if let Some(doubt) = &mut self.doubt {
            doubt.told = None;
        }
    }

    /// A store says this.
    pub fn told(&mut self, told: Told, now: Instant) -> Verdict {
        if self.held.as_ref() == Some(&told) {
            self.confirmed = true;
            self.doubt = None;
            return Verdict::Same;
        }
        let Some(why) = self.doubts(&told) else {
            self.believe(told);
            return Verdict::New;
        };
        match &mut self.doubt {
            Some(doubt) => {
                doubt.told = Some(told);
                Verdict::StillDoubted
            }
            None => {
                self.doubt = Some(Doubt { since: now, told: Some(told) });
                Verdict::Doubted(why)
            }
        }
    }

    /// When what is doubted will be believed.
    pub fn due(&self) -> Option<Instant> {
        let doubt = self.doubt.as_ref()?;
        doubt.told.as_ref().map(|_| doubt.since + GRACE)
    }

    /// Believes what has been doubted for long enough; whether there was such a thing.
    pub fn ripen(&mut self, now: Instant) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        let Some(told) = self.doubt.take().and_then(|doubt| doubt.told) else { return false };
        // The store counts from somewhere else now.
        self.floor = None;
        self.believe(told);
        true
    }

    fn believe(&mut self, told: Told) {
        let order = told.version().and_then(Version::order);
        self.floor = order.or(self.floor);
        self.held = Some(told);
        self.confirmed = true;
        self.doubt = None;
    }

    fn doubts(&self, told: &Told) -> Option<&'static str> {
        self.held.as_ref()?;
        match told {
            Told::Absent => (!self.confirmed).then_some("the table is gone after an outage"),
            Told::Table { version, .. } => {
                let older = version.order()? <= self.floor?;
                older.then_some("the table is older than the one in use")
            }
        }
    }
}
