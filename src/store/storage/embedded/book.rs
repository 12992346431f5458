//! What is in the file, and how it is changed.

use super::super::{MAX_HISTORY, MAX_NAMESPACES, Past, StorageError, Table, Version, Write};
use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition, WriteTransaction,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Namespace: version and text.
const TABLES: TableDefinition<&str, (u64, &str)> = TableDefinition::new("tables");

/// Whether there was a table from then on, its text, who, when, why.
type Record = (bool, &'static str, &'static str, u64, &'static str);

/// By namespace and version.
const HISTORY: TableDefinition<(&str, u64), Record> = TableDefinition::new("history");

/// Namespace, also of what is deleted: how many changes are remembered, and the version of the last.
const REMEMBERED: TableDefinition<&str, (u64, u64)> = TableDefinition::new("remembered");

/// Numbers by name.
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");

/// The last version that was given.
const LAST: &str = "version";

/// Most namespaces whose changes are remembered, deleted ones counted; beyond it, what was deleted first is forgotten.
const MAX_REMEMBERED: u64 = 2 * MAX_NAMESPACES as u64;

/// Memory for pages of the file, in bytes: tables are in memory already.
const CACHE: usize = 8 << 20;

/// The open file.
#[derive(Debug)]
pub(super) struct Book {
    file: Database,
}

type Tables = BTreeMap<String, Table>;

impl Book {
    /// Opens or makes the file; gives the tables in it.
    pub(super) fn open(path: &Path) -> Result<(Self, Tables), String> {
        let file = Database::builder().set_cache_size(CACHE).create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => {
                format!("{}: another process has this store open", path.display())
            }
            error => format!("{}: {error}", path.display()),
        })?;
        let book = Self { file };
        let tables = book.prepare().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((book, tables))
    }

    fn prepare(&self) -> Result<Tables, redb::Error> {
        let change = self.file.begin_write()?;
        change.open_table(HISTORY)?;
        change.open_table(REMEMBERED)?;
        change.open_table(NUMBERS)?;
        let mut tables = Tables::new();
        for entry in change.open_table(TABLES)?.iter()? {
            let (namespace, value) = entry?;
            let (version, dtab) = value.value();
            let table = Table { dtab: dtab.into(), version: Version(version) };
            tables.insert(namespace.value().to_owned(), table);
        }
        change.commit()?;
        Ok(tables)
    }

    /// Makes changes, each on what those before it left, all in one durable step. Gives what became of each.
    pub(super) fn apply(&self, writes: &[Write]) -> Result<Vec<Result<Version, StorageError>>, String> {
        self.try_apply(writes).map_err(|error| error.to_string())
    }

    fn try_apply(&self, writes: &[Write]) -> Result<Vec<Result<Version, StorageError>>, redb::Error> {
        let mut transaction = self.file.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        let mut change = Change::of(&transaction)?;
        let done: Vec<_> = writes.iter().map(|write| change.make(write)).collect::<Result<_, _>>()?;
        drop(change);
        match done.iter().any(Result::is_ok) {
            true => transaction.commit()?,
            false => transaction.abort()?,
        }
        Ok(done)
    }

    /// As [`Storage::history`](super::Storage::history).
    pub(super) fn history(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, String> {
        self.try_history(namespace, limit).map_err(|error| error.to_string())
    }

    fn try_history(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, redb::Error> {
        let history = self.file.begin_read()?.open_table(HISTORY)?;
        let newest_first = history.range((namespace, 0)..=(namespace, u64::MAX))?.rev();
        let past = newest_first.take(limit).map(|entry| {
            let (key, value) = entry?;
            let (there, dtab, who, when_ms, why) = value.value();
            Ok(Past {
                version: Version(key.value().1),
                dtab: there.then(|| dtab.into()),
                who: who.into(),
                when_ms,
                why: why.into(),
            })
        });
        past.collect()
    }
}

/// The tables of a transaction, each opened once.
struct Change<'t> {
    tables: redb::Table<'t, &'static str, (u64, &'static str)>,
    history: redb::Table<'t, (&'static str, u64), Record>,
    remembered: redb::Table<'t, &'static str, (u64, u64)>,
    numbers: redb::Table<'t, &'static str, u64>,
}

impl<'t> Change<'t> {
    fn of(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            tables: transaction.open_table(TABLES)?,
            history: transaction.open_table(HISTORY)?,
            remembered: transaction.open_table(REMEMBERED)?,
            numbers: transaction.open_table(NUMBERS)?,
        })
    }

    fn make(&mut self, write: &Write) -> Result<Result<Version, StorageError>, redb::Error> {
        let namespace = write.namespace.as_str();
        let now = self.tables.get(namespace)?.map(|table| Version(table.value().0));
        if let Err(error) = write.expect.judge(now, write.dtab.is_none()) {
            return Ok(Err(error));
        }
        if now.is_none() && self.tables.len()? >= MAX_NAMESPACES as u64 {
            let why = format!("there are {MAX_NAMESPACES} namespaces, which is the most");
            return Ok(Err(StorageError::Refused(why)));
        }
        let version = self.numbers.get(LAST)?.map_or(0, |last| last.value()) + 1;
        self.numbers.insert(LAST, version)?;
        match &write.dtab {
            Some(dtab) => self.tables.insert(namespace, (version, &**dtab))?,
            None => self.tables.remove(namespace)?,
        };
        self.remember(write, version)?;
        Ok(Ok(Version(version)))
    }

    fn remember(&mut self, write: &Write, version: u64) -> Result<(), redb::Error> {
        let namespace = write.namespace.as_str();
        let text = write.dtab.as_deref().unwrap_or_default();
        let past = (write.dtab.is_some(), text, write.who.as_str(), write.when_ms, write.why.as_str());
        self.history.insert((namespace, version), past)?;
        let mut count = self.remembered.get(namespace)?.map_or(0, |value| value.value().0) + 1;
        if count > MAX_HISTORY as u64 {
            let oldest =
                self.history.range((namespace, 0)..)?.next().transpose()?.map(|(key, _)| key.value().1);
            if let Some(oldest) = oldest {
                self.history.remove((namespace, oldest))?;
                count -= 1;
            }
        }
        self.remembered.insert(namespace, (count, version))?;
        if self.remembered.len()? > MAX_REMEMBERED { self.forget_one() } else { Ok(()) }
    }

    /// Forgets the namespace that was deleted first.
    fn forget_one(&mut self) -> Result<(), redb::Error> {
        let mut first: Option<(u64, String)> = None;
        for entry in self.remembered.iter()? {
            let (name, value) = entry?;
            let last = value.value().1;
            let earlier = first.as_ref().is_none_or(|(first, _)| last < *first);
            if earlier && self.tables.get(name.value())?.is_none() {
                first = Some((last, name.value().to_owned()));
            }
        }
        if let Some((_, name)) = first {
            let name = name.as_str();
            self.remembered.remove(name)?;
            self.history.retain_in((name, 0)..=(name, u64::MAX), |_, _| false)?;
        }
        Ok(())
    }
}
