//! First bytes of a connection to the protocol it speaks.
