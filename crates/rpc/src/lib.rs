//! The words every peer needs, and sessions over a socket.
