//! The store of dtabs, `muxgate store`: namespaces of tables with versions, for any number of gateways and people.
//!
//! [`storage`] keeps tables; everything else asks it.

pub mod storage;
