//! The gateway between real programs: Finagle 20.4.1 in all its protocols, Thrift in six other libraries, Zipkin 3.5.1.
//! Runs with `--features peers`; `scripts/test-all` installs what it needs. What cannot be started fails its test.

mod cancel;
mod contexts;
mod drain;
mod kill;
mod languages;
mod nack;
mod pairs;
mod tls;
mod world;
mod zipkin;
