#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| muxgate_properties::client_session(data));
