//! The two ends of a measured chain: callers that compare every reply, and services that echo.

pub mod backend;
pub mod load;

use std::fmt;
use std::io;
use std::str::FromStr;

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proto {
    /// Framed binary Thrift, one call at a time.
    Framed,
    /// Mux with Thrift bodies.
    Mux,
}

impl fmt::Display for Proto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Framed => "framed",
            Self::Mux => "mux",
        })
    }
}

impl FromStr for Proto {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        match text {
            "framed" => Ok(Self::Framed),
            "mux" => Ok(Self::Mux),
            _ => Err(io::Error::other(format!("{text} is neither framed nor mux"))),
        }
    }
}

/// Where the id of the one field is in a message of `echo`: version and type, name, sequence id, type of the field.
const FIELD_ID: usize = 4 + (4 + 4) + 4 + 1;
/// The header of a call without its sequence id.
const CALL: &[u8] = b"\x80\x01\x00\x01\0\0\0\x04echo";
/// The header of the one field of a call, a string.
const ARGUMENT: &[u8] = b"\x0b\x00\x01";
