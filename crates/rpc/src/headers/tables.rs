//! Delegations in headers: the forms that Finagle and linkerd give a table where headers are all there is.
//!
//! | key, in any case | value |
//! |---|---|
//! | `x-dtab-NN-a`, `x-dtab-NN-b` | one entry each: prefix and destination in base64, NN from 00; Finagle's old form |
//! | `dtab-local` | tables with commas between them; Finagle |
//! | `l5d-ctx-dtab` | a table that proxies hand on; linkerd |
//! | `l5d-dtab` | a table that users write; linkerd |
//!
//! Later forms win over earlier ones, in the order of the table; several headers of one form are joined in their order. One
//! that cannot be read spoils the whole: a shorter table would lead elsewhere.

use super::DTAB;
use crate::{Failure, Why};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use muxgate_wire::name::Dtab;
use std::collections::BTreeMap;

/// Finagle's key.
const LOCAL: &[u8] = b"dtab-local";
/// The key of tables that linkerd hands on.
const CARRIED: &[u8] = b"l5d-ctx-dtab";
/// What keys of the old form begin with.
const OLD: &[u8] = b"x-dtab-";

/// The delegations among the headers of a request.
#[derive(Default)]
pub struct Tables {
    old: BTreeMap<[u8; 2], [Option<Bytes>; 2]>,
    /// Of the other forms, in the order of the table above.
    new: [Vec<Dtab>; 3],
}

impl Tables {
    /// Takes a header if it is one of delegations.
    ///
    /// # Errors
    /// [`Why::BadRequest`], if it cannot be read.
    pub fn take(&mut self, key: &[u8], value: &Bytes) -> Result<bool, Failure> {
        let is = |ours: &[u8]| key.eq_ignore_ascii_case(ours);
        let parse = |text: &[u8]| Dtab::parse(text).map_err(|error| super::bad(key, error));
        let [local, carried, user] = &mut self.new;
        if is(DTAB) {
            user.push(parse(value)?);
        } else if is(CARRIED) {
            carried.push(parse(value)?);
        } else if is(LOCAL) {
            for text in value.split(|byte| *byte == b',') {
                local.push(parse(text)?);
            }
        } else if let Some((number, half)) = old(key) {
            let pair = self.old.entry(number).or_default();
            if let Some(place) = pair.get_mut(half) {
                *place = Some(value.clone());
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The table that they make.
    ///
    /// # Errors
    /// [`Why::BadRequest`] for an entry of the old form that cannot be read, or of which one half is missing.
    pub fn read(self) -> Result<Dtab, Failure> {
        let mut all = Vec::new();
        for (number, pair) in self.old {
            let [Some(prefix), Some(dst)] = pair else {
                return Err(wrong(number, "one half of the entry is missing"));
            };
            let text = |half: &Bytes| STANDARD.decode(half).map_err(|error| wrong(number, error));
            let entry = [text(&prefix)?, b"=>".to_vec(), text(&dst)?].concat();
            let entry = Dtab::parse(entry).map_err(|error| wrong(number, error))?;
            if entry.len() != 1 {
                return Err(wrong(number, "it is not one entry"));
            }
            all.push(entry);
        }
        Ok(all.iter().chain(self.new.iter().flatten()).flat_map(Dtab::entries).cloned().collect())
    }
}

/// Whether a header is one of delegations.
pub(super) fn is_key(key: &[u8]) -> bool {
    [DTAB, CARRIED, LOCAL].iter().any(|ours| key.eq_ignore_ascii_case(ours)) || old(key).is_some()
}

/// Number and half of a key of the old form.
fn old(key: &[u8]) -> Option<([u8; 2], usize)> {
    let (lead, rest) = key.split_at_checked(OLD.len())?;
    match rest {
        [tens, ones, b'-', half] if lead.eq_ignore_ascii_case(OLD) => {
            let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
            let half = [b'a', b'b'].iter().position(|letter| letter.eq_ignore_ascii_case(half))?;
            digits.then_some(([*tens, *ones], half))
        }
        _ => None,
    }
}

fn wrong([tens, ones]: [u8; 2], why: impl std::fmt::Display) -> Failure {
    let number = [char::from(tens), char::from(ones)];
    Failure::new(Why::BadRequest, format!("info headers x-dtab-{}{}: {why}", number[0], number[1]))
}
