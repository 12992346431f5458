//! What any Thrift or Mux peer needs: the words of the house, and sessions over a socket.
//!
//! A [`Request`] goes in, a [`Response`] or a [`Failure`] comes out, through a [`Svc`]. Protocols differ only at the rim:
//! [`mux`] and [`thrift`] turn their messages into these words and back.

pub mod bridge;
pub mod context;
pub mod drain;
pub mod events;
pub mod failure;
pub mod headers;
pub mod io;
pub mod life;
pub mod link;
pub mod mux;
pub mod payload;
pub mod pressure;
pub mod purse;
pub mod request;
pub mod response;
pub mod rules;
pub mod service;
pub mod thrift;
pub mod tls;

pub use context::{Context, Deadline};
pub use drain::Drain;
pub use failure::{Failure, Flags, Why};
pub use link::Link;
pub use payload::Payload;
pub use pressure::Pressure;
pub use purse::Purse;
pub use request::{Local, Peer, Request};
pub use response::{Class, Reply, Response};
pub use rules::Rules;
pub use service::{Serve, Status, Svc};
