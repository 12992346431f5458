//! The way of a request, from the edge to the wire. The alphabet is the order of events: accept, address, admit, bind,
//! choose, dispatch.

pub mod accept;
pub mod address;
pub mod admit;
pub mod bind;
pub mod choose;
pub mod dispatch;
