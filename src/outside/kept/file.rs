//! The file itself.

use super::{Changes, MAX_ENTRIES, Place};
use bytes::Bytes;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use std::collections::HashMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAME: &str = "kept.redb";
/// A file that made no sense, for people to look at; the next one takes its place.
const DAMAGED: &str = "kept.redb.damaged";
/// Memory for pages of the file.
const CACHE: usize = 8 << 20;

/// Shelf and key; milliseconds since 1970 in 8 bytes, and the value.
const ENTRIES: TableDefinition<'_, (&str, &[u8]), &[u8]> = TableDefinition::new("entries");

pub(super) struct File(Database);

impl File {
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| said(&error))?;
        let file = folder.join(NAME);
        let open = || Builder::new().set_cache_size(CACHE).create(&file);
        let opened = match open() {
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(said(&"in use by another process")),
            Err(error) if !is_refused(&error) => {
                tracing::warn!(file = %file.display(), %error, "what was kept makes no sense: moved aside");
                std::fs::rename(&file, folder.join(DAMAGED)).map_err(|error| said(&error))?;
                open()
            }
            opened => opened,
        };
        opened.map(Self).map_err(|error| said(&error))
    }

    /// The value there, and when it was put.
    pub(super) fn get(&self, (shelf, key): &Place) -> Option<(Bytes, SystemTime)> {
        let read = || -> Result<_, redb::Error> {
            let table = match self.0.begin_read()?.open_table(ENTRIES) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            let value = table.get((&**shelf, &key[..]))?;
            Ok(value.map(|value| Bytes::copy_from_slice(value.value())))
        };
        let found = read().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read what is kept");
            None
        });
        let found = found?;
        let ms = u64::from_be_bytes(*found.first_chunk()?);
        Some((found.slice(8..), UNIX_EPOCH.checked_add(Duration::from_millis(ms))?))
    }

    /// How many values are on each shelf.
    pub(super) fn count(&self) -> HashMap<Arc<str>, usize> {
        let mut count: HashMap<Arc<str>, usize> = HashMap::new();
        let mut read = || -> Result<(), redb::Error> {
            for entry in self.0.begin_read()?.open_table(ENTRIES)?.iter()? {
                let (place, _) = entry?;
                let (shelf, _) = place.value();
                match count.get_mut(shelf) {
                    Some(count) => *count += 1,
                    None => drop(count.insert(shelf.into(), 1)),
                }
            }
            Ok(())
        };
        // A file without the table is a new one.
        let _ = read();
        count
    }

    /// Writes these changes in one commit.
    pub(super) fn write(
        &self,
        changes: &Changes,
        count: &mut HashMap<Arc<str>, usize>,
    ) -> Result<(), String> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut write = || -> Result<(), redb::Error> {
            let transaction = self.0.begin_write()?;
            let mut table = transaction.open_table(ENTRIES)?;
            for ((shelf, key), (value, when)) in changes {
                let count = count.entry(Arc::clone(shelf)).or_default();
                let place = (&**shelf, &key[..]);
                let Some(value) = value else {
                    *count -= usize::from(table.remove(place)?.is_some()).min(*count);
                    continue;
                };
                if *count >= MAX_ENTRIES && table.get(place)?.is_none() {
                    continue;
                }
                let ms = when.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
                let value = [&ms.to_be_bytes()[..], value].concat();
                *count += usize::from(table.insert(place, &value[..])?.is_none());
            }
            drop(table);
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| error.to_string())
    }
}

/// Whether it is the system that does not let us have the file.
fn is_refused(error: &DatabaseError) -> bool {
    use std::io::ErrorKind;
    match error {
        DatabaseError::Storage(redb::StorageError::Io(error)) => {
            matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem
            )
        }
        _ => false,
    }
}
