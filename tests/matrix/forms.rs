//! The forms on both sides, and how the configuration asks for them.

use muxgate_testkit::link::{Dialect, NAME};
use muxgate_testkit::speaker::{Form, Security};
use muxgate_testkit::thrift::Protocol;
use std::path::Path;

/// What a caller speaks: a row.
pub struct Inbound {
    pub name: &'static str,
    pub form: Form,
}

/// What a service is spoken to in: a column.
#[derive(Clone, Copy)]
pub struct Outbound {
    pub name: &'static str,
    pub dialect: Dialect,
    /// None: that of the call.
    pub protocol: Option<Protocol>,
    pub security: Security,
    pub lz4: bool,
    /// Mux: the size of pieces that the service asks for.
    pub window: Option<u32>,
}

use Protocol::{Binary, Compact, Old};

/// Bytes in a piece of a Mux message, where it is cut: hardly a context, name or head of a message is whole.
const PIECE: u32 = 19;

/// All rows.
pub fn inbound() -> Vec<Inbound> {
    let row = |name, form| Inbound { name, form };
    vec![
        row("framed", Form::new(Dialect::Framed, Binary)),
        row("framed old", Form::new(Dialect::Framed, Old)),
        row("framed compact", Form::new(Dialect::Framed, Compact)),
        row("buffered", Form::new(Dialect::Buffered, Binary)),
        row("buffered old", Form::new(Dialect::Buffered, Old)),
        row("buffered compact", Form::new(Dialect::Buffered, Compact)),
        row("header", Form::new(Dialect::Header, Binary)),
        row("header compact", Form::new(Dialect::Header, Compact)),
        row("header zlib", Form { zlib: true, ..Form::new(Dialect::Header, Binary) }),
        row("ttwitter", Form::new(Dialect::TTwitter, Binary)),
        row("mux", Form::new(Dialect::Mux, Binary)),
        row("mux compact", Form::new(Dialect::Mux, Compact)),
        row("mux pieces", Form { window: Some(PIECE), ..Form::new(Dialect::Mux, Binary) }),
        row("mux lz4", Form { lz4: true, ..Form::new(Dialect::Mux, Binary) }),
        row("mux treq", Form { treq: true, ..Form::new(Dialect::Mux, Binary) }),
        row("mux tls", Form { security: Security::Opportunistic, ..Form::new(Dialect::Mux, Binary) }),
        row("mux tls lz4", Form { security: Security::Tls, lz4: true, ..Form::new(Dialect::Mux, Compact) }),
        row("framed tls", Form { security: Security::Tls, ..Form::new(Dialect::Framed, Binary) }),
    ]
}

/// All columns.
pub fn outbound() -> Vec<Outbound> {
    let security = Security::Clear;
    let plain =
        |name, dialect| Outbound { name, dialect, protocol: None, security, lz4: false, window: None };
    let transports = [
        plain("framed", Dialect::Framed),
        plain("buffered", Dialect::Buffered),
        plain("header", Dialect::Header),
        plain("ttwitter", Dialect::TTwitter),
        plain("thriftmux", Dialect::Mux),
        Outbound { lz4: true, ..plain("mux lz4", Dialect::Mux) },
        Outbound { window: Some(PIECE), ..plain("mux pieces", Dialect::Mux) },
        Outbound { security: Security::Tls, ..plain("mux tls", Dialect::Mux) },
        Outbound { security: Security::Opportunistic, lz4: true, ..plain("mux tls lz4", Dialect::Mux) },
        Outbound { security: Security::Tls, ..plain("framed tls", Dialect::Framed) },
    ];
    let columns = |transport: Outbound| {
        [None, Some(Binary), Some(Compact)].map(|protocol| Outbound { protocol, ..transport })
    };
    transports.into_iter().flat_map(columns).collect()
}

/// The key `tls` with these settings.
fn tls(security: Security, settings: &str) -> String {
    match security {
        Security::Clear => String::new(),
        Security::Tls => format!("tls: {{{settings}}}, "),
        Security::Opportunistic => format!("tls: {{{settings}, opportunistic: required}}, "),
    }
}

/// As the configuration calls it.
fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Framed => "framed",
        Dialect::Buffered => "buffered",
        Dialect::Header => "header",
        Dialect::TTwitter => "ttwitter",
        Dialect::Mux => "thriftmux",
    }
}

impl Inbound {
    /// The keys of the listener that belong to the form; certificates lie in `folder`. What a caller speaks is said only if
    /// `is_named`, or if it cannot be detected.
    pub fn keys(&self, folder: &Path, is_named: bool) -> String {
        let folder = folder.display();
        let files = format!("certPath: {folder}/cert.pem, keyPath: {folder}/cert.key");
        let mut keys = tls(self.form.security, &files);
        if is_named || (self.form.dialect, self.form.protocol) == (Dialect::Buffered, Old) {
            let protocol = if self.form.protocol == Compact { "compact" } else { "binary" };
            let dialect = match self.form.dialect {
                // It begins with a framed call.
                Dialect::TTwitter => Dialect::Framed,
                other => other,
            };
            keys += &format!("protocol: {}, thriftProtocol: {protocol}, ", name(dialect));
        }
        if self.form.lz4 {
            keys += "compression: accepted, ";
        }
        keys
    }

    pub fn is_mux(&self) -> bool {
        self.form.dialect == Dialect::Mux
    }
}

impl Outbound {
    /// The keys of the client that belong to the form.
    pub fn keys(&self, folder: &Path) -> String {
        let folder = folder.display();
        let mut keys = format!("protocol: {}, ", name(self.dialect));
        match self.protocol {
            None => {}
            Some(Compact) => keys += "thriftProtocol: compact, ",
            Some(_) => keys += "thriftProtocol: binary, ",
        }
        keys += &tls(self.security, &format!("commonName: {}, trustCertsBundle: {folder}/ca.pem", NAME));
        if self.lz4 {
            keys += "compression: desired, ";
        }
        keys
    }

    /// What the service is to receive a call in.
    pub fn protocol_of(&self, inbound: &Inbound) -> Protocol {
        self.protocol.unwrap_or(inbound.form.protocol)
    }

    pub fn is_mux(&self) -> bool {
        self.dialect == Dialect::Mux
    }

    /// The second line of the table's head.
    pub fn short(&self) -> &'static str {
        match self.protocol {
            None => "same",
            Some(Compact) => "cmp",
            Some(_) => "bin",
        }
    }
}
