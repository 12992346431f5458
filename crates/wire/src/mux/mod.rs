//! Twitter's Mux: many requests and replies over one connection.
//!
//! Frames come in through [`frame::next_frame`], go through a session machine ([`client::ClientSession`] towards a
//! server, [`server::ServerSession`] towards a client) and leave through its [`outbox::Outbox`]. Nothing here does
//! I/O or reads a clock: the socket layer hands in frames and the time, and takes out bytes and events.

pub mod client;
pub mod context;
pub mod fragment;
pub mod frame;
pub mod handshake;
pub mod limits;
pub mod lz4;
pub mod message;
pub mod outbox;
pub mod server;
pub mod session;
mod table;
mod tags;
